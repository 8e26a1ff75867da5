"""Writes one due record: decides, sends the request, and posts the outcome as an event.

`plan` decides what to do; `records.transitions` says what an outcome means for the record and for others. The state of
a record is updated before and after each request, and at no other await.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from apisix_ingress.errors import (
    GatewayError,
    GatewayRejected,
    GatewayUnauthorized,
    LeadershipLost,
)
from apisix_ingress.gateway.backend import Backend, DependencyPending, NotTried, ObservedRecord
from apisix_ingress.gateway.sync.comparison.pre_write_check import PreWriteChecks
from apisix_ingress.gateway.sync.driver import Detail, RecordDriver
from apisix_ingress.gateway.sync.observer import Change
from apisix_ingress.gateway.sync.plan import FOREIGN_REMEDY, Step
from apisix_ingress.gateway.sync.records.rate_limit import rate_delay
from apisix_ingress.gateway.sync.records.retries import is_rejected
from apisix_ingress.gateway.sync.records.slot import Applied, RecordSlot
from apisix_ingress.gateway.sync.records.transitions import Event
from apisix_ingress.gateway.sync.records.unique_keys import without_new_keys
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Record
from apisix_ingress.runtime.term import Term

log = structlog.get_logger()

CLOSED_REMEDY = "the gateway responds with 503 to its requests until it accepts the record: see its last error"

LATE = 2
"""A gateway may carry out an unanswered write later, up to this factor times the time it has already taken.

