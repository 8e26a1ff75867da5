"""One session of writing to one address of a cluster: it compares what is there, and keeps it in sync until cancelled.

A session ends with the term of leadership, or when the cluster moves to another address. Its workers take one due
record after the other and have it written (`record_writer`); its keeper runs what time alone makes due.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable

import structlog

from apisix_ingress.errors import LeadershipLost
from apisix_ingress.gateway.backend import Backend
from apisix_ingress.gateway.sync.comparison.audit import Audit
from apisix_ingress.gateway.sync.comparison.spot_check import SpotCheck
from apisix_ingress.gateway.sync.config import SyncConfig
from apisix_ingress.gateway.sync.driver import RecordDriver
from apisix_ingress.gateway.sync.record_writer import RecordWriter
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Former
from apisix_ingress.runtime.tasks import bounded
from apisix_ingress.runtime.term import Term

log = structlog.get_logger()

TICK = 1.0
"""Seconds between two checks of what time alone makes due: an audit, a hold that was lifted, a new try."""

AUDIT_RETRY = 5.0
"""Seconds after which an audit that failed is tried again."""

YIELD_EVERY = 50
"""So many records in a row are settled without a write before other tasks get their turn."""


class SyncSession:
    """Writing to one address, once.

    Args:
        config: What all sessions of the cluster have in common.
        backend: How the address is talked to.
        inherited: The records that this process last knew the address to hold; none for another one than before.
        ever_wanted: Records that were wanted at some time in this process' life.
        first_audit: Seconds from the first comparison to the second one.
    """

    def __init__(
        self,
        config: SyncConfig,
        backend: Backend,
        *,
        inherited: Collection[RecordKey],
        ever_wanted: set[RecordKey],
        first_audit: float,
    ) -> None:
        self.driver = RecordDriver(config, ever_wanted)
        self.is_synced = False
        """Whether the address was compared with what is wanted, and is written to."""
        self._config = config
        self._clock = config.clock
        self._backend = backend
        self._inherited = inherited
        self._first_audit = first_audit
        self._writer = RecordWriter(self.driver, backend)
        self.audit = Audit(self.driver, backend, on_listed=self._writer.checks.listed)
        self._spot_check = SpotCheck(self.driver, backend, is_expected=self.audit.is_expected, suspect=self._suspect)
        self._suspected = False
        # Changes have to be queued from before the first comparison on, which takes its time.
        self._queues_changes = False
        self._audit_due = 0.0
        self._log = log.bind(cluster=config.name)

    # Its life.

    def mark_dirty(self, keys: Iterable[RecordKey], *, urgent: bool, former: Former) -> None:
        """Take note that records are wanted differently."""
        if self._queues_changes:
            self.driver.mark(keys, urgent=urgent, former=former)
        else:
            self.driver.remember(keys)

    @property
    def idle(self) -> bool:
        """Whether nothing is in flight and nothing left to do; what is blocked or was rejected does not count."""
        queue = self.driver.queue
        return self.is_synced and queue.is_idle and not queue.delayed and self.driver.order.is_clear

    async def drain(self, seconds: float) -> bool:
        """Wait until what is queued is written, for some seconds at most; say whether it is."""
        if not self.is_synced or self.driver.breaker.is_tripped:
            return False
        try:
            await bounded(self.driver.queue.idle(), seconds, clock=self._clock)
        except TimeoutError:
            return False
        return True

    async def close(self, seconds: float) -> bool:
        """Start no write any more; wait for those in flight, some seconds at most, and say whether they have ended."""
        self.driver.breaker.stop()
        try:
            await bounded(self._writer.nothing_in_flight.wait(), seconds, clock=self._clock)
        except TimeoutError:
            return False
        return True

    async def run(self, term: Term, ready: asyncio.Event) -> None:
        """Compare and keep in sync until cancelled; what was in flight then counts as unknown.

        Raises:
            ExceptionGroup: Of LeadershipLost: a write was due when the lease may have run out.
        """
        name, config, began = self._config.name, self._config, self._clock.monotonic()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.driver.breaker.run_probes(self._backend), name=f"sync-{name}-probe")
                if config.check_interval:
                    group.create_task(self._spot_check.run_checks(), name=f"sync-{name}-check")
                await self.audit.initial_sync(
                    ready, self._inherited, stale_after=config.audit_interval, on_compare=self._queue_changes
                )
                self.is_synced = True
                config.observer.compared(name, ok=True)
                for number in range(config.concurrency):
                    group.create_task(self._work(term), name=f"sync-{name}-{number}")
                group.create_task(self._keep(), name=f"sync-{name}-keeper")
                group.create_task(self._log_synced(began), name=f"sync-{name}-synced")
                # After the workers: with many records it takes a while, and no write has to wait for it.
                await self.audit.report_all()
        finally:
            self._queues_changes = self.is_synced = False

    async def _log_synced(self, began: float) -> None:
        """Log once that everything that differed at the beginning is written."""
        await self.driver.queue.idle()
        duration = round(self._clock.monotonic() - began, 3)
        self._log.info("cluster.synced", records=len(self.driver.table.records()), duration_s=duration)

    def _suspect(self) -> None:
        """Have the cluster audited at once: it has not what was written to it."""
        self._suspected = True

    def _queue_changes(self) -> None:
        self._queues_changes = True
        self._audit_due = self._clock.monotonic() + self._first_audit

    async def _keep(self) -> None:
        """Do what time alone makes due."""
        was_open = True
        while True:
            await self._clock.sleep(TICK)
            now, is_open = self._clock.monotonic(), not self.driver.breaker.is_tripped
            self.driver.tick(now)
            # A cluster that was away may have come back with other records.
            is_due = self._suspected or now >= self._audit_due or not was_open
            if is_open and (self.driver.unacked.come_due(now) or is_due):
                done = await self._run_audit()
                self._audit_due = self._clock.monotonic() + (self._config.audit_interval if done else AUDIT_RETRY)
            was_open = is_open

    async def _run_audit(self) -> bool:
        self._suspected = False
        try:
            done = await self.audit.run_once()
        except Exception as error:
            self._log.error("audit.crashed", exc_info=error)
            return False
        if not done:
            # Is it the whole cluster, or only its lists?
            await self._spot_check.run()
        elif self.idle:
            self.driver.breaker.succeeded()
        self.audit.log_failure()
        return done

    async def _work(self, term: Term) -> None:
        """Be one of the workers."""
        driver, settled = self.driver, 0
        while True:
            await driver.breaker.writable()
            key = await driver.queue.get()
            try:
                if not driver.breaker.allows_writes:
                    driver.enqueue(key)
                elif await self._handle(key, term):
                    settled = 0
                else:
                    settled += 1
            finally:
                driver.queue.done(key)
            if settled >= YIELD_EVERY:
                settled = 0
                await asyncio.sleep(0)

    async def _handle(self, key: RecordKey, term: Term) -> bool:
        try:
            return await self._writer.handle(key, term)
        except LeadershipLost:
            raise
        except Exception as error:
            self._log.error("record.crashed", record=str(key), exc_info=error)
            self._writer.crashed(key)
            return True
