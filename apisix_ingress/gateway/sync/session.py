"""One spell of writing to one address of a cluster: it takes over what is there and keeps it in sync until cancelled.

A spell ends with the term, or when the cluster moves to another address; the next one begins with nothing but what
this process learnt about what is wanted. What is decided about a record is in `plan`, how one is written in `dispatch`,
how the cluster is compared in `audit`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable

import structlog

from apisix_ingress.errors import LeadershipLost
from apisix_ingress.gateway.backend import Backend
from apisix_ingress.gateway.sync.comparison.audit import Adopt, Audit, adopt_nothing
from apisix_ingress.gateway.sync.comparison.spot_check import SpotCheck
from apisix_ingress.gateway.sync.observer import SyncObserver
from apisix_ingress.gateway.sync.plan import Wanted
from apisix_ingress.gateway.sync.record_writer import RecordWriter
from apisix_ingress.gateway.sync.records.observed import ObservedState
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Former
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.tasks import bounded
from apisix_ingress.runtime.term import Term

log = structlog.get_logger()

TICK = 1.0
"""Seconds between two looks at what time alone makes due: an audit, a hold that was lifted, a new try."""

AUDIT_RETRY = 5.0
"""Seconds after which an audit that failed is tried again."""

BREATH = 50
"""So many records in a row are settled without a write before other tasks get their turn."""


class SyncSession:
    """Writing to one address, once.

    Args:
        name: The cluster's name in the settings.
        backend: How the address is talked to.
        wanted: The desired records.
        inherited: What this process last knew of the address; empty for another one than before.
        known: Records that were wanted at some time in this process' life and are still there or wanted.
        concurrency: Writes in flight at once.
        audit_interval: Seconds between two full comparisons.
        check_interval: Seconds between two looks whether the address answers, and has what was written; 0: none.
        first_audit: Seconds from taking over to the first of them.
        adopt: Makes ids follow what the address holds.
    """

    def __init__(
        self,
        name: str,
        backend: Backend,
        wanted: Wanted,
        *,
        clock: Clock,
        rng: random.Random,
        observer: SyncObserver,
        inherited: ObservedState,
        known: set[RecordKey],
        concurrency: int,
        audit_interval: float,
        check_interval: float,
        first_audit: float,
        adopt: Adopt = adopt_nothing,
    ) -> None:
        self.name = name
        self.dispatch = RecordWriter(name, backend, wanted, clock=clock, rng=rng, observer=observer)
        self.dispatch.known = set(known)
        self.taken_over = False
        """Whether the address was compared with what is wanted, and is written to."""
        self._backend = backend
        self._observer = observer
        self._audit = Audit(self.dispatch, backend, wanted, clock=clock, observer=observer, adopt=adopt)
        self._check_interval = check_interval
        self._check = SpotCheck(
            name,
            backend,
            self.dispatch.gate,
            self.dispatch.sentinels,
            interval=check_interval,
            clock=clock,
            rng=rng,
            is_expected=self._audit.is_expected,
            suspect=self._suspect,
        )
        self._suspected = False
        self._clock = clock
        self._inherited = inherited
        self._concurrency = concurrency
        self._audit_interval = audit_interval
        self._first_audit = first_audit
        self._log = log.bind(cluster=name)
        # Live: changes are queued. They have to be from before the first comparison on, which takes its time.
        self._live = False
        self._audit_due = 0.0

    def mark_dirty(self, keys: Iterable[RecordKey], *, urgent: bool, former: Former) -> None:
        """Take note that records are wanted differently."""
        if self._live:
            self.dispatch.mark(keys, urgent=urgent, former=former)
        else:
            self.dispatch.remember(keys)

    @property
    def idle(self) -> bool:
        """Whether nothing is in flight and nothing left to do; what waits or was rejected does not count."""
        queue = self.dispatch.queue
        return self.taken_over and queue.is_idle and not queue.delayed and self.dispatch.agenda.is_clear

    async def drain(self, seconds: float) -> bool:
        """Wait until what is queued is written, for some seconds at most; say whether it is."""
        if not self.taken_over or not self.dispatch.gate.is_open:
            return False
        try:
            await bounded(self.dispatch.queue.idle(), seconds, clock=self._clock)
        except TimeoutError:
            return False
        return True

    async def close(self, seconds: float) -> bool:
        """Start no write any more; wait for those in flight, some seconds at most, and say whether they have ended."""
        self.dispatch.gate.close()
        try:
            await bounded(self.dispatch.at_rest.wait(), seconds, clock=self._clock)
        except TimeoutError:
            return False
        return True

    async def run(self, term: Term, ready: asyncio.Event) -> None:
        """Take over and keep in sync until cancelled; what was in flight then counts as unknown.

        Raises:
            ExceptionGroup: Of LeadershipLost: a write was due when the lease may have run out.
        """
        gate = self.dispatch.gate
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(gate.attend(self._backend), name=f"sync-{self.name}-gate")
                if self._check_interval:
                    group.create_task(self._check.attend(), name=f"sync-{self.name}-check")
                await self._audit.take_over(
                    ready, self._inherited, stale_after=self._audit_interval, live=self._go_live
                )
                self.taken_over = True
                self._observer.compared(self.name, ok=True)
                for number in range(self._concurrency):
                    group.create_task(self._work(term), name=f"sync-{self.name}-{number}")
                group.create_task(self._keep(), name=f"sync-{self.name}-keeper")
                # After the workers: with many records it takes a while, and no write has to wait for it.
                await self._audit.tell_all()
        finally:
            self._live = self.taken_over = False

    @property
    def audit_failure(self) -> str:
        """Why the last comparison failed; empty: it did not."""
        return self._audit.failure

    def _suspect(self) -> None:
        """Have the cluster compared at once: it has not what was written to it."""
        self._suspected = True

    def _go_live(self) -> None:
        self._live = True
        self._audit_due = self._clock.monotonic() + self._first_audit

    async def _work(self, term: Term) -> None:
        """Be one of the workers."""
        dispatch, settled = self.dispatch, 0
        while True:
            await dispatch.gate.passable()
            key = await dispatch.queue.get()
            try:
                if not dispatch.gate.is_passable:
                    dispatch.enqueue(key)
                elif await self._handle(key, term):
                    settled = 0
                else:
                    settled += 1
            finally:
                dispatch.queue.done(key)
            if settled >= BREATH:
                settled = 0
                await asyncio.sleep(0)

    async def _handle(self, key: RecordKey, term: Term) -> bool:
        try:
            return await self.dispatch.handle(key, term)
        except LeadershipLost:
            raise
        except Exception as error:
            self._log.error("record.crashed", record=str(key), exc_info=error)
            self.dispatch.crashed(key)
            return True

    async def _compare(self) -> bool:
        self._suspected = False
        try:
            done = await self._audit.run_once()
        except Exception as error:
            self._log.error("audit.crashed", exc_info=error)
            return False
        if not done:
            # Is it the whole cluster, or only its lists?
            await self._check.run()
        elif self.idle:
            self.dispatch.gate.succeeded()
        self._audit.tell_failure()
        return done

    async def _keep(self) -> None:
        """Do what time alone makes due."""
        dispatch, was_open = self.dispatch, True
        while True:
            await self._clock.sleep(TICK)
            now, is_open = self._clock.monotonic(), dispatch.gate.is_open
            dispatch.tick(now)
            # A cluster that was away may have come back with other records.
            is_due = self._suspected or now >= self._audit_due or not was_open
            if is_open and (dispatch.doubts.come_due(now) or is_due):
                done = await self._compare()
                self._audit_due = self._clock.monotonic() + (self._audit_interval if done else AUDIT_RETRY)
            was_open = is_open
