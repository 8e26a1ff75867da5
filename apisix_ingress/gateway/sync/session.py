"""One sync session at one address of a cluster: it compares the records there and keeps them in sync until cancelled.

A session ends with the term of leadership, or when the cluster moves to another address. Its workers take due records
from the queue and write them (`record_writer`); a periodic task handles what becomes due with time, such as audits.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Collection

import structlog

from apisix_ingress.gateway.backend import Backend, ClusterListing
from apisix_ingress.gateway.sync.comparison.audit import Audit
from apisix_ingress.gateway.sync.comparison.early_updates import EarlyUpdates
from apisix_ingress.gateway.sync.comparison.spot_check import SpotCheck
from apisix_ingress.gateway.sync.config import SyncConfig
from apisix_ingress.gateway.sync.driver import RecordDriver
from apisix_ingress.gateway.sync.record_writer import RecordWriter
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Former
from apisix_ingress.runtime.tasks import ends_within
from apisix_ingress.runtime.term import Term

log = structlog.get_logger()

TICK = 1.0
"""Seconds between two checks for what becomes due with time: audits, records no longer held, retries."""

AUDIT_RETRY = 5.0
"""Seconds after which an audit is repeated that failed, or could not read the ledger."""

YIELD_EVERY = 50
"""Number of records of one worker after which other tasks get a turn, if no request lets them run before."""


class SyncSession:
    """One session.

    Args:
        config: What all sessions of the cluster have in common.
        backend: The client of the address.
        inherited: The records that the address last had, as far as this process knows; empty for a new address.
        ever_wanted: Records that were desired at any time since this process started.
        first_audit: Seconds from the takeover to the first periodic audit.
        updated_early: Set once early updates are done or not needed.
    """

    def __init__(
        self,
        config: SyncConfig,
        backend: Backend,
        *,
        inherited: Collection[RecordKey],
        ever_wanted: set[RecordKey],
        first_audit: float,
        updated_early: asyncio.Event,
    ) -> None:
        self.driver = RecordDriver(config, ever_wanted)
        self.is_synced = False
        """Whether the address was compared with the desired records and is being written to."""
        self.has_compared = False
        """Whether the comparison at the start has begun; what the address has is not used before."""
        self._config = config
        self._clock = config.clock
        self._backend = backend
        self._inherited = inherited
        self._first_audit = first_audit
        self._updated_early = updated_early
        self._writer = RecordWriter(self.driver, backend)
        self.audit = Audit(self.driver, backend, on_listed=self._writer.checks.listed)
        self._early = EarlyUpdates(self._writer, config.nodes) if config.nodes is not None else None
        self._spot_check = SpotCheck(self.driver, backend, self.audit, request_audit=self._request_audit)
        # Changes are queued from the start of the first comparison, which takes a while.
        self._queues_changes = False
        self._audit_due = 0.0
        self._log = log.bind(cluster=config.name)

    # Lifecycle.

    def mark_dirty(self, keys: Collection[RecordKey], *, urgent: bool, former: Former) -> None:
        """Queue records whose desired state has changed."""
        if self._queues_changes:
            self.driver.mark(keys, urgent=urgent, former=former)
        else:
            self.driver.remember(keys)

    @property
    def idle(self) -> bool:
        """Whether nothing is in flight or queued; blocked and rejected records are ignored."""
        queue = self.driver.queue
        is_clear = self.driver.order.is_clear and self.driver.exposure_order.is_clear
        return self.is_synced and queue.is_idle and not queue.delayed and is_clear

    async def drain(self, seconds: float) -> bool:
        """Wait at most some seconds until all queued records are written; return whether they are."""
        if not self.is_synced or self.driver.breaker.is_tripped:
            return False
        return await ends_within(self.driver.queue.idle(), seconds, clock=self._clock)

    async def close(self, seconds: float) -> bool:
        """Start no more writes, and wait at most some seconds for those in flight; return whether they have ended."""
        self.driver.breaker.stop()
        return await ends_within(self._writer.nothing_in_flight.wait(), seconds, clock=self._clock)

    async def run(self, term: Term, ready: asyncio.Event) -> None:
        """Compare and keep in sync until cancelled; the outcome of writes in flight is unknown then.

        Raises:
            ExceptionGroup: Of LeadershipLost: a write was due when the lease may have expired.
        """
        name, config, began = self._config.name, self._config, self._clock.monotonic()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._backend.attend(term), name=f"sync-{name}-attend")
                group.create_task(self.driver.breaker.run_probes(self._backend), name=f"sync-{name}-probe")
                if config.check_interval:
                    group.create_task(self._spot_check.run_checks(), name=f"sync-{name}-check")

                def update_early(listing: ClusterListing) -> None:
                    group.create_task(self._update_early(listing, ready, term), name=f"sync-{name}-early")

                await self.audit.initial_sync(
                    ready, self._inherited, on_list=update_early, on_compare=self._queue_changes
                )
                self.is_synced = True
                config.observer.compared(name, ok=True)
                for number in range(config.concurrency):
                    group.create_task(self._work(term), name=f"sync-{name}-{number}")
                group.create_task(self._run_periodic(), name=f"sync-{name}-periodic")
                group.create_task(self._log_synced(began), name=f"sync-{name}-synced")
                self.driver.first_outcome.set()
                self.driver.status.is_filling = True
                await self._backend.filled()
                self.driver.status.is_filling = False
                # After the workers started: with many records it takes a while, and writes need not wait for it.
                await self.audit.report_all()
        finally:
            self._queues_changes = self.is_synced = False

    async def _update_early(self, listing: ClusterListing, ready: asyncio.Event, term: Term) -> None:
        if self._early is not None:
            await self._early.run(listing, ready, term)
        self._updated_early.set()

    async def _log_synced(self, began: float) -> None:
        """Log once that everything that differed at the beginning is written."""
        await self.driver.queue.idle()
        duration = round(self._clock.monotonic() - began, 3)
        self._log.info("cluster.synced", records=len(self.driver.table.records()), duration_s=duration)

    def _request_audit(self) -> None:
        """Request an audit now: the cluster does not have what was written to it."""
        self._audit_due = self._clock.monotonic()

    def _queue_changes(self) -> None:
        self._queues_changes = self.has_compared = True
        self._audit_due = self._clock.monotonic() + (AUDIT_RETRY if self.audit.lacks_ledger else self._first_audit)

    async def _run_periodic(self) -> None:
        """Do what becomes due with time."""
        was_open = True
        while True:
            await self._clock.sleep(TICK)
            now, is_open = self._clock.monotonic(), not self.driver.breaker.is_tripped
            self.driver.tick(now)
            # A cluster may have other records after an outage.
            is_due = now >= self._audit_due or not was_open
            if is_open and (self.driver.unacked.come_due(now) or is_due):
                self._audit_due = math.inf
                is_complete = await self._run_audit() and not self.audit.lacks_ledger
                pause = self._config.audit_interval if is_complete else AUDIT_RETRY
                # Records may have been suspected during the audit.
                self._audit_due = min(self._audit_due, self._clock.monotonic() + pause)
            was_open = is_open

    async def _run_audit(self) -> bool:
        try:
            done = await self.audit.run_once()
        except Exception as error:
            self._log.error("audit.crashed", exc_info=error)
            return False
        if not done:
            # Find out whether the whole cluster fails, or only its lists.
            await self._spot_check.run()
        elif self.idle:
            self.driver.breaker.succeeded()
        self.audit.log_failure()
        return done

    async def _work(self, term: Term) -> None:
        """Run one worker."""
        driver, handled = self.driver, 0
        while True:
            await driver.breaker.writable()
            key = await driver.queue.get()
            try:
                if not driver.breaker.allows_writes:
                    driver.enqueue(driver.table.slot(key))
                else:
                    with self._writer.crash_handler(key):
                        await self._writer.handle(key, term)
            finally:
                driver.queue.done(key)
            handled += 1
            if handled % YIELD_EVERY == 0:
                await asyncio.sleep(0)
