"""Runs a reflector between an API server over HTTP and a store."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from apisix_ingress.kube.client.api import KubeApi
from apisix_ingress.kube.informer.reflector import Reflector
from apisix_ingress.kube.informer.watch_events import ReflectorObserver, ReflectorOptions
from apisix_ingress.model.keys import ObjectKey, Read
from apisix_ingress.model.kinds.resource import Resource
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.runtime.clock import MonotonicClock
from apisix_ingress.state.store import Store
from tests.fakes.kube.apiserver import FakeApiServer, Manifest
from tests.waiting import until

OPTIONS = partial(
    ReflectorOptions,
    page_size=10,
    watch_shortest=1.0,
    watch_longest=1.0,
    watch_margin=0.5,
    confirm_watches=1,
    backoff_base=0.01,
    backoff_cap=0.05,
    absent_poll=0.02,
    absent_hold=0.05,
    hold_seconds=0.02,
)
"""Waits that are short enough for tests."""
QUICK = OPTIONS(silent_watches=1000, yield_every=5)


class Notes(ReflectorObserver):
    """An observer that records everything."""

    def __init__(self) -> None:
        self.lists: list[int] = []
        self.changes: list[str] = []
        self.failures: list[str] = []
        self.holds: list[int] = []
        self.undecodables = 0

    def listed(self, kind: str, objects: int, seconds: float) -> None:
        self.lists.append(objects)

    def changed(self, kind: str, operation: str) -> None:
        self.changes.append(operation)

    def undecodable(self, kind: str) -> None:
        self.undecodables += 1

    def failed(self, kind: str, reason: str) -> None:
        self.failures.append(reason)

    def held(self, kind: str, objects: int) -> None:
        self.holds.append(objects)


class ReflectorHarness:
    """A server, a store and the reflector between them."""

    def __init__(
        self,
        server: FakeApiServer,
        api: KubeApi,
        resource: Resource,
        options: ReflectorOptions,
        clock: MonotonicClock,
        collections: int = 1,
    ) -> None:
        self.server = server
        self.api = api
        self.reads: list[Read] = []
        self.notes = Notes()
        self.plural = resource.plural
        self.store: Store[Any] = Store(resource.kind, self.reads.append)
        self.reflector = Reflector(
            resource,
            self.store,
            api,
            clock=clock,
            rng=random.Random(1),
            collections=collections,
            options=options,
            observer=self.notes,
        )

    def names(self) -> set[str]:
        return {item.meta.name for item in self.store.values()}

    def get(self, name: str) -> Any:
        return self.store.get(ObjectKey(self.store.kind, "default", name))

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for a condition."""
        await until(condition, what, state=self._state)

    async def until_names(self, *names: str) -> None:
        await self.until(lambda: self.names() == set(names), f"names {names}")

    async def until_watching(self) -> None:
        await self.until(lambda: self.server.watching(self.plural) > 0, "a watch")

    def _state(self) -> str:
        return f"names {sorted(self.names())[:5]}, problem {self.reflector.problem!r}"


class NoPatience(MonotonicClock):
    """A clock on which long waits never end."""

    async def sleep(self, seconds: float) -> None:
        await (asyncio.Event().wait() if seconds > 0.3 else super().sleep(seconds))


@contextlib.asynccontextmanager
async def reflecting(
    server: FakeApiServer,
    tmp_path: Path,
    kind: str = "ApisixRoute",
    options: ReflectorOptions = QUICK,
    only: ObjectKey | None = None,
    clock: MonotonicClock | None = None,
    collections: int = 1,
) -> AsyncIterator[ReflectorHarness]:
    async with await KubeApi.connect(str(server.kubeconfig(tmp_path / "kubeconfig"))) as api:
        harness = ReflectorHarness(
            server, api, replace(RESOURCES[kind], only=only), options, clock or MonotonicClock(), collections
        )
        task = asyncio.create_task(harness.reflector.run())
        try:
            yield harness
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


def route(name: str, **spec: Any) -> Manifest:
    return {
        "kind": "ApisixRoute",
        "apiVersion": "apisix.apache.org/v2",
        "metadata": {"name": name},
        "spec": spec or {"http": []},
    }


def put_routes(server: FakeApiServer, count: int) -> set[str]:
    return {server.put(route(f"r{number:03}"))["metadata"]["name"] for number in range(count)}
