"""The sync engine of one gateway cluster: it owns the cluster's address and starts a session for each term at it.

A session (`session`) does the work. Here is what outlives it: the address, the records that were ever wanted, and what
others may ask about the cluster.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

from apisix_ingress.errors import LeadershipLost
from apisix_ingress.gateway.backend import Backend
from apisix_ingress.gateway.sync.config import SyncConfig
from apisix_ingress.gateway.sync.driver import RecordDriver
from apisix_ingress.gateway.sync.observer import Outage, RecordState
from apisix_ingress.gateway.sync.records.slot import Unknown
from apisix_ingress.gateway.sync.session import SyncSession
from apisix_ingress.model.keys import RECORD_KINDS, RecordKey, RecordKind
from apisix_ingress.model.records import UNKNOWN, Former
from apisix_ingress.runtime.tasks import cancel
from apisix_ingress.runtime.term import Term


class Tally(NamedTuple):
    """Records of one kind in one cluster."""

    desired: int
    applied: int
    rejected: int


class SyncSnapshot(NamedTuple):
    """How many records of a cluster are in which state, at one moment."""

    applied: int
    unknown: int
    in_flight: int
    queued: int
    rejected: int
    withheld: int
    is_tripped: bool


class ClusterSync:
    """Keeps one gateway cluster at what is wanted, inside terms of leadership.

    Args:
        config: Its settings and collaborators.
        backend: The client of its current address.
    """

    def __init__(self, config: SyncConfig, backend: Backend) -> None:
        self.name = config.name
        self._backend = backend
        self._config = config
        self.closed = False
        """Whether no write starts any more, since the process is about to end."""
        self._changed_at = -math.inf
        self._moved = asyncio.Event()
        self._ever_wanted: set[RecordKey] = set()
        self._session = self._new_session(frozenset(), first_audit=config.audit_interval)

    def mark_dirty(
        self,
        keys: Collection[RecordKey],
        *,
        urgent: bool = False,
        former: Former = UNKNOWN,
        since: float | None = None,
    ) -> None:
        """Take note that records are wanted differently; urgent ones go ahead of others. Never blocks.

        `former` is what their owner wanted before: it says what takes over for those that are not wanted any more.
        `since` is the monotonic time when the change was seen that this follows from.
        Outside a term, and until the first comparison began, nothing is queued: that compares everything.
        """
        if self.taken_over:
            self._changed_at = self._config.clock.monotonic()
            self._config.observer.marked(self.name, keys, self._changed_at if since is None else since)
        self._session.mark_dirty(keys, urgent=urgent, former=former)

    # Reading.

    def record_state(self, key: RecordKey) -> RecordState:
        """Return how far a wanted record is in this cluster."""
        return self._driver.status.state(key)

    def holds(self, key: RecordKey) -> bool:
        """Say whether the cluster is known to have a record, in whatever version."""
        return self._driver.table.get(key).observed is not None

    def names(self, key: RecordKey) -> tuple[str, ...]:
        """Return the names under which a record of ours exists, or may; empty if the gateway returns none."""
        return self._driver.table.get(key).names()

    def idle(self) -> bool:
        """Say whether nothing is in flight and nothing left to do; what is blocked or was rejected does not count."""
        return self._session.idle

    @property
    def taken_over(self) -> bool:
        """Whether this process leads, and has compared the cluster with what is wanted."""
        return self._session.is_synced

    @property
    def reachable(self) -> bool:
        """Whether the cluster was not found to be down or to refuse the admin key."""
        return self.outage is None

    @property
    def outage(self) -> Outage | None:
        """Since when and why the cluster is not written to, or in vain; None while it is reachable."""
        return self._driver.breaker.outage

    @property
    def trouble(self) -> str:
        """Why the cluster is not written to, or in vain, for people; empty while it is reachable."""
        return self.outage.cause if self.outage is not None else ""

    @property
    def audit_failure(self) -> str:
        """Why the last comparison failed, for people; empty: it did not."""
        return self._session.audit.failure

    @property
    def is_away(self) -> bool:
        """Whether it is not written to since it does not answer: that may pass by itself."""
        return self._driver.breaker.is_away

    @property
    def version(self) -> str:
        """What the gateway called itself when it was read last; empty: it was not read by this process."""
        return self._session.audit.version

    @property
    def backlog(self) -> int:
        """How many records wait for their turn; those that wait for a retry are not counted."""
        return self._driver.queue.depth

    @property
    def quiet_for(self) -> float:
        """Seconds since records were last wanted differently; what the first comparison finds is no change."""
        return self._config.clock.monotonic() - self._changed_at

    def tally(self) -> dict[RecordKind, Tally]:
        """Return how many records of each kind should exist, do as far as known, and were rejected."""
        keys = self._config.wanted.keys()
        wanted = Counter(key.kind for key in keys if self._driver.wanted(key) is not None)
        applied = Counter(slot.key.kind for slot in self._driver.table if slot.applied is not None)
        rejected = Counter(slot.key.kind for slot in self._driver.table if slot.rejection is not None)
        return {kind: Tally(wanted[kind], applied[kind], rejected[kind]) for kind in RECORD_KINDS}

    def snapshot(self) -> SyncSnapshot:
        """Return how many records are in which state now."""
        driver = self._driver
        slots = list(driver.table)
        return SyncSnapshot(
            applied=sum(slot.applied is not None for slot in slots),
            unknown=sum(isinstance(slot.observed, Unknown) for slot in slots),
            in_flight=len(driver.table.in_flight),
            queued=driver.queue.depth + driver.queue.delayed,
            rejected=sum(slot.rejection is not None for slot in slots),
            withheld=len(driver.withheld()),
            is_tripped=driver.breaker.is_tripped,
        )

    @property
    def _driver(self) -> RecordDriver:
        return self._session.driver

    # Its life.

    def move(self, backend: Backend) -> None:
        """Write to another address from now on: it is read first, as at the start of a term.

        Writes in flight are abandoned: nothing that was sent to the former address is sent to this one, nothing is
        deleted there, and nothing it confirmed counts any more. The first comparison comes as soon as such a write has
        ended: if it is the same gateway by another name, it may have been carried out after the cluster was read.
        """
        self._backend = backend
        had_outage = self.outage is not None
        self._session = self._new_session(frozenset(), first_audit=backend.timeout)
        if had_outage:
            self._config.observer.breaker(self.name, is_open=False)
        self._moved.set()

    async def run(self, term: Term, ready: asyncio.Event) -> None:
        """Compare the cluster and keep it in sync until cancelled.

        What was in flight at the end counts as unknown. The next term reads the cluster anew.

        Args:
            term: The right to write; looked at before each write.
            ready: Set once all stores are synced and all providers have translated everything; nothing is written
                or deleted before.

        Raises:
            LeadershipLost: A write was due when the lease may have run out.
        """
        inherited = frozenset(self._driver.table.records())
        self._session = self._new_session(inherited, first_audit=self._config.audit_interval)
        try:
            while True:
                self._moved.clear()
                async with asyncio.TaskGroup() as group:
                    session = group.create_task(self._session.run(term, ready), name=f"sync-{self.name}")
                    await self._moved.wait()
                    await cancel(session)
        except BaseExceptionGroup as errors:
            lost, others = errors.split(LeadershipLost)
            if lost is None or others is not None:
                raise
            raise LeadershipLost(f"cluster {self.name}: the lease may have run out: writing stopped") from None

    async def drain(self, seconds: float) -> bool:
        """Wait until what is queued is written, for some seconds at most; say whether it is.

        What waits for a retry, for another record or for an unreachable cluster is not waited for.
        """
        return await self._session.drain(seconds)

    async def close(self, seconds: float) -> bool:
        """Start no write any more, in this term and all later ones, and wait for those in flight.

        Each of them ends within the backend's `timeout`, answered or not.

        Args:
            seconds: How long it waits at most.

        Returns:
            Whether they have ended.
        """
        self.closed = True
        return await self._session.close(seconds)

    def _new_session(self, inherited: frozenset[RecordKey], *, first_audit: float) -> SyncSession:
        session = SyncSession(
            self._config, self._backend, inherited=inherited, ever_wanted=self._ever_wanted, first_audit=first_audit
        )
        if self.closed:
            session.driver.breaker.stop()
        return session
