"""The sync engine of one gateway cluster: its tasks, from taking over at the start of a term to its end.

What is decided about a record is in `plan`, how one is written in `dispatch`, how the cluster is compared in `audit`.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import structlog

from apisix_ingress.errors import LeadershipLost
from apisix_ingress.gateway.audit import Audit
from apisix_ingress.gateway.backend import Backend
from apisix_ingress.gateway.dispatch import Dispatch
from apisix_ingress.gateway.plan import Wanted
from apisix_ingress.gateway.states import SILENT, RecordState, SyncObserver
from apisix_ingress.model.keys import RECORD_KINDS, RecordKey, RecordKind
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
        observer: Told about outcomes.
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
        observer: SyncObserver | None = None,
    ) -> None:
        self.name = name
        self._backend = backend
        self._wanted = wanted
        self._clock = clock
        self._rng = rng or random.Random()
        self._concurrency = concurrency
        self._audit_interval = audit_interval
        self._observer = observer or SILENT
        self._log = log.bind(cluster=name)
        self._dispatch = self._fresh()
        # Live: changes are queued. They have to be from before the first comparison on, which takes its time.
        self._live = False
        self._taken_over = False
        self._audit_due = 0.0

    def mark_dirty(self, keys: Iterable[RecordKey], *, urgent: bool = False) -> None:
        """Take note that records are wanted differently; urgent ones go ahead of others. Never blocks.

        Outside a term, and until it has taken over, nothing is queued: taking over compares everything.
        """
        if self._live:
            self._dispatch.mark(keys, urgent=urgent)
        else:
            self._dispatch.remember(keys)

    def record_state(self, key: RecordKey) -> RecordState:
        """Return how far a wanted record is in this cluster."""
        return self._dispatch.state(key)

    def idle(self) -> bool:
        """Say whether nothing is in flight and nothing left to do; what waits or was rejected does not count."""
        dispatch = self._dispatch
        is_quiet = dispatch.queue.is_idle and not dispatch.queue.delayed and dispatch.agenda.is_clear
        return self._taken_over and is_quiet

    @property
    def taken_over(self) -> bool:
        """Whether this process leads, and has compared the cluster with what is wanted."""
        return self._taken_over

    @property
    def reachable(self) -> bool:
        """Whether the cluster was not found to be down or to refuse the admin key."""
        return self._dispatch.gate.is_open

    @property
    def trouble(self) -> str:
        """Why the cluster is not written to, in words for people; empty while it is reachable."""
        return "" if self.reachable else self._dispatch.gate.reason

    @property
    def backlog(self) -> int:
        """How many records wait for a look or a write, those that wait for a retry left out."""
        return self._dispatch.queue.depth

    def lag(self) -> float:
        """Return the seconds that the oldest change has waited for its write, those that wait for a retry left out."""
        return self._dispatch.queue.oldest_age(self._clock.monotonic())

    def tally(self) -> dict[RecordKind, Tally]:
        """Return how many records of each kind should exist, do as far as known, and were rejected."""
        wanted = Counter(key.kind for key in self._wanted.keys() if self._wanted.get(key, self.name) is not None)  # noqa: SIM118
        applied = Counter(key.kind for key in self._dispatch.holdings.applied)
        rejected = Counter(key.kind for key in self._dispatch.quarantine.keys())  # noqa: SIM118
        return {kind: Tally(wanted[kind], applied[kind], rejected[kind]) for kind in RECORD_KINDS}

    @property
    def counts(self) -> dict[str, int]:
        """How many records are applied, unknown, in flight, queued, rejected and held back."""
        dispatch = self._dispatch
        return {
            "applied": len(dispatch.holdings.applied),
            "unknown": len(dispatch.holdings.unknown),
            "in_flight": len(dispatch.holdings.flying),
            "queued": dispatch.queue.depth + dispatch.queue.delayed,
            "rejected": len(dispatch.quarantine),
            "held": len(dispatch.withheld),
        }

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
        inherited = self._dispatch.holdings
        self._dispatch = self._fresh()
        audit = Audit(self._dispatch, self._backend, self._wanted, clock=self._clock, observer=self._observer)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._dispatch.gate.attend(self._backend), name=f"sync-{self.name}-gate")
                await audit.take_over(ready, inherited, stale_after=self._audit_interval, live=self._go_live)
                self._taken_over = True
                for number in range(self._concurrency):
                    group.create_task(self._work(term), name=f"sync-{self.name}-{number}")
                group.create_task(self._keep(audit), name=f"sync-{self.name}-keeper")
        except BaseExceptionGroup as errors:
            lost, others = errors.split(LeadershipLost)
            if lost is None or others is not None:
                raise
            raise LeadershipLost(f"cluster {self.name}: the lease may have run out: writing stopped") from None
        finally:
            self._live = self._taken_over = False

    async def drain(self, seconds: float) -> bool:
        """Wait until what is queued is written, for some seconds at most; say whether it is.

        What waits for a retry, for another record or for an unreachable cluster is not waited for.
        """
        if not self._taken_over or not self.reachable:
            return False
        try:
            await bounded(self._dispatch.queue.idle(), seconds, clock=self._clock)
        except TimeoutError:
            return False
        return True

    def _fresh(self) -> Dispatch:
        """Return the state of a new term; what this process learnt about what is wanted stays."""
        former: Dispatch | None = getattr(self, "_dispatch", None)
        dispatch = Dispatch(
            self.name, self._backend, self._wanted, clock=self._clock, rng=self._rng, observer=self._observer
        )
        if former is not None:
            dispatch.known = former.known
        return dispatch

    def _go_live(self) -> None:
        self._live = True
        self._audit_due = self._clock.monotonic() + self._audit_interval

    async def _work(self, term: Term) -> None:
        """Be one of the workers."""
        dispatch, settled = self._dispatch, 0
        while True:
            await dispatch.gate.passable()
            key = await dispatch.queue.get()
            try:
                if not dispatch.gate.is_open:
                    dispatch.queue.add(key)
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
            return await self._dispatch.handle(key, term)
        except LeadershipLost:
            raise
        except Exception as error:
            self._log.error("record.crashed", record=str(key), exc_info=error)
            self._dispatch.crashed(key)
            return True

    async def _audit(self, audit: Audit) -> bool:
        try:
            return await audit.run_once()
        except Exception as error:
            self._log.error("audit.crashed", exc_info=error)
            return False

    async def _keep(self, audit: Audit) -> None:
        """Do what time alone makes due."""
        dispatch, was_open = self._dispatch, True
        while True:
            await self._clock.sleep(TICK)
            now, is_open = self._clock.monotonic(), dispatch.gate.is_open
            dispatch.tick(now)
            # A cluster that was away may have come back with other records.
            if is_open and (now >= self._audit_due or not was_open):
                done = await self._audit(audit)
                self._audit_due = self._clock.monotonic() + (self._audit_interval if done else AUDIT_RETRY)
            was_open = is_open
