"""Defects of lists, watches, stores and queues of objects."""

from __future__ import annotations

import random
from typing import Any

from apisix_ingress.app import Controller
from apisix_ingress.errors import KubeGone, KubeUnavailable
from apisix_ingress.kube.client.api import KubeApi
from apisix_ingress.kube.informer.reflector import Reflector
from apisix_ingress.kube.informer.relist import Relist
from apisix_ingress.runtime.queue.workqueue import WorkQueue
from apisix_ingress.state.dependents import Dependents
from apisix_ingress.state.store import Store
from tests.simulation.defects.planting import defect, instead


@defect("writes before complete lists")
def _() -> Any:
    async def prepare(self: Any) -> None:
        self.state.ready.set()

    return instead(Controller, "_prepare", prepare)


@defect("410 is waited out")
def _() -> Any:
    watch = Reflector._watch

    async def stubborn(self: Any, version: str) -> float:
        try:
            return await watch(self, version)
        except KubeGone:
            raise KubeUnavailable("gone") from None

    return instead(Reflector, "_watch", stubborn)


@defect("a new list deletes nothing")
def _() -> Any:
    return instead(Relist, "_confirmed", lambda self, missing, *, is_empty: frozenset())


@defect("the first page is treated as the list")
def _() -> Any:
    page = KubeApi.page

    async def first(self: Any, *args: Any, **named: Any) -> Any:
        found = await page(self, *args, **named)
        return type(found)(found.items, found.version, "")

    return instead(KubeApi, "page", first)


@defect("a silent watch is trusted")
def _() -> Any:
    watch = KubeApi.watch

    def patient(self: Any, path: str, **named: Any) -> Any:
        return watch(self, path, **{**named, "margin": 1e6})

    return instead(KubeApi, "watch", patient)


@defect("the queue loses adds")
def _() -> Any:
    add = WorkQueue.add

    def forgetful(self: Any, key: Any, **named: Any) -> None:
        if random.random() > 0.02:
            add(self, key, **named)

    return instead(WorkQueue, "add", forgetful)


@defect("adds during work are forgotten")
def _() -> Any:
    add = WorkQueue.add

    def forgetful(self: Any, key: Any, **named: Any) -> None:
        if key not in self._processing:
            add(self, key, **named)

    return instead(WorkQueue, "add", forgetful)


@defect("a Secret or Namespace queues no object")
def _() -> Any:
    record = Dependents.record

    def without_some(self: Any, owner: Any, reads: Any) -> None:
        record(self, owner, [read for read in reads if getattr(read, "kind", "") not in ("Secret", "Namespace")])

    return instead(Dependents, "record", without_some)


@defect("the store does not report deletes")
def _() -> Any:
    delete = Store.delete

    def silent(self: Any, key: Any) -> bool:
        listener, self._listener = self._listener, lambda read: None
        try:
            return delete(self, key)
        finally:
            self._listener = listener

    return instead(Store, "delete", silent)
