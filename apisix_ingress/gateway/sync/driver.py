"""Performs the effects of events: on slots, on the queue of due records, and on the observers of the cluster.

`records.transitions` defines the effects of each event. Nothing here awaits, so that each event is one atomic step.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple, TypeVar

import structlog

from apisix_ingress.errors import GatewayError, GatewayRejected
from apisix_ingress.gateway.backend import ObservedRecord
from apisix_ingress.gateway.sync.circuit_breaker import CircuitBreaker
from apisix_ingress.gateway.sync.closing import Closings
from apisix_ingress.gateway.sync.comparison.sentinels import Sentinels
from apisix_ingress.gateway.sync.config import SyncConfig
from apisix_ingress.gateway.sync.ordering.exposure_order import ExposureOrder
from apisix_ingress.gateway.sync.ordering.match_order import MatchOrder
from apisix_ingress.gateway.sync.ordering.write_order import WriteOrder
from apisix_ingress.gateway.sync.plan import Step, decide, must_stay
from apisix_ingress.gateway.sync.record_status import RecordStatus
from apisix_ingress.gateway.sync.records.retries import note_failure, note_rejection, offer_again, with_remedy
from apisix_ingress.gateway.sync.records.slot import WARN_AFTER, Delete, RecordSlot, Write
from apisix_ingress.gateway.sync.records.table import RecordTable
from apisix_ingress.gateway.sync.records.transitions import TRANSITIONS, Effect, Event, InvalidTransition, Phase
from apisix_ingress.gateway.sync.records.unacked_writes import UnackedWrites
from apisix_ingress.gateway.sync.records.unique_keys import UniqueKeys
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import UNKNOWN, Former, Record
from apisix_ingress.runtime.queue.rate_limiters import FastSlow
from apisix_ingress.runtime.queue.workqueue import WorkQueue

log = structlog.get_logger()

T = TypeVar("T")


class Detail(NamedTuple):
    """The arguments of an event; each effect reads the ones that it needs."""

    record: Record | None = None
    former: Former = UNKNOWN
    on: RecordKey | None = None
    error: GatewayError | None = None
    found: ObservedRecord | None = None
    at: float = 0.0
    closes: bool = False


NO_DETAIL = Detail()


class RecordDriver:
    """The records of one cluster in one session.

    Attributes:
        config: What all sessions of the cluster have in common.
        table: The slots of the records.
        order: The order of outstanding writes and deletes.
        exposure_order: The order of creations and deletions of routes.
        match_order: The order in which matches pass from one route to another.
        queue: The records that are due.
        unacked: When unacknowledged writes require an audit.
        unique_keys: The order of writes that want the same exclusive keys.
        sentinels: The records that show whether the cluster still has what was written.
        closings: The closing records of records that cannot be written.
        status: The sync state of each record.
        ever_wanted: Records that were desired at any time since this process started and still exist or are desired;
            their deletion is expected.
        breaker: Whether the cluster may be written to.
        first_outcome: Set once the cluster was compared with the desired records, or an outage began.
    """

    def __init__(self, config: SyncConfig, ever_wanted: set[RecordKey]) -> None:
        cluster, wanted, clock, observer = config.name, config.wanted, config.clock, config.observer
        self.config = config
        self.cluster = cluster
        self.table = RecordTable()
        self.order = WriteOrder()
        self.unacked = UnackedWrites(self.table)
        self.unique_keys = UniqueKeys(cluster, wanted, self.table, self.order)
        self.sentinels = Sentinels(self.table)
        self.ever_wanted = ever_wanted
        self.first_outcome = asyncio.Event()
        self.breaker = CircuitBreaker(
            cluster,
            clock=clock,
            rng=config.rng,
            on_change=self._breaker_changed,
            on_outage=self._outage_changed,
        )
        self.exposure_order = ExposureOrder(self.table, self.wanted, config.exposure)
        self.match_order = MatchOrder(
            self.table, self.wanted, lambda key: wanted.namespace(key, cluster), self.exposure_order.level
        )
        self.closings = Closings(self.table, self.wanted, config.closing, now=clock.monotonic)
        self.status = RecordStatus(cluster, wanted, self.table, self.order, self.breaker, self.closings)
        # The retries of the queue are not used: the backoff of a record is in its slot.
        self.queue: WorkQueue[RecordKey] = WorkQueue(
            clock=clock, limiter=FastSlow(0.0, 0.0, 0), name=f"sync-{cluster}", group=self._namespace
        )
        self._wanted = wanted
        self._clock = clock
        self._observer = observer
        self._log = log.bind(cluster=cluster)
        # The table of transitions, with effects replaced by functions.
        effects = self._effects()
        self._rules = {
            phase: {event: (after, tuple(effects[each] for each in found)) for event, (after, found) in row.items()}
            for phase, row in TRANSITIONS.items()
        }

    def post(self, slot: RecordSlot, event: Event, detail: Detail = NO_DETAIL) -> None:
        """Change the phase of a record according to an event, and perform the effects.

        Raises:
            InvalidTransition: The event cannot happen in this phase, which is a bug.
        """
        rule = self._rules[slot.phase].get(event)
        if rule is None:
            raise InvalidTransition(f"{event} while {slot.phase}")
        slot.phase, effects = rule
        if slot.blocked_on is not None and slot.phase is not Phase.BLOCKED:
            self.table.unblock(slot)
        for perform in effects:
            perform(slot, detail)

    def mark(
        self,
        keys: Collection[RecordKey],
        *,
        urgent: bool = False,
        same_batch: bool = False,
        former: Former = UNKNOWN,
    ) -> None:
        """Queue records that may differ from the desired ones; `former` is what their owner wanted before.

        The records of one call are a batch, whose deletes wait for its writes. With `same_batch` they join the batch of
        the previous call.
        """
        if not same_batch:
            self.order.begin_batch(self._cancelled(keys))
        for key in keys:
            record, slot = self.wanted(key), self.table.slot(key)
            # It is retried anyway: the desired record may no longer want the key that the holder has.
            if slot.holder is not None:
                self.table.set_holder(slot, None)
            slot.release = False
            slot.urgent = slot.urgent or urgent
            if record is not None:
                self.ever_wanted.add(key)
                if slot.is_withheld:
                    self.table.set_withheld(slot, is_withheld=False)
            self.post(slot, Event.UNWANTED if record is None else Event.WANTED, Detail(record, former))
            if self.breaker.is_tripped:
                self.report(slot)

    def _cancelled(self, keys: Collection[RecordKey]) -> Iterator[Write | Delete]:
        """Yield the outstanding orders to write records that are not desired any more, and to delete desired ones."""
        for key in keys:
            order = self.table.get(key).order
            if order is not None and isinstance(order, Write) is (self.wanted(key) is None):
                yield order

    def remember(self, keys: Iterable[RecordKey]) -> None:
        """Record which of the keys are desired, while nothing is queued yet."""
        for key in keys:
            if self.wanted(key) is not None:
                self.ever_wanted.add(key)
            if self.breaker.is_tripped:
                self.report(self.table.get(key))

    def wanted(self, key: RecordKey) -> Record | None:
        """Return the record that the cluster should have under a key, or None."""
        return self._wanted.get(key, self.cluster)

    def decide(self, key: RecordKey) -> Step:
        """Return what to do about a record now."""
        return self.closings.instead_of(self.needed(key))

    def needed(self, key: RecordKey) -> Step:
        """Return what to do about a record now, whether or not its write is possible."""
        return decide(key, self.wanted, self.table, self._wanted.is_held)

    def may_send(self, slot: RecordSlot, record: Record | None) -> bool:
        """Return whether no other route has to be written, or deleted, first. If not, the key is queued when it may."""
        order = self.exposure_order
        if order.is_idle:
            return True
        if record is None:
            return order.may_delete(slot, _former(slot).namespace)
        return order.may_write(slot, record, slot.namespace or self._owner_namespace(slot))

    def awaited(self, slot: RecordSlot, record: Record | None) -> RecordKey | None:
        """Return the route that has to take over the match of a route before it is written, or deleted; or None."""
        if self.match_order.is_idle:
            return None
        if record is not None:
            return self.match_order.awaited(slot, record, slot.namespace or self._owner_namespace(slot))
        former = _former(slot)
        return self.match_order.awaited(slot, None, former.namespace, former.records)

    def withheld(self) -> set[RecordKey]:
        """Return the records whose deletion was held back."""
        return {slot.key for slot in self.table if slot.is_withheld}

    def enqueue(self, slot: RecordSlot, seconds: float = 0.0) -> None:
        """Queue a record again with the same urgency, now or for later."""
        self.queue.add_after(slot.key, seconds, urgent=slot.urgent)

    def report(self, slot: RecordSlot) -> None:
        """Report the state of a record to the observer."""
        self._observer.outcome(self.cluster, slot.key, self.status.state(slot))

    def unblock_others(self, slot: RecordSlot) -> None:
        """Queue the records that wait for this one, and deletes that may be due."""
        for waiter in tuple(self.table.blocked.get(slot.key, ())):
            self.post(self.table.slot(waiter), Event.UNBLOCK)
        self.release_deletes()

    def release_deletes(self) -> None:
        """Queue the deletes that no longer wait for a write, and the routes that no longer wait for others."""
        for key in (*self.order.due(), *self.exposure_order.due(), *self.match_order.due()):
            self.enqueue(self.table.slot(key))

    def retry(self, slot: RecordSlot, error: GatewayError) -> None:
        """Retry a record after its backoff; if it failed often, deletes no longer wait for it."""
        self.post(slot, Event.RETRY_LATER, Detail(error=error))
        if slot.failures == WARN_AFTER:
            self._log.warning("record.failing", record=str(slot.key), error=with_remedy(error))
        if slot.persistent_error is not None:
            self.post(slot, Event.GAVE_UP)

    def wait_for_holder(self, slot: RecordSlot, holder: RecordKey) -> None:
        """Retry a record as soon as the holder of one of its exclusive keys is written or deleted.

        The holder may be about to be deleted, so deletes no longer wait for this record. If records keep waiting for
        each other in a cycle, this one releases its keys, unless it has recently done so without success.
        """
        self.table.set_holder(slot, holder)
        self.post(slot, Event.GAVE_UP)
        if self.unique_keys.may_release(slot, self._clock.monotonic()):
            slot.release = True
            self.enqueue(slot)

    def tick(self, now: float) -> None:
        """Queue what becomes due with time: retries of rejected records, what is to be closed or no longer held."""
        self.unique_keys.prune(now)
        for key in self.closings.overdue():
            self.post(self.table.slot(key), Event.UNBLOCK)
        if due := [slot.key for slot in self.table.tick(now) if self._is_released(slot) or offer_again(slot, now)]:
            self.mark(due)

    def _is_released(self, slot: RecordSlot) -> bool:
        """Return True, once, when a record that was held need not stay any longer."""
        if not slot.is_held or must_stay(slot.key, self.wanted, self.table, self._wanted.is_held):
            return False
        slot.is_held = False
        return True

    def _namespace(self, key: RecordKey) -> str:
        """Return the namespace that a record counts towards in the fair queue."""
        return self.table.get(key).namespace or self._wanted.namespace(key, self.cluster)

    def _breaker_changed(self) -> None:
        for slot in self.table:
            if slot.error is not None and not self.breaker.is_tripped:
                self.enqueue(slot)
            if isinstance(slot.order, Write):
                self.report(slot)

    def _outage_changed(self, is_open: bool) -> None:
        if is_open:
            self.first_outcome.set()
        self._observer.breaker(self.cluster, is_open)

    # Effects. Each is described in `transitions.Effect`.

    def _effects(self) -> dict[Effect, Callable[[RecordSlot, Detail], None]]:
        table, order, config = self.table, self.order, self.config
        return {
            Effect.ORDER: self._order,
            Effect.TAKE_NEXT: lambda slot, _: order.take_next(slot, in_place=False),
            Effect.TAKE_NEXT_IN_PLACE: lambda slot, _: order.take_next(slot, in_place=True),
            Effect.DROP_ORDER: self._drop_order,
            Effect.STOP_COUNTING: self._stop_counting,
            Effect.WAIT: self._wait,
            Effect.RESUME: lambda slot, _: order.resume(slot),
            Effect.START: self._start,
            Effect.KEEP_WRITTEN: self._keep_written,
            Effect.KEEP_UNWRITTEN: lambda slot, _: table.write_failed(slot),
            Effect.KEEP_REJECTED: self._keep_rejected,
            Effect.KEEP_UNKNOWN: self._keep_unknown,
            Effect.KEEP_FOUND: lambda slot, of: table.found(slot, _required(of.found)),
            Effect.KEEP_MISSING: lambda slot, _: table.missing(slot),
            Effect.KEEP_FOREIGN: lambda slot, _: table.foreign(slot),
            Effect.KEEP_REPORTED_MISSING: lambda slot, _: table.reported_missing(slot),
            Effect.CLEAR_CONFLICTS: self._clear_conflicts,
            Effect.CLEAR_FAILURES: self._clear_failures,
            Effect.BACK_OFF: lambda slot, of: self.enqueue(slot, note_failure(slot, _required(of.error), config.rng)),
            Effect.ENQUEUE: lambda slot, _: self.enqueue(slot),
            Effect.UNBLOCK_OTHERS: lambda slot, _: self.unblock_others(slot),
            Effect.REPORT: lambda slot, _: self.report(slot),
            Effect.SETTLE: self._settle,
        }

    def _order(self, slot: RecordSlot, of: Detail) -> None:
        namespace = self._owner_namespace(slot)
        self.order.order(slot, of.record, namespace, of.former)
        if slot.key.kind == "routes":
            self.exposure_order.ordered(slot, of.record, namespace or of.former.namespace)
            self.match_order.ordered(slot.key, of.record)
            for key in self.exposure_order.due():
                self.enqueue(self.table.slot(key))

    def _owner_namespace(self, slot: RecordSlot) -> str:
        return self._wanted.namespace(slot.key, self.cluster)

    def _stop_counting(self, slot: RecordSlot, _: Detail) -> None:
        self.order.stop_counting(slot)
        self._give_up(slot)

    def _give_up(self, slot: RecordSlot) -> None:
        """Let routes that wait for this one proceed if it is not going to be written soon."""
        if self.exposure_order.is_awaited(slot.key) and self.closings.is_given_up(self.needed(slot.key)):
            self.exposure_order.settled(slot)

    def _drop_order(self, slot: RecordSlot, _: Detail) -> None:
        self.order.drop(slot)
        if slot.key.kind == "routes":
            self.exposure_order.settled(slot)
            self.match_order.settled(slot)
        slot.urgent = False
        if slot.observed is None:
            self.table.timed[slot.key] = slot  # it may be empty now

    def _wait(self, slot: RecordSlot, of: Detail) -> None:
        self.table.block(slot, _required(of.on))
        self.order.wait(slot, of.record, self._owner_namespace(slot))
        self._give_up(slot)
        self.release_deletes()

    def _start(self, slot: RecordSlot, of: Detail) -> None:
        if slot.holder is not None:
            self.table.set_holder(slot, None)
        self.table.write_started(slot, of.record, of.at, closes=of.closes)

    def _keep_written(self, slot: RecordSlot, _: Detail) -> None:
        record, started, closes = _required(slot.flight)
        self.table.write_succeeded(slot)
        if slot.key.kind == "routes":
            self.exposure_order.written(slot.key, record)
        self.sentinels.written(slot.key, deleted=record is None)
        self.unacked.acknowledged(slot, record, started)
        # A record that reappears because an earlier write landed late is still expected.
        if record is None and slot.may_be_overwritten == -math.inf:
            self.ever_wanted.discard(slot.key)
        if record is not None and record.takes:
            self.unique_keys.written(record, self._clock.monotonic())
        if not closes:
            slot.rejection, slot.refused_closings = None, ()
        for successor in tuple(self.table.successors.get(slot.key, ())):
            self.post(self.table.slot(successor), Event.HANDED_OVER)

    def _keep_unknown(self, slot: RecordSlot, _: Detail) -> None:
        record = _required(slot.flight).record
        self.table.write_unknown(slot)
        if record is not None and record.takes:
            self.unique_keys.written(record, self._clock.monotonic())

    def _keep_rejected(self, slot: RecordSlot, of: Detail) -> None:
        assert isinstance(of.error, GatewayRejected)
        record, _, closes = _required(slot.flight)
        self.table.write_failed(slot)
        if closes and record is not None:
            slot.refused_closings += (record.payload,)
            return
        slot.refused_closings = ()
        note_rejection(slot, record, of.error.message, self._clock.monotonic(), self.config.rng)

    def _clear_conflicts(self, slot: RecordSlot, _: Detail) -> None:
        self.table.set_holder(slot, None)
        slot.rejection, slot.released_at = None, -math.inf

    def _clear_failures(self, slot: RecordSlot, _: Detail) -> None:
        self.table.set_holder(slot, None)
        slot.failures = 0

    def _settle(self, slot: RecordSlot, _: Detail) -> None:
        slot.error, slot.failures = None, 0
        self.unblock_others(slot)
        self.report(slot)


def _former(slot: RecordSlot) -> Former:
    """Return what the owner of a record that is to be deleted wanted before."""
    return slot.order.former if isinstance(slot.order, Delete) else UNKNOWN


def _required(detail: T | None) -> T:
    """Return an argument that this kind of event always has."""
    assert detail is not None
    return detail
