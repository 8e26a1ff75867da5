"""The sync engine of one gateway cluster: it owns the address and starts a session for each term there.

A session (`session`) does the work. This module has what outlives sessions: the address, the records that were ever
desired, and the state that other components read.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Collection, Iterator
from typing import NamedTuple

from apisix_ingress.errors import LeadershipLost
from apisix_ingress.gateway.backend import Backend
from apisix_ingress.gateway.sync.config import SyncConfig
from apisix_ingress.gateway.sync.driver import RecordDriver
from apisix_ingress.gateway.sync.observer import Outage, RecordState
from apisix_ingress.gateway.sync.records.slot import Applied
from apisix_ingress.gateway.sync.session import SyncSession
from apisix_ingress.model.json import FrozenJson
from apisix_ingress.model.keys import RECORD_KINDS, RecordKey, RecordKind
from apisix_ingress.model.records import UNKNOWN, Former
from apisix_ingress.runtime.tasks import cancel
from apisix_ingress.runtime.term import Term


class RecordCounts(NamedTuple):
    """Record counts of one kind in one cluster."""

    desired: int
    applied: int
    rejected: int


class ClusterSync:
    """Keeps one gateway cluster in sync with the desired records, during terms of leadership.

    Args:
        config: Its settings and collaborators.
        backend: The client of its current address.
    """

    def __init__(self, config: SyncConfig, backend: Backend) -> None:
        self.name = config.name
        self._backend = backend
        self._config = config
        self.closed = False
        """Whether no more writes start, because the process is about to exit."""
        self.updated_early = asyncio.Event()
        """Set once early updates are done or not needed."""
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
        """Queue records whose desired state has changed, urgent ones first. Never blocks.

        Outside a term, and until the takeover begins to compare, nothing is queued: the takeover compares everything.

        Args:
            keys: The records.
            urgent: Whether they precede others in the queue.
            former: The records that their owner wanted before, from which follows what replaces deleted ones.
            since: Monotonic time at which the change that caused this was seen.
        """
        if self.taken_over:
            self._changed_at = self._config.clock.monotonic()
            self._config.observer.marked(self.name, keys, self._changed_at if since is None else since)
        self._session.mark_dirty(keys, urgent=urgent, former=former)

    # Reading.

    def record_state(self, key: RecordKey) -> RecordState:
        """Return the sync state of a desired record in this cluster."""
        return self._driver.status.state(self._driver.table.get(key))

    def holds(self, key: RecordKey) -> bool:
        """Return whether the cluster is known to have a record, in any version."""
        return self._driver.table.get(key).observed is not None

    def body_of(self, key: RecordKey) -> FrozenJson | None:
        """Return the body that the cluster is known to have of a record; None if it has none, or an unknown one."""
        observed = self._driver.table.get(key).observed
        return observed.body if isinstance(observed, Applied) else None

    def kept_routes(self) -> Iterator[tuple[RecordKey, FrozenJson]]:
        """Yield key and body of the routes that stay although they are not desired: their objects have errors."""
        for slot in self._driver.table:
            if slot.is_held and slot.key.kind == "routes" and isinstance(slot.observed, Applied):
                yield slot.key, slot.observed.body

    def names(self, key: RecordKey) -> tuple[str, ...]:
        """Return the names under which an owned record exists, or may exist; a name that the gateway omits is empty.

        Before the comparison at the start of a term, there are none: ids are adopted from the list.
        """
        return self._driver.table.get(key).names() if self._session.has_compared else ()

    def idle(self) -> bool:
        """Return whether nothing is in flight or queued; blocked and rejected records are ignored."""
        return self._session.idle

    @property
    def taken_over(self) -> bool:
        """Whether this process leads and has compared the cluster with the desired records."""
        return self._session.is_synced

    async def first_outcome(self) -> None:
        """Return once the cluster was compared with the desired records in this term, or an outage began."""
        await self._driver.first_outcome.wait()

    @property
    def reachable(self) -> bool:
        """Whether the cluster is not known to be down or to reject the admin key."""
        return self.outage is None

    @property
    def outage(self) -> Outage | None:
        """Since when and why writes to the cluster stopped or fail; None while it is reachable."""
        return self._driver.breaker.outage

    @property
    def trouble(self) -> str:
        """Why writes to the cluster stopped or fail, as text; empty while it is reachable."""
        return self.outage.cause if self.outage is not None else ""

    @property
    def audit_failure(self) -> str:
        """Why the last audit failed, as text; empty if it did not."""
        return self._session.audit.failure

    @property
    def is_away(self) -> bool:
        """Whether writes stopped because the cluster does not respond, which may be temporary."""
        return self.outage is not None and self.outage.is_away

    @property
    def version(self) -> str:
        """The gateway's `Server` header when it was last read; empty if this process has not read it."""
        return self._session.audit.version

    @property
    def backlog(self) -> int:
        """The number of queued records, without records that wait for a retry."""
        return self._driver.queue.depth

    @property
    def quiet_for(self) -> float:
        """Seconds since the desired records last changed; differences that the takeover finds are not changes."""
        return self._config.clock.monotonic() - self._changed_at

    def counts(self) -> dict[RecordKind, RecordCounts]:
        """Return how many records of each kind are desired, applied and rejected."""
        desired, applied, rejected = self._config.wanted.counts(self.name), Counter[str](), Counter[str]()
        for slot in self._driver.table:
            if slot.applied is not None:
                applied[slot.key.kind] += 1
            if slot.rejection is not None:
                rejected[slot.key.kind] += 1
        return {kind: RecordCounts(desired[kind], applied[kind], rejected[kind]) for kind in RECORD_KINDS}

    @property
    def _driver(self) -> RecordDriver:
        return self._session.driver

    # Lifecycle.

    def move(self, backend: Backend) -> None:
        """Switch to another address, which is read first, as at the start of a term.

        Writes in flight are abandoned: they are not repeated at the new address, nothing is deleted at the old one, and
        what is known of it is discarded. The second comparison comes as soon as such writes have timed out: if both
        addresses belong to the same gateway, they may have been carried out after it was read.
        """
        self._backend = backend
        had_outage = self.outage is not None
        self._session = self._new_session(frozenset(), first_audit=backend.timeout)
        if had_outage:
            self._config.observer.breaker(self.name, is_open=False)
        self._moved.set()

    async def run(self, term: Term, ready: asyncio.Event) -> None:
        """Compare the cluster and keep it in sync until cancelled.

        The outcome of writes that are in flight at the end is unknown. The next term reads the cluster again.

        Args:
            term: The right to write, checked before each write.
            ready: Set once all stores are synced and all providers have translated everything; nothing is written
                or deleted before.

        Raises:
            LeadershipLost: A write was due when the lease may have expired.
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
        """Wait at most some seconds until all queued records are written; return whether they are.

        Records that wait for a retry, for another record or for an unreachable cluster are ignored.
        """
        return await self._session.drain(seconds)

    async def close(self, seconds: float) -> bool:
        """Start no more writes, in this and all later terms, and wait for the writes in flight.

        Each of them ends within the backend's `timeout`, answered or not.

        Args:
            seconds: The maximum time to wait.

        Returns:
            Whether they have ended.
        """
        self.closed = True
        return await self._session.close(seconds)

    def _new_session(self, inherited: frozenset[RecordKey], *, first_audit: float) -> SyncSession:
        session = SyncSession(
            self._config,
            self._backend,
            inherited=inherited,
            ever_wanted=self._ever_wanted,
            first_audit=first_audit,
            updated_early=self.updated_early,
        )
        if self.closed:
            session.driver.breaker.stop()
        return session
