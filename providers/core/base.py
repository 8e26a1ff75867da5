"""The reconcile loop of one kind: from an object key to desired records.

It is generic: subclasses in `providers/` decide when a kind is translated, `translation/` defines the result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from functools import partial
from typing import ClassVar, Generic, TypeVar

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import CustomObject, KubeObject
from apisix_ingress.runtime.queue.workqueue import WorkQueue
from apisix_ingress.runtime.tasks import run_workers
from apisix_ingress.state.view import TrackingView, View
from providers.core.deps import ProviderDeps, limiter
from providers.core.offload import is_large
from providers.core.problems import unread
from providers.core.publisher import Publisher
from translation.core.holds import holds_by_name
from translation.core.outcome import NOT_SERVED, KeepLast, Outcome
from translation.core.scope import class_is_ours, in_scope
from translation.core.translators import translate
from translation.policies import fold

T = TypeVar("T", bound=KubeObject)

YIELD_EVERY, YIELD_SECONDS = 20, 0.01
"""Consecutive translations, and seconds of translating, before yielding to other tasks; 20 small ones take 2 ms."""


class Provider(Generic[T]):
    """Queue and reconcile loop of one kind that owns records."""

    kind: ClassVar[str]
    workers: ClassVar[int] = 2
    urgent: ClassVar[bool] = False
    """Whether records of this provider are written before others."""
    names_hosts: ClassVar[bool] = True
    """Whether the hosts of its records are those of its namespace; a Gateway has hosts for routes of others."""

    def __init__(self, deps: ProviderDeps) -> None:
        self._world = deps.world
        self._options = deps.options
        self._sink = deps.sink
        self._router = deps.router
        self._clock = deps.clock
        self._rests = deps.rests
        self._resting: set[ObjectKey] = set()
        self._offloader = deps.offloader
        self._handled = 0
        self._busy = 0.0
        self.queue: WorkQueue[ObjectKey] = WorkQueue(
            clock=deps.clock,
            limiter=limiter(deps.rng),
            name=f"provider-{self.kind}",
            group=self.namespace_of,
            observer=deps.observer(self.kind),
        )
        self._publisher = Publisher(
            deps, self.kind, urgent=self.urgent, names_hosts=self.names_hosts, since=self._since
        )

    def concerns(self, key: ObjectKey) -> bool:
        """Return whether a changed object of this kind has to be translated."""
        return True

    def namespace_of(self, key: ObjectKey) -> str:
        """Return the namespace in whose turn a key is handled."""
        return key.namespace

    def takes_long(self, key: ObjectKey) -> bool:
        """Return whether a translation would block the event loop for too long."""
        return is_large(self._world.stores[self.kind].get(key))

    def is_ours(self, item: T, view: View) -> bool:
        """Return whether an object belongs to this controller, wherever it is."""
        return class_is_ours(item, view, self._options)

    def translate(self, item: T, view: View) -> Outcome:
        """Translate an object with the translator that the table of kinds names."""
        assert isinstance(item, CustomObject)  # providers of built-in kinds override this method
        return translate(item, view, self._options, self._clock.now())

    def evaluate(self, key: ObjectKey, item: T | None, view: View) -> Outcome:
        """Return the outcome of the translation for a key, before policies."""
        if item is None or not in_scope(item.meta.namespace, view, self._options) or not self.is_ours(item, view):
            return NOT_SERVED
        if (problem := unread(item)) and problem.severity == "error":
            return KeepLast(holds_by_name(key), problems=(problem,))
        return self.translate(item, view)

    async def run(self) -> None:
        """Work on the queue until it is shut down and drained."""
        name = f"provider-{self.kind}"
        await run_workers(self.queue, self._handle, workers=self.workers, name=name, on_error=self.failed)

    def resume(self) -> None:
        """Queue all owners of resting namespaces now."""
        for key in self._resting:
            self.queue.add(key)

    def reconcile(self, key: ObjectKey) -> None:
        """Read an object, translate it, apply the policies and publish the outcome.

        Does not await, so it sees one consistent snapshot.
        """
        item = self._start(key)
        view = self._world.view()
        try:
            outcome = self._decide(key, item, view)
        finally:
            self._world.dependents.record(key, view.reads)
        self.publish(key, item, outcome)

    async def reconcile_offloaded(self, key: ObjectKey) -> None:
        """Reconcile a large object with its translation in a thread, unless its namespace has to rest."""
        if self._rests_now(key, self._offloader.queue):
            return
        item = self._start(key)
        if not self.takes_long(key):
            self._offloader.forget(key)
            self.queue.add(key)
            return
        began = self._clock.monotonic()
        outcome = await self._offloader.translate(key, partial(self._decide, key, item), partial(self.takes_long, key))
        if outcome is not None:
            self.publish(key, item, outcome)
        self._rests.worked(self._resting_group(key), self._clock.monotonic() - began)

    def _start(self, key: ObjectKey) -> T | None:
        """Return the object; the namespace that pays for its records is known before policies ask for it."""
        if not key.namespace and (payer := self.namespace_of(key)):
            self._world.budget.assign(key, payer)
        return self._world.stores[self.kind].get(key)

    def _decide(self, key: ObjectKey, item: T | None, view: TrackingView) -> Outcome:
        """Translate an object and apply the policies; it changes nothing, so it may run in a thread."""
        outcome = self.evaluate(key, item, view)
        return fold(outcome, self._publisher.inputs(key, item, view))

    def publish(self, key: ObjectKey, item: T | None, outcome: Outcome) -> None:
        """Publish an outcome; always called on the event loop."""
        self._publisher.publish(key, item, outcome)

    def settle_one(self, key: ObjectKey) -> None:
        """Reconcile without retries: a crash of the translation affects only its object."""
        try:
            self.reconcile(key)
        except Exception as error:
            self.failed(key, error)

    async def _handle(self, key: ObjectKey) -> None:
        if self._rests_now(key, self.queue):
            return
        if self.takes_long(key):
            self._offloader.queue.add(key)
            return
        began = self._clock.monotonic()
        self.reconcile(key)
        seconds = self._clock.monotonic() - began
        self._rests.worked(self._resting_group(key), seconds)
        self._handled += 1
        self._busy += seconds
        if self._busy >= YIELD_SECONDS or self._handled % YIELD_EVERY == 0:
            self._busy = 0.0
            await asyncio.sleep(0)

    def _resting_group(self, key: ObjectKey) -> Hashable:
        """Return what rests after long work: a namespace, or the objects of this kind in it if the kind is urgent."""
        namespace = self.namespace_of(key)
        return (self.kind, namespace) if self.urgent else namespace

    def _rests_now(self, key: ObjectKey, queue: WorkQueue[ObjectKey]) -> bool:
        """Return whether a namespace has to rest; then the object is queued for the end of the rest."""
        left = self._rests.left(self._resting_group(key)) if self._router.may_rest else 0.0
        if not left:
            self._resting.discard(key)
            return False
        self._resting.add(key)
        queue.add_after(key, left)
        return True

    def failed(self, key: ObjectKey, error: Exception) -> None:
        """Keep the records of an object whose translation crashed."""
        self._publisher.crashed(key, self._world.stores[self.kind].get(key), error)

    def _since(self, key: ObjectKey) -> float:
        """Return when the change of a queued key was seen."""
        return min(queue.dirty_since(key) for queue in (self.queue, self._offloader.queue))
