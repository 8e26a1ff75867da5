"""The sync engine of one gateway cluster: spells of writing, one after the other, inside terms of leadership.

What a spell does is in `spell`. Here is what outlasts one: which address is the cluster's, and what is told of it.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

import structlog

from apisix_ingress.errors import LeadershipLost
from apisix_ingress.gateway.backend import Backend
from apisix_ingress.gateway.sync.comparison.audit import Adopt, adopt_nothing
from apisix_ingress.gateway.sync.observer import Outage, RecordState, SyncObserver
from apisix_ingress.gateway.sync.plan import Wanted
from apisix_ingress.gateway.sync.records.observed import ObservedState
from apisix_ingress.gateway.sync.session import SyncSession
from apisix_ingress.model.keys import RECORD_KINDS, RecordKey, RecordKind
from apisix_ingress.model.records import UNKNOWN, Former
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.tasks import cancel
from apisix_ingress.runtime.term import Term

log = structlog.get_logger()


class Tally(NamedTuple):
    """Records of one kind in one cluster."""

    desired: int
    applied: int
    rejected: int


class ClusterSync:
    """Keeps one gateway cluster at what is wanted, inside terms of leadership.

    Args:
        name: The cluster's name in the settings.
        backend: How it is talked to.
        wanted: The desired records.
        clock: Measures every wait.
        rng: Spreads retries.
        concurrency: Writes in flight at once.
        audit_interval: Seconds between two full comparisons.
        check_interval: Seconds between two looks whether it answers, and has what was written; 0: none.
        observer: Told about outcomes.
        adopt: Told what the cluster holds before it is compared with what is wanted; makes ids follow it.
    """

    def __init__(
        self,
        name: str,
        backend: Backend,
        wanted: Wanted,
        *,
        clock: Clock,
        rng: random.Random | None = None,
        concurrency: int = 16,
        audit_interval: float = 60.0,
        check_interval: float = 4.0,
        observer: SyncObserver | None = None,
        adopt: Adopt = adopt_nothing,
    ) -> None:
        self.name = name
        self._backend = backend
        self._wanted = wanted
        self._clock = clock
        self._rng = rng or random.Random()
        self._concurrency = concurrency
        self._audit_interval = audit_interval
        self._check_interval = check_interval
        self._observer = observer or SyncObserver()
        self._adopt = adopt
        self.closed = False
        """Whether no write starts any more, since the process is about to end."""
        self._changed_at = -math.inf
        self._moved = asyncio.Event()
        self._spell = self._new_spell(ObservedState(), set(), first_audit=audit_interval)

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
        Outside a term, and until it has taken over, nothing is queued: taking over compares everything.
        """
        if self.taken_over:
            self._changed_at = self._clock.monotonic()
            self._observer.marked(self.name, keys, self._changed_at if since is None else since)
        self._spell.mark_dirty(keys, urgent=urgent, former=former)

    def record_state(self, key: RecordKey) -> RecordState:
        """Return how far a wanted record is in this cluster."""
        return self._spell.dispatch.outlook.state(key)

    def holds(self, key: RecordKey) -> bool:
        """Say whether the cluster is known to have a record, in whatever version."""
        return self._spell.dispatch.holdings.get(key) is not None

    def names(self, key: RecordKey) -> tuple[str, ...]:
        """Return the names under which a record of ours is there, or may be; one that nothing tells is empty."""
        return self._spell.dispatch.holdings.names(key)

    def idle(self) -> bool:
        """Say whether nothing is in flight and nothing left to do; what waits or was rejected does not count."""
        return self._spell.idle

    @property
    def taken_over(self) -> bool:
        """Whether this process leads, and has compared the cluster with what is wanted."""
        return self._spell.taken_over

    @property
    def reachable(self) -> bool:
        """Whether the cluster was not found to be down or to refuse the admin key."""
        return self.outage is None

    @property
    def outage(self) -> Outage | None:
        """Since when and why the cluster is not written to, or in vain; None while it is reachable."""
        return self._spell.dispatch.gate.outage

    @property
    def trouble(self) -> str:
        """Why the cluster is not written to, or in vain, in words for people; empty while it is reachable."""
        return self.outage.cause if self.outage is not None else ""

    @property
    def audit_failure(self) -> str:
        """Why the last comparison failed, in words for people; empty: it did not."""
        return self._spell.audit_failure

    @property
    def is_away(self) -> bool:
        """Whether it is not written to since it does not answer: that may pass by itself."""
        return self._spell.dispatch.gate.is_away

    @property
    def version(self) -> str:
        """What the gateway called itself when it was read last; empty: it was not read by this process."""
        return self._spell.dispatch.version

    @property
    def backlog(self) -> int:
        """How many records wait for a look or a write, those that wait for a retry left out."""
        return self._spell.dispatch.queue.depth

    def backlog_of(self, namespace: str) -> int:
        """Return how many records of a namespace wait for a look or a write."""
        return self._spell.dispatch.queue.waiting(namespace)

    @property
    def quiet_for(self) -> float:
        """Seconds since records were last wanted differently; what is found when taking over is no change."""
        return self._clock.monotonic() - self._changed_at

    def tally(self) -> dict[RecordKind, Tally]:
        """Return how many records of each kind should exist, do as far as known, and were rejected."""
        dispatch = self._spell.dispatch
        wanted = Counter(key.kind for key in self._wanted.keys() if self._wanted.get(key, self.name) is not None)  # noqa: SIM118
        applied = Counter(key.kind for key in dispatch.holdings.applied)
        rejected = Counter(key.kind for key in dispatch.quarantine.keys())  # noqa: SIM118
        return {kind: Tally(wanted[kind], applied[kind], rejected[kind]) for kind in RECORD_KINDS}

    def move(self, backend: Backend) -> None:
        """Write to another address from now on: it is read first, as at the start of a term.

        Writes in flight are abandoned: nothing that was sent to the former address is sent to this one, nothing is
        deleted there, and nothing it confirmed counts any more. The first comparison comes as soon as such a write has
        ended: if it is the same gateway by another name, it may have been carried out after the cluster was read.
        """
        self._backend = backend
        former = self._spell
        self._spell = self._new_spell(ObservedState(), former.dispatch.known, first_audit=backend.timeout)
        if former.dispatch.gate.outage is not None:
            self._observer.breaker(self.name, is_open=False)
        self._moved.set()

    async def run(self, term: Term, ready: asyncio.Event) -> None:
        """Take the cluster over and keep it in sync until cancelled.

        What was in flight at the end counts as unknown. The next term reads the cluster anew.

        Args:
            term: The right to write; looked at before each write.
            ready: Set once all stores are synced and all providers have translated everything; nothing is written
                or deleted before.

        Raises:
            LeadershipLost: A write was due when the lease may have run out.
        """
        former = self._spell.dispatch
        self._spell = self._new_spell(former.holdings, former.known, first_audit=self._audit_interval)
        try:
            while True:
                self._moved.clear()
                async with asyncio.TaskGroup() as group:
                    spell = group.create_task(self._spell.run(term, ready), name=f"sync-{self.name}")
                    await self._moved.wait()
                    await cancel(spell)
        except BaseExceptionGroup as errors:
            lost, others = errors.split(LeadershipLost)
            if lost is None or others is not None:
                raise
            raise LeadershipLost(f"cluster {self.name}: the lease may have run out: writing stopped") from None

    async def drain(self, seconds: float) -> bool:
        """Wait until what is queued is written, for some seconds at most; say whether it is.

        What waits for a retry, for another record or for an unreachable cluster is not waited for.
        """
        return await self._spell.drain(seconds)

    async def close(self, seconds: float) -> bool:
        """Start no write any more, in this term and all later ones, and wait for those in flight.

        Each of them ends within the backend's `timeout`, answered or not.

        Args:
            seconds: How long it waits at most.

        Returns:
            Whether they have ended.
        """
        self.closed = True
        return await self._spell.close(seconds)

    def _new_spell(self, inherited: ObservedState, known: set[RecordKey], *, first_audit: float) -> SyncSession:
        spell = SyncSession(
            self.name,
            self._backend,
            self._wanted,
            clock=self._clock,
            rng=self._rng,
            observer=self._observer,
            inherited=inherited,
            known=known,
            concurrency=self._concurrency,
            audit_interval=self._audit_interval,
            check_interval=self._check_interval,
            first_audit=first_audit,
            adopt=self._adopt,
        )
        if self.closed:
            spell.dispatch.gate.close()
        return spell
