"""Writes conditions, and the addresses of Ingresses, to the status of objects. What they say is decided elsewhere.

Level-triggered: a key is woken, the wanted condition is asked for, and only a difference from what the API server has
is written. Conditions of other writers and other fields of the status are kept: lists can only be patched as a whole,
so every patch carries the resourceVersion that it was made from. What somebody else overwrites is put right.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import structlog

from apisix_ingress.errors import KubeConflict, KubeError, KubeNotFound, KubeUnavailable, LeadershipLost
from apisix_ingress.kube.status.backpressure import StatusBackpressure
from apisix_ingress.kube.status.condition_events import ConditionEvents
from apisix_ingress.kube.status.condition_list import differing, is_newer, merged, of_type, rendered, says
from apisix_ingress.kube.status.conflicts import StatusConflicts
from apisix_ingress.kube.status.debounce import Debouncer
from apisix_ingress.kube.status.events import EventRecorder
from apisix_ingress.kube.status.known_status import Held, KnownStatus, ReadApi
from apisix_ingress.kube.status.load_balancer import are_equal, is_set_by, ranked, shown
from apisix_ingress.kube.status.refusal_log import RefusalLog
from apisix_ingress.kube.status.text_limits import timestamp
from apisix_ingress.kube.status.throttle import StatusThrottle
from apisix_ingress.model.condition import CONDITION_TYPE, Condition
from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.model.keys import ObjectKey, namespace_of
from apisix_ingress.model.names import DEFAULT_CONTROLLER
from apisix_ingress.model.objects import CustomObject, KubeObject, Meta
from apisix_ingress.model.resources import CUSTOM_GROUP, RESOURCES, Resource
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.queue.rate_limiters import ExponentialBackoff
from apisix_ingress.runtime.queue.workqueue import QueueObserver, WorkQueue
from apisix_ingress.runtime.tasks import bounded, run_workers
from apisix_ingress.runtime.term import Term
from apisix_ingress.state.store import Store

log = structlog.get_logger()

INGRESS = "Ingress"

Wanted = Callable[[ObjectKey], Condition | None]
Addresses = Callable[[ObjectKey], Sequence[JsonObject] | None]

WRITE_SECONDS = 5.0
"""Bound of one request, unless a shorter lease asks for less."""
_SLOW_SECONDS = 60.0
_WORKERS = 4
BULK = 32
"""With so many statuses to be written, a line in the log for each that is well would cost a tenth of its write."""


class StatusApi(ReadApi, Protocol):
    """What the writer needs of the API server; `api.KubeApi` has it."""

    async def patch(self, path: str, body: object, *, manager: str = ..., timeout: float = ...) -> JsonObject:
        """Merge-patch an object in the name of a field manager."""


class StatusWriter:
    """Keeps the status of objects as wanted.

    Args:
        api: The API server.
        stores: By kind; their objects carry the status and version that the API server had.
        wanted: The condition that an object should have; None: leave it alone.
        clock: For retries, and the time of transitions.
        rng: For jitter.
        recorder: Gets an Event for each changed condition.
        addresses: `status.loadBalancer.ingress` that an Ingress should have; None: leave it alone.
        manager: In whose name is written: tells our addresses from those of other controllers.
        resources: Kind → resource.
        observer: Of the queue.
        busy: Namespace → whether its records wait for their write: those go first, for some seconds at most.
        news: Whether records were wanted differently a moment ago: then statuses are written slowly.
        timeout: Bound of one request in seconds; the term has to last as long when one begins.
        on_write: Told the kind of the object of each write, and how it ended: `ok` or the name of the error.
    """

    def __init__(
        self,
        api: StatusApi,
        stores: Mapping[str, Store[Any]],
        wanted: Wanted,
        *,
        clock: Clock,
        rng: random.Random,
        recorder: EventRecorder | None = None,
        addresses: Addresses = lambda key: None,
        manager: str = DEFAULT_CONTROLLER,
        resources: Mapping[str, Resource] = RESOURCES,
        observer: QueueObserver | None = None,
        busy: Callable[[str], bool] = lambda namespace: False,
        news: Callable[[], bool] = lambda: False,
        timeout: float = WRITE_SECONDS,
        on_write: Callable[[str, str], None] = lambda kind, outcome: None,
    ) -> None:
        self._on_write = on_write
        self._give_way = StatusBackpressure(busy, clock=clock)
        self._news = news
        self._timeout = timeout
        self._api = api
        self._stores = stores
        self._wanted = wanted
        self._clock = clock
        self._rng = rng
        self._addresses = addresses
        self._manager = manager
        self._resources = resources
        limiter: ExponentialBackoff[ObjectKey] = ExponentialBackoff(0.1, 60.0, 0.5, rng=rng)
        self.queue: WorkQueue[ObjectKey] = WorkQueue(
            clock=clock, limiter=limiter, name="status", group=namespace_of, observer=observer
        )
        self._woken = Debouncer(self.queue, clock=clock)
        self._latest = KnownStatus(api, timeout=timeout)
        self._pace = StatusThrottle(clock=clock)
        self._announcer = ConditionEvents(recorder, began=timestamp(clock.now()))
        self._contests = StatusConflicts(clock=clock, rng=rng)
        self._complaints = RefusalLog()
        self._without_status: set[str] = set()
        self._running = self._flushing = False

    def wake(self, key: ObjectKey, *, urgent: bool = False) -> None:
        """Check the status of an object soon; an urgent one before others. Cheap, also for objects without a status."""
        self._woken.wake(key, urgent=urgent)

    def noticed(self, item: KubeObject) -> None:
        """Look at a version of an object that is equal to the one before, but perhaps for its status."""
        if self._running and isinstance(item, CustomObject):
            key = item.meta.key
            delay = self._contests.overwritten(key, self._place(key, item.status))
            if delay is not None:
                self.queue.add_after(key, delay)

    def review(self, published: Sequence[JsonObject]) -> None:
        """Look at the Ingresses that are not ours and show what ours do: they may have left while nobody ran.

        The name that we write under is no proof: another installation may have it. Its addresses differ from ours.
        """
        for item in self._stores[INGRESS].values() if published else ():
            if not self._addresses(item.meta.key) and are_equal(published, shown(item.status)):
                self.queue.add(item.meta.key)

    async def run(self, term: Term) -> None:
        """Write until cancelled. Keys that were woken between terms are looked at first.

        Raises:
            ExceptionGroup: of LeadershipLost, the term is over.
        """

        async def handle(key: ObjectKey) -> None:
            if not self._flushing and (delay := self._give_way.delay(key)):
                self.queue.add_after(key, delay)
                return
            try:
                await self._reconcile(term, key)
            except KubeNotFound:
                self._forget(key)
            except (KubeUnavailable, KubeConflict):
                raise
            except KubeError as error:
                # Forbidden, or not to the API server's taste: it takes a person, so slow tries will do.
                self._complain(key, error)
                self.queue.add_after(key, _SLOW_SECONDS * (1 + self._rng.random()))

        self._contests.clear()
        self._running = True
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._woken.run(), name="status-woken")
                await run_workers(self.queue, handle, workers=_WORKERS, name="status", on_error=self._on_error)
        finally:
            self._running = False

    async def flush(self, seconds: float) -> bool:
        """Wait until nothing is left to write, so many seconds at most; return whether that came about.

        `run` has to be running. Writes that wait for their retry are not waited for. News make nothing slow meanwhile.
        """
        self._flushing = True
        try:
            await self._woken.hand_on()
            for key in self._give_way.release():
                self.queue.add(key)
            await bounded(self.queue.idle(), seconds, clock=self._clock)
        except TimeoutError:
            return False
        finally:
            self._flushing = False
        return True

    # One object.

    async def _reconcile(self, term: Term, key: ObjectKey) -> None:
        store = self._stores.get(key.kind)
        item = store.get(key) if store is not None else None
        if item is None:
            self._forget(key)
            return
        wanted, addresses = self._wanted(key), self._addresses(key)
        condition = self._settled(key, wanted)
        resource = self._resources[key.kind]
        if condition is not None and resource.group != CUSTOM_GROUP:
            # The status of built-in kinds has no such conditions: an Event has to do.
            self._announcer.announce_once(item.meta, condition)
        if key.kind in self._without_status or (condition is None and addresses is None):
            return
        term.check(self._timeout)
        held = await self._latest.of(resource, item)
        if addresses is not None:
            change = await self._balancer(resource, item.meta, addresses, wanted, held)
        elif condition is not None and resource.group == CUSTOM_GROUP:
            change = self._conditions(key, condition, held)
        else:
            return
        if change is not None:
            await self._write(term, resource, item, held, change=change, condition=condition)

    def _settled(self, key: ObjectKey, condition: Condition | None) -> Condition | None:
        """Return the condition, but bad news only when they last: what is missing is most often on its way."""
        left = self._pace.until_settled(key, condition)
        if left > 0:
            self.queue.add_after(key, left)
        return None if left > 0 else condition

    def _conditions(self, key: ObjectKey, condition: Condition, held: Held) -> JsonObject | None:
        """Return what has to be patched in the status of a custom resource, None if nothing has."""
        wanted, ours = rendered(condition), of_type(held.status, condition.type)
        if ours is not None:
            differs = differing(ours, wanted)
            if not differs:
                self._note(key, held.status)
            if not differs or is_newer(ours, condition) or self._is_too_soon(key, differs):
                return None
        return {"conditions": merged(held.status, wanted, timestamp(self._clock.now()))}

    async def _balancer(
        self, resource: Resource, meta: Meta, addresses: Sequence[JsonObject], condition: Condition | None, held: Held
    ) -> JsonObject | None:
        """Return what has to be patched in the status of an Ingress, None if nothing has.

        Addresses are published once the gateways have the records: whoever follows them, DNS for one, would send
        requests into the void. Until then, and when none are left, only what we set ourselves is touched.
        """
        current = shown(held.status)
        if addresses and are_equal(addresses, current):
            self._note(meta.key, held.status)
        if are_equal(addresses, current) or (addresses and condition is None):
            return None
        if not addresses or condition is None or condition.status != "True":
            raw = await self._latest.look(resource, meta) if current else {}
            if not is_set_by(self._manager, raw):
                return None
        return {"loadBalancer": {"ingress": list(addresses)}}

    def _is_too_soon(self, key: ObjectKey, differs: frozenset[str]) -> bool:
        """Whether only the words differ and they were written a moment ago; if so, look again later."""
        left = self._pace.until_reworded(key, differs)
        if left > 0:
            self.queue.add_after(key, left)
        return left > 0

    async def _write(
        self, term: Term, resource: Resource, item: Any, held: Held, *, change: JsonObject, condition: Condition | None
    ) -> None:
        key = item.meta.key
        path = resource.path(key.namespace, key.name, "status")
        body = {"metadata": {"resourceVersion": held.version}, "status": change}
        term.check(self._timeout)
        self._contests.saying(key, self._place(key, change))
        try:
            answer = await self._api.patch(path, body, manager=self._manager, timeout=self._timeout)
        except KubeError as error:
            self._on_write(key.kind, type(error).__name__)
            if isinstance(error, KubeConflict | KubeUnavailable):
                self._latest.doubt(key)
            if not isinstance(error, KubeNotFound):
                raise
            await self._find_out(resource, item.meta)
            return
        self._written(key, item.meta.resource_version, answer)
        self._log_written(key, change, condition)
        if condition is not None and "conditions" in change and not says(held.status, condition):
            self._announcer.announce(item.meta, condition)
        # Who flushes is about to stop: no change comes any more that has to go ahead.
        if pause := self._pace.until_next(news=not self._flushing and self._news()):
            await self._clock.sleep(pause)

    def _log_written(self, key: ObjectKey, change: JsonObject, condition: Condition | None) -> None:
        is_routine = self.queue.depth > BULK and (condition is None or condition.status == "True")
        line = log.debug if is_routine else log.info
        told = {"status": condition.status, "generation": condition.generation} if condition else {}
        line("status.written", object=str(key), fields=sorted(change), **told)

    def _written(self, key: ObjectKey, seen: str, answer: JsonObject) -> None:
        self._on_write(key.kind, "ok")
        self._pace.wrote(key)
        self._note(key, self._latest.learn(key, seen, answer).status)
        self._complaints.settle(key)

    def _note(self, key: ObjectKey, status: FrozenJson) -> None:
        """Remember what stands in our place now; an empty place is anybody's."""
        if words := self._place(key, status):
            self._contests.said(key, words)
        else:
            self._contests.forget(key)

    def _place(self, key: ObjectKey, status: FrozenJson) -> object:
        """Return what stands in our place of a status."""
        is_custom = self._resources[key.kind].group == CUSTOM_GROUP
        return of_type(status, CONDITION_TYPE) if is_custom else ranked(shown(status))

    async def _find_out(self, resource: Resource, meta: Meta) -> None:
        """Find out what a 404 on the status means: the object is gone, or its CRD has no status subresource."""
        try:
            await self._latest.look(resource, meta)
        except KubeNotFound:
            self._forget(meta.key)
            return
        self._without_status.add(resource.kind)
        remedy = "apply the CRDs of this version (apisix-ingress crds)"
        log.warning("status.unsupported", kind=resource.kind, reason="no status subresource", remedy=remedy)

    def _forget(self, key: ObjectKey) -> None:
        self._latest.forget(key)
        self._pace.forget(key)
        self._announcer.forget(key)
        self._contests.forget(key)
        self._complaints.settle(key)
        self.queue.forget(key)

    # What goes wrong.

    def _on_error(self, key: ObjectKey, error: Exception) -> None:
        """Decide how long a failed key waits; the queue has counted the failure already."""
        match error:
            case LeadershipLost():
                raise error
            case KubeConflict():
                log.debug("status.conflict", object=str(key))
            case KubeError():
                self._complain(key, error)
            case _:
                log.error("status.failed", object=str(key), exc_info=error)

    def _complain(self, key: ObjectKey, error: KubeError) -> None:
        self._complaints.tell(key, self._resources[key.kind].plural, error)
