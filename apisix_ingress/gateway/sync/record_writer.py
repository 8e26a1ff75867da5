"""One record at a time: from a dirty key to a write and to what its outcome means for the record and for others.

Workers call `RecordWriter.handle` for different keys at once. A state change never spans an await, except for the
write itself, which is noted before (`take_off`) and after it (`landed`, `refused`, `lost`). `comparison` reads lists.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable
from functools import partial

import structlog

from apisix_ingress.errors import (
    GatewayError,
    GatewayRedirected,
    GatewayRejected,
    GatewayUnauthorized,
    GatewayUnavailable,
)
from apisix_ingress.gateway.backend import Backend, DependencyPending, NotTried
from apisix_ingress.gateway.sync.circuit_breaker import CircuitBreaker
from apisix_ingress.gateway.sync.comparison.pre_write_check import PreWriteChecks
from apisix_ingress.gateway.sync.comparison.sentinels import Sentinels
from apisix_ingress.gateway.sync.observer import Operation, SyncObserver
from apisix_ingress.gateway.sync.ordering.write_order import WriteOrder
from apisix_ingress.gateway.sync.plan import Step, Wanted, decide
from apisix_ingress.gateway.sync.record_status import RecordStatus
from apisix_ingress.gateway.sync.records.handover import Handover, letting_go
from apisix_ingress.gateway.sync.records.observed import ObservedState
from apisix_ingress.gateway.sync.records.quarantine import Quarantine
from apisix_ingress.gateway.sync.records.rate_limit import RecordRateLimit
from apisix_ingress.gateway.sync.records.retries import PATIENCE, RetryTracker, told
from apisix_ingress.gateway.sync.records.unacked_writes import UnackedWrites
from apisix_ingress.gateway.sync.records.unique_keys import UniqueKeys
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import UNKNOWN, Former, Record
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.queue.workqueue import WorkQueue
from apisix_ingress.runtime.term import Term

log = structlog.get_logger()

LATE = 2
"""A gateway that has kept a write waiting for so long may carry it out later by so many times as long again.