This is an estimate: gateways do not report it. The lease is held that much longer when the process stops.
"""


class RecordWriter:
    """Sends the writes of one session.

    Attributes:
        checks: The reads before first writes.
        nothing_in_flight: Set while no write is in flight.
    """

    def __init__(self, driver: RecordDriver, backend: Backend) -> None:
        self.driver = driver
        self.checks = PreWriteChecks(driver, backend)
        self.nothing_in_flight = asyncio.Event()
        self.nothing_in_flight.set()
        self._backend = backend
        self._clock = driver.config.clock
        self._observer = driver.config.observer
        self._log = log.bind(cluster=driver.cluster)

    async def handle(self, key: RecordKey, term: Term) -> None:
        """Handle a due record.

        Raises:
            LeadershipLost: The write was not started.
        """
        step, slot = self.driver.decide(key), self.driver.table.slot(key)
        if self._is_check_due(slot, step):
            if not await self._is_checked(slot):
                return
            step, slot = self.driver.decide(key), self.driver.table.slot(key)
        if step.act in ("put", "delete"):
            if self._may_send(slot, step.record):
                await self._send(slot, step.record, term)
        elif step.act == "close":
            await self._close(slot, step.record, term)
        elif step.act == "wait":
            self._block(slot, step)
        else:
            self._settle(slot, step)

    async def update_early(self, record: Record, found: ObservedRecord, term: Term) -> None:
        """Write a record over the one that a list returned, before the first comparison of the session.

        Raises:
            LeadershipLost: The write was not started.
        """
        slot = self.driver.table.slot(record.key)
        self.driver.post(slot, Event.FOUND, Detail(found=found))
        await self._write(slot, record, term)
        self.driver.table.compare_by_digest(slot)

    @contextmanager
    def crash_handler(self, key: RecordKey) -> Iterator[None]:
        """Retry a record later if handling it raises an unexpected exception, which is a bug."""
        try:
            yield
        except LeadershipLost:
            raise
        except Exception as error:
            self._log.error("record.crashed", record=str(key), exc_info=error)
            slot = self.driver.table.slot(key)
            if slot.flight is not None:
                self.driver.post(slot, Event.UNKNOWN)
            self.driver.retry(slot, GatewayError("internal error: check the log of the controller"))

    def _settle(self, slot: RecordSlot, step: Step) -> None:
        """Post that no request is needed: the record is as desired, or must stay unchanged."""
        if step.act == "hold":
            self.driver.table.hold(slot)
        elif step.act == "refuse" and step.record is not None:
            self._log.warning("record.foreign", record=str(slot.key), name=step.record.name, remedy=FOREIGN_REMEDY)
        self.driver.post(slot, Event.AS_WANTED if step.act == "nothing" else Event.LEFT)

    def _block(self, slot: RecordSlot, step: Step, *, by_rival: bool = False) -> None:
        """Make a record wait for another one."""
        driver = self.driver
        assert step.on is not None
        driver.post(slot, Event.BLOCK, Detail(step.record, on=step.on))
        slot.blocked_by_rival = by_rival
        if step.record is not None and step.on in step.record.refs:
            driver.queue.expedite(step.on)  # many others of its namespace may precede it in the queue
            if step.record.takes:
                driver.unblock_others(slot)  # records with the same exclusive keys need not wait for this one meanwhile

    def _is_check_due(self, slot: RecordSlot, step: Step) -> bool:
        """Return whether to read the id before the write."""
        if step.act == "close":
            return self.checks.is_due(slot)
        is_due = step.act == "put" and self.checks.is_due(slot)
        return is_due and not is_rejected(slot, step.record, self._clock.monotonic())

    async def _is_checked(self, slot: RecordSlot) -> bool:
        """Read what the gateway has under a new id; return whether to proceed. If not, the key is queued again."""
        try:
            if not await self.checks.run(slot):
                return False
        except GatewayRejected:
            return True  # the reply to the write will say more
        except GatewayError as error:
            self._retry(self.driver.table.slot(slot.key), error)
            return False
        if not self.driver.breaker.allows_writes:
            self.driver.enqueue(slot)
            return False
        return True

    def _may_send(self, slot: RecordSlot, record: Record | None) -> bool:
        """Return whether a request may start now. If not, the key is queued again when it may."""
        now, delay = self._clock.monotonic(), 0.0
        if record is None and not self.driver.order.may_delete(slot):
            return False
        if is_rejected(slot, record, now):
            self.driver.post(slot, Event.STILL_REJECTED)
            return False
        if slot.key.kind == "routes":
            if (taker := self.driver.awaited(slot, record)) is not None:
                self._block(slot, Step("wait", record, taker))
                return False
            if not self.driver.may_send(slot, record):
                return False
        if record is not None and record.takes:
            unique_keys = self.driver.unique_keys
            if (rival := unique_keys.rival(record)) is not None:
                self._block(slot, Step("wait", record, rival), by_rival=True)
                return False
            delay = unique_keys.delay(record, now)
        if delay <= 0:
            delay = rate_delay(slot, now)
        if delay > 0:
            self.driver.enqueue(slot, delay)
        return delay <= 0

    async def _send(self, slot: RecordSlot, record: Record | None, term: Term) -> None:
        """Write a record. One that has to release exclusive keys is first written without new ones, then as desired."""
        driver = self.driver
        cycle = driver.unique_keys.cycle(slot) if slot.release else ()
        slot.release = False
        if record is None or not cycle:
            if await self._write(slot, record, term):
                slot.released_at = -math.inf
                if record is None and driver.wanted(slot.key) is not None:
                    driver.mark([slot.key])  # it was deleted so that another name can take its id
            return
        self._log.warning("record.plugins_released", record=str(slot.key), name=record.name)
        if await self._write(slot, without_new_keys(record, slot.applied), term):
            slot.released_at = self._clock.monotonic()
            for member in cycle:
                member.bucket_full_at = -math.inf  # restore plugins that guard requests as soon as possible
            driver.mark([slot.key])

    async def _close(self, slot: RecordSlot, record: Record | None, term: Term) -> None:
        """Write the closing record of a record that cannot be written."""
        if (delay := rate_delay(slot, self._clock.monotonic())) > 0:
            self.driver.enqueue(slot, delay)
        else:
            await self._write(slot, record, term, closes=True)

    async def _write(self, slot: RecordSlot, record: Record | None, term: Term, *, closes: bool = False) -> bool:
        """Write a record; return whether the outcome is final: the gateway accepted or rejected it."""
        term.check(self._backend.timeout)
        driver, started = self.driver, self._clock.monotonic()
        driver.post(slot, Event.STARTED, Detail(record, at=started, closes=closes))
        self.nothing_in_flight.clear()
        try:
            is_uncertain = await (self._backend.delete(slot.key) if record is None else self._backend.put(record))
        except NotTried as error:
            driver.post(slot, Event.FAILED)
            driver.post(slot, Event.RETRY_NOW) if error.at_once else driver.retry(slot, error)
        except GatewayError as error:
            if error.sent:
                self._note_unacked(slot, record, term, started)
            self._observe(slot, record, type(error).__name__)
            self._fail(slot, record, error)
            return isinstance(error, GatewayRejected)
        except BaseException:
            # Cancelled at the end of the term, or a bug: the write may have been carried out.
            self._note_unacked(slot, record, term, started)
            driver.post(slot, Event.UNKNOWN)
            raise
        else:
            if is_uncertain:
                self._note_unacked(slot, record, term, started)
            self._succeed(slot, record, started)
            return True
        finally:
            if record is not None and record.takes:
                driver.unblock_others(slot)  # whatever the outcome: older owners precede its next attempt
            if not driver.table.in_flight:
                self.nothing_in_flight.set()
        return False

    def _note_unacked(self, slot: RecordSlot, record: Record | None, term: Term, started: float) -> None:
        """Record that the gateway may still carry out a write, at least until the timeout of a request."""
        now, bound = self._clock.monotonic(), self._backend.timeout
        # A request that took longer than its timeout was delayed in this process.
        until = max(started + bound, now + LATE * min(now - started, bound))
        term.note_unacked(until)
        self.driver.unacked.note(slot, record, until)

    def _succeed(self, slot: RecordSlot, record: Record | None, started: float) -> None:
        self.driver.breaker.succeeded()
        duration = round(self._clock.monotonic() - started, 3)
        # With many outstanding writes, a log line for each would cost as much CPU as the writes.
        line = self._log.debug if self.driver.order.is_bulk else self._log.info
        closes = slot.flight is not None and slot.flight.closes
        if record is not None and closes:
            self._log.warning("record.closed", record=str(slot.key), name=record.name, remedy=CLOSED_REMEDY)
        elif record is not None:
            line("record.put", record=str(slot.key), name=record.name, duration_s=duration)
        else:
            line("record.delete", record=str(slot.key), duration_s=duration)
        self._observe(slot, record, "ok")
        self.driver.post(slot, Event.CLOSED if closes else Event.SUCCEEDED)

    def _fail(self, slot: RecordSlot, record: Record | None, error: GatewayError) -> None:
        driver = self.driver
        if isinstance(error, GatewayRejected):
            driver.breaker.succeeded()
            key, name = str(slot.key), record.name if record is not None else ""
            self._log.warning("record.rejected", record=key, name=name, status=error.status, error=error.message)
            driver.post(slot, Event.WRITE_REJECTED, Detail(error=error))
            return
        driver.post(slot, Event.UNKNOWN if error.sent else Event.FAILED)
        self._retry(slot, error)

    def _retry(self, slot: RecordSlot, error: GatewayError) -> None:
        """Try the record again after its own backoff, or once the cluster is back if it is the cluster that fails."""
        driver = self.driver
        if isinstance(error, GatewayUnauthorized):
            driver.post(slot, Event.RETRY_NOW)  # no failure of the record
        else:
            driver.retry(slot, error)
        if isinstance(error, DependencyPending):
            driver.breaker.succeeded()
            if error.missing is not None:
                driver.post(driver.table.slot(error.missing), Event.REPORTED_MISSING)
                driver.mark([error.missing])
            if error.holder is not None:
                driver.wait_for_holder(slot, error.holder)
        else:
            driver.breaker.failed(error, slot.key)

    def _observe(self, slot: RecordSlot, record: Record | None, status: str) -> None:
        """Report a write that has just ended to the observer, while the slot still has what was there before."""
        before = slot.observed
        if record is not None:
            change: Change = "updated" if before else "created"
            name = record.name
        else:
            change, name = "deleted", before.name if before else ""
        if status == "ok":
            known = before.source if isinstance(before, Applied) else None
            self._observer.replaced(self.driver.cluster, slot.key, known, record)
        self._observer.written(self.driver.cluster, slot.key, change, name, status)
