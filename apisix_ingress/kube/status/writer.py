"""Writes conditions and the addresses of the gateways to the status of objects.

Level-triggered: a key is queued, the desired status is computed, and only a difference from the API server's status is
written. `schedule` decides when. Conditions of other clients and other fields of the status are kept: lists can only be
patched as a whole, so every patch carries the resourceVersion that it was computed from (decision 19 compares this with
server-side apply). If another client overwrites it, it is restored.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import structlog

from apisix_ingress.errors import (
    KubeConflict,
    KubeError,
    KubeNotFound,
    KubeUnavailable,
    LeadershipLost,
)
from apisix_ingress.kube.status.condition_list import differing, has_changed, is_newer, merged, of_type, rendered
from apisix_ingress.kube.status.conflicts import StatusConflicts
from apisix_ingress.kube.status.debounce import Debouncer
from apisix_ingress.kube.status.events import ConditionEvents, EventRecorder
from apisix_ingress.kube.status.interface import GatewayLoad, Idle, StatusObserver, WantedStatus
from apisix_ingress.kube.status.known_status import Held, KnownStatus, ReadApi
from apisix_ingress.kube.status.load_balancer import are_equal, is_set_by, ranked, shown
from apisix_ingress.kube.status.refusal_log import RefusalLog
from apisix_ingress.kube.status.schedule import RETRY_SECONDS, StatusSchedule, retry_limiter
from apisix_ingress.kube.status.text_limits import timestamp
from apisix_ingress.model.condition import CONDITION_TYPE, Condition
from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.model.keys import ObjectKey, namespace_of
from apisix_ingress.model.kinds.resource import Resource
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.names import DEFAULT_CONTROLLER
from apisix_ingress.model.objects import CustomObject, KubeObject, Meta
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.queue.workqueue import QueueObserver, WorkQueue
from apisix_ingress.runtime.tasks import ends_within, run_workers
from apisix_ingress.runtime.term import Term
from apisix_ingress.state.store import Store

log = structlog.get_logger()


_WHOLE = frozenset({"status"})
"""Name of the changed field if a whole document is written."""

WRITE_SECONDS = 5.0
"""Timeout of one request in seconds, unless a shorter lease requires less."""
_WORKERS = 4
_FAILURES_IN_A_ROW = 32
"""Urgent statuses before each other one: while gateways are being changed, a success takes as long as ten failures."""
BULK = 32
"""With more queued statuses, successes are logged at level debug: the line would cost a tenth of the write."""


class StatusApi(ReadApi, Protocol):
    """The methods of `api.KubeApi` that the writer uses."""

    async def patch(self, path: str, body: object, *, manager: str = ..., timeout: float = ...) -> JsonObject:
        """Merge-patch an object as a field manager."""


class StatusWriter:
    """Keeps the status of objects as desired.

    Args:
        api: The API server.
        stores: By kind; their objects have the last seen status and resourceVersion.
        wanted: The desired statuses.
        clock: Used for delays and transition times.
        rng: Used for jitter.
        gateways: The load of the gateways: their changes have priority.
        recorder: Receives an Event for each changed condition.
        observer: Notified of each write.
        queue_observer: Notified by the queue.
        manager: The field manager of our writes; it distinguishes our addresses from those of other controllers.
        resources: Kind → resource.
        timeout: Timeout of one request in seconds; the term must last at least that long when a request begins.
    """

    def __init__(
        self,
        api: StatusApi,
        stores: Mapping[str, Store[Any]],
        wanted: WantedStatus,
        *,
        clock: Clock,
        rng: random.Random,
        gateways: GatewayLoad | None = None,
        recorder: EventRecorder | None = None,
        observer: StatusObserver | None = None,
        queue_observer: QueueObserver | None = None,
        manager: str = DEFAULT_CONTROLLER,
        resources: Mapping[str, Resource] = RESOURCES,
        timeout: float = WRITE_SECONDS,
    ) -> None:
        self._api = api
        self._stores = stores
        self._wanted = wanted
        self._clock = clock
        self._rng = rng
        self._gateways = gateways or Idle()
        self._observer = observer or StatusObserver()
        self._manager = manager
        self._resources = resources
        self._timeout = timeout
        self.queue: WorkQueue[ObjectKey] = WorkQueue(
            clock=clock,
            limiter=retry_limiter(rng),
            name="status",
            urgent_burst=_FAILURES_IN_A_ROW,
            group=namespace_of,
            observer=queue_observer,
        )
        self._debouncer = Debouncer(self.queue, clock=clock)
        self._schedule = StatusSchedule(clock=clock)
        self._known = KnownStatus(api, timeout=timeout)
        self._conflicts = StatusConflicts(clock=clock, rng=rng)
        self._events = ConditionEvents(recorder, began=timestamp(clock.now()))
        self._refusals = RefusalLog()
        self._without_status: set[str] = set()
        self._without_addresses: set[str] = set()
        self._running = self._flushing = False

    def wake(self, key: ObjectKey, *, urgent: bool = False) -> None:
        """Check the status of an object soon; urgent ones first. Cheap, even for owners without a status."""
        if key.kind in self._resources:
            self._debouncer.wake(key, urgent=urgent)

    def noticed(self, item: KubeObject) -> None:
        """Check a version of an object that differs from the previous one at most in its status."""
        if self._running and isinstance(item, CustomObject):
            key = item.meta.key
            if self._resources[key.kind].status == "document":
                self._debouncer.wake(key)
                return
            delay = self._conflicts.overwritten(key, self._place(key, item.status))
            if delay is not None:
                self.queue.add_after(key, delay)

    def review(self, published: Sequence[JsonObject]) -> None:
        """Check objects of other controllers that show our addresses: their class may have changed meanwhile.

        The field manager is not sufficient: another installation may use the same one. Its addresses differ.
        """
        shows = [kind for kind, row in self._resources.items() if row.addressed and kind in self._stores]
        for item in (item for kind in shows for item in self._stores[kind].values()) if published else ():
            if not self._wanted.addresses(item.meta.key) and are_equal(published, shown(item.status)):
                self.queue.add(item.meta.key)

    async def run(self, term: Term) -> None:
        """Write until cancelled. Keys that were queued between terms are checked first.

        Raises:
            ExceptionGroup: Of LeadershipLost: the term is over.
        """

        async def handle(key: ObjectKey) -> None:
            try:
                await self._reconcile(term, key)
            except KubeNotFound:
                self._forget(key)
            except (KubeUnavailable, KubeConflict):
                raise
            except KubeError as error:
                # Forbidden or invalid: a user has to fix that, so slow retries suffice.
                self._log_refusal(key, error)
                self.queue.add_after(key, RETRY_SECONDS[1] * (1 + self._rng.random()))

        self._conflicts.clear()
        self._running = True
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._debouncer.run(), name="status-woken")
                await run_workers(self.queue, handle, workers=_WORKERS, name="status", on_error=self._on_error)
        finally:
            self._running = False

    async def flush(self, seconds: float, *, most: int | None = None) -> bool:
        """Wait up to this many seconds until nothing is left to write; return whether that succeeded.

        `run` must be running. Writes that are waiting for a retry are ignored. Meanwhile writes are not slowed
        down for changes of gateways: the process is about to stop.

        Args:
            seconds: The maximum time to wait.
            most: Do not wait at all if more statuses are queued.
        """
        self._flushing = True
        try:
            await self._debouncer.hand_on()
            if most is not None and self.queue.depth > most:
                return False
            return await ends_within(self.queue.idle(), seconds, clock=self._clock)
        finally:
            self._flushing = False

    # One object.

    async def _reconcile(self, term: Term, key: ObjectKey) -> None:
        store = self._stores.get(key.kind)
        item = store.get(key) if store is not None else None
        if item is None:
            self._forget(key)
            return
        if self._resources[key.kind].status == "document":
            await self._document(term, self._resources[key.kind], item)
            return
        wanted = self._wanted.condition(key)
        addresses = None if key.kind in self._without_addresses else self._wanted.addresses(key)
        if wanted is not None and 0 < item.meta.generation < wanted.generation:
            # The object was deleted and created again, and the condition is about the deleted one. Written now, its
            # higher generation would outrank every later condition. The translation of the new object queues it again.
            return
        condition = self._settled(key, wanted)
        resource = self._resources[key.kind]
        if condition is not None and resource.status != "conditions":
            # Built-in kinds have no such conditions in their status: only an Event reports it.
            self._events.announce_once(item.meta, condition)
        if key.kind in self._without_status or (condition is None and addresses is None):
            return
        term.check(self._timeout)
        held = await self._known.of(resource, item)
        change: JsonObject = {}
        if condition is not None and resource.status == "conditions":
            change |= self._conditions(key, condition, held)
        if addresses is not None:
            change |= await self._balancer(resource, item.meta, addresses, wanted, held)
        if change:
            await self._write(term, resource, item, held, change=change, condition=condition)

    async def _document(self, term: Term, resource: Resource, item: CustomObject) -> None:
        """Write the differences in the status of an object of the Gateway API."""
        key = item.meta.key
        now = timestamp(self._clock.now())
        if key.kind in self._without_status or not (change := self._wanted.document(key, item.status, now)):
            return
        if (left := self._schedule.until_rewrite(key, _WHOLE)) > 0:
            self.queue.add_after(key, left)
            return
        term.check(self._timeout)
        held = await self._known.of(resource, item)
        if held.status is not item.status:
            change = self._wanted.document(key, held.status, now)
        if change:
            await self._write(term, resource, item, held, change=change, condition=None)

    def _settled(self, key: ObjectKey, condition: Condition | None) -> Condition | None:
        """Return the condition, or None if it became False just now: then check it again later."""
        left = self._schedule.until_settled(key, condition)
        if left > 0:
            self.queue.add_after(key, left, urgent=True)
        return None if left > 0 else condition

    def _conditions(self, key: ObjectKey, condition: Condition, held: Held) -> JsonObject:
        """Return the patch of the conditions of a custom resource, empty if nothing differs."""
        wanted, ours = rendered(condition), of_type(held.status, condition.type)
        if ours is not None:
            differs = differing(ours, wanted)
            if not differs:
                self._note(key, held.status)
            if not differs or is_newer(ours, condition):
                return {}
            if (left := self._schedule.until_rewrite(key, differs)) > 0:
                self.queue.add_after(key, left, urgent=condition.status == "False")
                return {}
        return {"conditions": merged(held.status, wanted, timestamp(self._clock.now()))}

    async def _balancer(
        self, resource: Resource, meta: Meta, addresses: Sequence[JsonObject], condition: Condition | None, held: Held
    ) -> JsonObject:
        """Return the patch of the addresses of an object, empty if nothing differs.

        Addresses are published once the gateways have the records: DNS would send requests to them before that. Until
        then, and if none are left, only addresses that we set are changed.
        """
        current = shown(held.status)
        if addresses and are_equal(addresses, current):
            self._note(meta.key, held.status)
        if are_equal(addresses, current) or (addresses and condition is None):
            return {}
        if not addresses or condition is None or condition.status != "True":
            raw = await self._known.look(resource, meta) if current else {}
            if not is_set_by(self._manager, raw):
                return {}
        return {"loadBalancer": {"ingress": list(addresses)}}

    async def _write(
        self, term: Term, resource: Resource, item: Any, held: Held, *, change: JsonObject, condition: Condition | None
    ) -> None:
        key = item.meta.key
        path = resource.path(key.namespace, key.name, "status")
        body = {"metadata": {"resourceVersion": held.version}, "status": change}
        term.check(self._timeout)
        self._conflicts.sending(key, self._place(key, {**held.status, **change}))
        try:
            answer = await self._api.patch(path, body, manager=self._manager, timeout=self._timeout)
        except KubeError as error:
            self._observer.status_written(key.kind, type(error).__name__)
            if isinstance(error, KubeConflict | KubeUnavailable):
                self._known.mark_outdated(key)
                self._conflicts.forget_sent(key)
            if not isinstance(error, KubeNotFound):
                raise
            await self._find_out(resource, item.meta)
            return
        self._written(key, item.meta.resource_version, answer)
        if shown(change) and not shown(answer.get("status") or {}):
            self._without_addresses.add(key.kind)
            _log_unsupported(key.kind, "the CRD has no status.loadBalancer")
        self._log_written(key, change, condition)
        if condition is not None and "conditions" in change and has_changed(held.status, change, condition.type):
            self._events.announce(item.meta, condition)
        load = "idle" if self._flushing else self._gateways.load
        is_failure = condition is not None and condition.status == "False"
        if pause := self._schedule.until_next(load, queued=self.queue.depth, is_failure=is_failure):
            await self._clock.sleep(pause)

    def _log_written(self, key: ObjectKey, change: JsonObject, condition: Condition | None) -> None:
        is_routine = self.queue.depth > BULK and (condition is None or condition.status == "True")
        line = log.debug if is_routine else log.info
        details = {"status": condition.status, "generation": condition.generation} if condition else {}
        line("status.written", object=str(key), fields=sorted(change), **details)

    def _written(self, key: ObjectKey, seen: str, answer: JsonObject) -> None:
        self._observer.status_written(key.kind, "ok")
        self._schedule.wrote(key)
        self._note(key, self._known.learn(key, seen, answer).status)
        self._refusals.settle(key)

    def _note(self, key: ObjectKey, status: FrozenJson) -> None:
        """Remember our part of the status; an empty part may be written by any client."""
        if part := self._place(key, status):
            self._conflicts.written(key, part)
        else:
            self._conflicts.forget(key)

    def _place(self, key: ObjectKey, status: FrozenJson) -> object:
        """Return our part of a status."""
        row = self._resources[key.kind]
        ours = of_type(status, CONDITION_TYPE) if row.status == "conditions" else None
        addresses = ranked(shown(status)) if row.addressed else []
        return (ours, addresses) if ours or addresses else None

    async def _find_out(self, resource: Resource, meta: Meta) -> None:
        """Check what a 404 on the status means: the object is gone, or its CRD has no status subresource."""
        try:
            await self._known.look(resource, meta)
        except KubeNotFound:
            self._forget(meta.key)
            return
        self._without_status.add(resource.kind)
        _log_unsupported(resource.kind, "no status subresource")

    def _forget(self, key: ObjectKey) -> None:
        self._known.forget(key)
        self._schedule.forget(key)
        self._events.forget(key)
        self._conflicts.forget(key)
        self._refusals.settle(key)
        self.queue.forget(key)

    # Failures.

    def _on_error(self, key: ObjectKey, error: Exception) -> None:
        """Decide how long a failed key waits; the queue has counted the failure already."""
        match error:
            case LeadershipLost():
                raise error
            case KubeConflict():
                log.debug("status.conflict", object=str(key))
            case KubeError():
                self._log_refusal(key, error)
            case _:
                log.error("status.failed", object=str(key), exc_info=error)

    def _log_refusal(self, key: ObjectKey, error: KubeError) -> None:
        self._refusals.log(key, self._resources[key.kind].plural, error)


def _log_unsupported(kind: str, reason: str) -> None:
    remedy = "apply the CRDs of this version (apisix-ingress crds)"
    log.warning("status.unsupported", kind=kind, reason=reason, remedy=remedy)