Nothing shows it: a guess, on which it hangs how long a lease is held at a stop.
"""

BULK = 32
"""With so many writes outstanding a line in the log for each would cost as much as its write: they go to debug."""

FOREIGN_REMEDY = "the gateway has a record of this id which is not ours, so that it is not written: remove it there"


class RecordWriter:
    """State and rules of writing to one cluster, for one term.

    Attributes:
        holdings: What the cluster is known or believed to hold.
        known: Records that were wanted at some time in this process' life and are still there or wanted.
        withheld: Records whose deletion a sweep held back.
        held: Records that are not wanted and were found to be held; to be looked at again.
        doubts: Writes that nobody answered.
        touched: Records that were written since it was set; None while nobody asks.
        at_rest: Set while no write is under way.
        sentinels: The records that show whether the cluster still has what was written.
        looks: Whether ids are free that are new.
        outlook: How far each record is.
        version: What the gateway called itself when it was read last, or empty.
    """

    def __init__(
        self,
        cluster: str,
        backend: Backend,
        wanted: Wanted,
        *,
        clock: Clock,
        rng: random.Random,
        observer: SyncObserver,
    ) -> None:
        self.cluster = cluster
        self.holdings = ObservedState()
        self.doubts = UnackedWrites()
        self.sentinels = Sentinels(self.holdings, self.doubts)
        self.known: set[RecordKey] = set()
        self.withheld: set[RecordKey] = set()
        self.held: set[RecordKey] = set()
        self.touched: set[RecordKey] | None = None
        self.version = ""
        self.at_rest = asyncio.Event()
        self.at_rest.set()
        self.quarantine = Quarantine(clock=clock, rng=rng)
        told = partial(observer.breaker, cluster)
        self.gate = CircuitBreaker(cluster, clock=clock, rng=rng, listener=self._gate_changed, told=told)
        self.agenda = WriteOrder()
        self.pace = RecordRateLimit()
        self._log = log.bind(cluster=cluster)
        self._backend = backend
        self._wanted = wanted
        self._clock = clock
        self._observer = observer
        self.looks = PreWriteChecks(backend, self.holdings, clock)
        self._setbacks = RetryTracker(rng=rng)
        self.queue: WorkQueue[RecordKey] = WorkQueue(
            clock=clock, limiter=self._setbacks.limiter, name=f"sync-{cluster}", group=self._namespace
        )
        self._urgent: set[RecordKey] = set()
        self._handover = Handover()
        self._contention = UniqueKeys(cluster, wanted, self.holdings, self.agenda)
        # They wait for each other in a circle: they are written once without what they are to get.
        self._letting_go: set[RecordKey] = set()
        self.outlook = RecordStatus(
            cluster,
            wanted,
            self.holdings,
            agenda=self.agenda,
            gate=self.gate,
            quarantine=self.quarantine,
            setbacks=self._setbacks,
        )

    def _wanted_at(self, key: RecordKey) -> Record | None:
        return self._wanted.get(key, self.cluster)

    def is_held(self, key: RecordKey, name: str, hosts: tuple[str, ...] | None) -> bool:
        """Say whether a record that is not wanted must stay."""
        return key in self.withheld or self._wanted.is_held(key, name, hosts)

    def remember(self, keys: Iterable[RecordKey]) -> None:
        """Note which of the records are wanted: their deletion later on is no surprise."""
        for key in keys:
            if self._wanted.get(key, self.cluster) is not None:
                self.known.add(key)
            if not self.gate.is_open:
                self.tell(key)

    def mark(
        self,
        keys: Iterable[RecordKey],
        *,
        urgent: bool = False,
        same_turn: bool = False,
        former: Former = UNKNOWN,
    ) -> None:
        """Queue records that may differ from what is wanted; `former` is what their owner wanted before.

        Those of one call belong together: deletes among them wait for the writes. With `same_turn` they belong to
        those of the call before as well.
        """
        if not same_turn:
            self.agenda.turn()
        for key in keys:
            # It is tried again anyway: what it was refused for may not be wanted any more.
            self._handover.tried(key)
            self._letting_go.discard(key)
            flying, record = key in self.holdings.flying, self._wanted.get(key, self.cluster)
            if record is None:
                self.agenda.mark_delete(key, former, flying=flying)
            else:
                self.known.add(key)
                self.withheld.discard(key)
                self.agenda.mark_write(key, record, self._wanted.namespace(key, self.cluster), flying=flying)
            if urgent:
                self._urgent.add(key)
            self.queue.add(key, urgent=urgent)
            if not self.gate.is_open:
                self.tell(key)

    def _namespace(self, key: RecordKey) -> str:
        """Return the namespace whose turn it is when a record is written or deleted."""
        return self.agenda.namespace(key) or self._wanted.namespace(key, self.cluster)

    def enqueue(self, key: RecordKey) -> None:
        """Queue a record once more, as urgent as it was."""
        self.queue.add(key, urgent=key in self._urgent)

    def wake(self, key: RecordKey) -> None:
        """Queue the records that waited for this one, and the deletes that waited for its write."""
        for waiter in self.agenda.woken(key):
            self.enqueue(waiter)
        for delete in self.agenda.due():
            self.enqueue(delete)

    def tell(self, key: RecordKey) -> None:
        """Tell the observer the state of a record."""
        self._observer.outcome(self.cluster, key, self.outlook.state(key))

    async def handle(self, key: RecordKey, term: Term) -> bool:
        """Do what is to be done about a dirty record now; say whether that was a write.

        Raises:
            LeadershipLost: The write was not started.
        """
        self.agenda.begin(key)
        step = decide(key, self._wanted_at, self.holdings, self.is_held)
        many = self.agenda.size > BULK
        if step.act == "put" and self.looks.is_due(key, many=many) and not self.quarantine.blocks(key, step.record):
            if not await self._look(key, many=many):
                return True
            self.agenda.begin(key)
            step = decide(key, self._wanted_at, self.holdings, self.is_held)
        if step.act in ("put", "delete"):
            if self._is_due(key, step.record):
                await self._send(key, step.record, term)
                return True
        elif step.act == "wait":
            self._park(key, step)
        else:
            if step.act == "hold":
                self.held.add(key)
            elif step.act == "refuse" and step.record is not None:
                self._log.warning("record.foreign", record=str(key), name=step.record.name, remedy=FOREIGN_REMEDY)
            elif step.act == "nothing":
                self.quarantine.lift(key)
                self._handover.tried(key)
                self._handover.done(key)
            self._settle(key)
        return False

    async def _look(self, key: RecordKey, *, many: bool) -> bool:
        """Look what the gateway has under a new id; say whether to go on, else the key comes back by itself."""
        try:
            await self.looks.look(key, many=many)
        except GatewayRejected:
            return True  # it has more to say of the write
        except GatewayUnauthorized as error:
            self.enqueue(key)
            self.gate.shut(error)
            return False
        except GatewayError as error:
            self._retry(key, error)
            return False
        if not self.gate.is_passable:
            self.enqueue(key)
            return False
        return True

    def _is_due(self, key: RecordKey, record: Record | None) -> bool:
        """Say whether a write may start now; if not, the key comes back by itself when it may."""
        if record is None and not self.agenda.may_delete(key):
            return False
        if self.quarantine.blocks(key, record):
            self._settle(key)
            return False
        now, delay = self._clock.monotonic(), 0.0
        if record is not None and record.takes:
            self._contention.proceed(key)
            if (other := self._contention.ahead(record)) is not None:
                self._contention.wait(key)
                self._park(key, Step("wait", record, other))
                return False
            delay = self._contention.delay(record, now)
        if delay <= 0:
            delay = self.pace.delay(key, now)
        if delay > 0:
            self.queue.add_after(key, delay, urgent=key in self._urgent)
        return delay <= 0

    async def _send(self, key: RecordKey, record: Record | None, term: Term) -> None:
        """Write a record; one that lets go is written without what it is to get, and then as it is wanted."""
        circle = self._handover.circle(key) if key in self._letting_go else ()
        self._letting_go.discard(key)
        if record is None or not circle:
            if await self._write(key, record, term):
                self._handover.done(key)
                if record is None and self._wanted_at(key) is not None:
                    self.mark([key])  # it made way for another name
            return
        self._log.warning("record.let_go", record=str(key), name=record.name)
        if await self._write(key, letting_go(record, self.holdings.applied.get(key)), term):
            self._handover.let_go(key, self._clock.monotonic())
            for member in circle:
                self.pace.forget(member)  # what guards requests must not be missing for longer than it takes
            self.mark([key])

    async def _write(self, key: RecordKey, record: Record | None, term: Term) -> bool:
        """Write a record; say whether the gateway had its last word on it: it took the record, or rejected it."""
        term.check(self._backend.timeout)
        self._take_off(key, record)
        started = self._clock.monotonic()
        try:
            in_doubt = await (self._backend.delete(key) if record is None else self._backend.put(record))
        except NotTried as error:
            self.holdings.refused(key)
            self._postpone(key, error)
        except GatewayError as error:
            if error.sent:
                self._doubt(key, record, term, started)
            self._observe(key, record, started, type(error).__name__)
            self._fail(key, record, error)
            return isinstance(error, GatewayRejected)
        except BaseException:
            # Cancelled at the end of the term, or a bug: it may have been carried out.
            self._doubt(key, record, term, started)
            self.holdings.lost(key)
            raise
        else:
            if in_doubt:
                self._doubt(key, record, term, started)
            self._land(key, record, started)
            return True
        finally:
            if record is not None and record.takes:
                self.wake(key)  # however it ended: who is older goes before its next try
            if not self.holdings.flying:
                self.at_rest.set()
        return False

    def _take_off(self, key: RecordKey, record: Record | None) -> None:
        self._handover.tried(key)
        self.holdings.take_off(key, record)
        self.at_rest.clear()
        if self.touched is not None:
            self.touched.add(key)

    def _doubt(self, key: RecordKey, record: Record | None, term: Term, started: float) -> None:
        """Note that a write was not answered: the gateway may carry it out yet, at least within its bound."""
        now, bound = self._clock.monotonic(), self._backend.timeout
        # What took longer than its bound stood still in this process.
        until = max(started + bound, now + LATE * min(now - started, bound))
        term.doubt(until)
        self.doubts.note(key, record, until)

    def _land(self, key: RecordKey, record: Record | None, started: float) -> None:
        self.holdings.landed(key)
        self.sentinels.landed(key, gone=record is None)
        self.doubts.landed(key, record, started)
        self.quarantine.lift(key)
        self.gate.succeeded()
        if record is None:
            # One that comes back since an earlier write of it was late is no surprise either.
            if key not in self.doubts.overtaken:
                self.known.discard(key)
        elif record.takes:
            self._contention.landed(record, self._clock.monotonic())
        seconds = self._observe(key, record, started, "ok")
        line = self._log.debug if self.agenda.size > BULK else self._log.info
        if record is not None:
            line("record.put", record=str(key), name=record.name, duration_s=round(seconds, 3))
        else:
            line("record.delete", record=str(key), duration_s=round(seconds, 3))
        for successor in self._handover.freed(key):
            self._setbacks.ease(successor)
            self.enqueue(successor)
        self._settle(key)

    def _fail(self, key: RecordKey, record: Record | None, error: GatewayError) -> None:
        if isinstance(error, GatewayRejected):
            self._reject(key, record, error)
        elif isinstance(error, GatewayUnauthorized):
            (self.holdings.lost if error.sent else self.holdings.refused)(key)
            self.enqueue(key)
            self.gate.shut(error)
        else:
            if error.sent:
                self.holdings.lost(key)
                if record is not None and record.takes:
                    self._contention.landed(record, self._clock.monotonic())
            else:
                self.holdings.refused(key)
            self._retry(key, error)

    def _reject(self, key: RecordKey, record: Record | None, error: GatewayRejected) -> None:
        self.holdings.refused(key)
        self.gate.succeeded()
        self.quarantine.add(key, record, error.message)
        name = record.name if record is not None else ""
        self._log.warning("record.rejected", record=str(key), name=name, status=error.status, error=error.message)
        self._settle(key)

    def _postpone(self, key: RecordKey, error: NotTried) -> None:
        if error.at_once:
            self.enqueue(key)
        else:
            self._back_off(key, error)

    def _back_off(self, key: RecordKey, error: GatewayError) -> None:
        """Try the record again after its own backoff; if it failed often, let deletes go on without it."""
        self.queue.add_after(key, self._setbacks.note(key, error), urgent=key in self._urgent)
        if self._setbacks.failures(key) == PATIENCE:
            self._log.warning("record.failing", record=str(key), error=told(error))
        if self._setbacks.lasting(key) is not None:
            self.agenda.give_up(key)  # it may have been marked again since the last time
            self.wake(key)
            self.tell(key)

    def _retry(self, key: RecordKey, error: GatewayError) -> None:
        """Try the record again after its own backoff; if the cluster fails others as well, not before it is back."""
        self._back_off(key, error)
        if isinstance(error, DependencyPending):
            self.gate.succeeded()
            if error.missing is not None:
                self.holdings.doubt(error.missing)
                self.mark([error.missing])
            if error.holder is not None:
                self._succeed(key, error.holder)
        elif isinstance(error, GatewayUnavailable | GatewayRedirected):
            self.gate.failed(key, error)

    def _succeed(self, key: RecordKey, holder: RecordKey) -> None:
        """Try a record again as soon as the one that has what it takes over is written or gone.

        That one may be about to be deleted: no delete waits for this record any more. If it waits for this record
        itself, again and again, then this one lets go of what it has, unless it did so in vain a short time ago.
        """
        self._handover.wait(key, holder)
        self.agenda.give_up(key)
        self.wake(key)
        if self._setbacks.lasting(key) is not None and self._handover.may_let_go(key, self._clock.monotonic()):
            self._letting_go.add(key)
            self.enqueue(key)

    def _settle(self, key: RecordKey) -> None:
        """Note that nothing is outstanding for a record, and let those that waited for it go on."""
        self.agenda.settle(key)
        self._urgent.discard(key)
        self._setbacks.settle(key)
        self.wake(key)
        self.tell(key)

    def crashed(self, key: RecordKey) -> None:
        """Note that handling a record failed for no reason that a gateway gave: a bug, in the log."""
        self._back_off(key, GatewayError("internal error: see the log of the controller"))

    def tick(self, now: float) -> None:
        """Queue what time alone makes due: rejected records to try again, and records that are held no longer."""
        self.pace.prune(now)
        self.looks.prune(now)
        self.doubts.prune(now, self.holdings.flying)
        self._contention.prune(now)
        freed = [key for key in self.held if not self._stays(key)]
        self.held.difference_update(freed)
        if due := [*freed, *self.quarantine.due()]:
            self.mark(due)

    def _stays(self, key: RecordKey) -> bool:
        known = self.holdings.get(key)
        return known is not None and self.is_held(key, known.name, known.hosts)

    def _park(self, key: RecordKey, step: Step) -> None:
        assert step.on is not None
        self.agenda.park(key, step.on, delete=step.record is None)
        if step.record is not None and step.on in step.record.refs:
            self.queue.expedite(step.on)  # it may be behind many others of its namespace
            if step.record.takes:
                self.wake(key)  # those that are to have the same wait no longer than they must
        for delete in self.agenda.due():
            self.enqueue(delete)
        self.tell(key)

    def _observe(self, key: RecordKey, record: Record | None, started: float, status: str) -> float:
        """Tell the observer of a write that ended just now; return the seconds that it took."""
        op: Operation = "put" if record is not None else "delete"
        seconds = self._clock.monotonic() - started
        self._observer.written(self.cluster, key.kind, op, seconds, status)
        return seconds

    def _gate_changed(self, is_open: bool) -> None:
        if is_open:
            for key in self._setbacks:
                self.enqueue(key)
        for key in self.agenda.outstanding():
            self.tell(key)
