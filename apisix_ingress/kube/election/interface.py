"""What an election is to those who work under it: its options, and the one of a single replica, which always leads.

How one is held among several replicas is in `elector`; terms themselves are in `runtime.term`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.term import Term

Work = Callable[[Term], Awaitable[None]]


class Election(Protocol):
    """Runs work under leadership."""

    @property
    def problem(self) -> str:
        """Why this process can't campaign, for people; empty: it can."""

    @property
    def holder(self) -> str:
        """Identity of the holder that was seen last."""

    @property
    def leading(self) -> bool:
        """Whether this process leads."""

    async def lead(self, work: Work) -> None:
        """Run `work` in every term until cancelled."""


@dataclass(frozen=True, slots=True)
class LeaseOptions:
    """The Lease and its times in seconds.

    Attributes:
        name: Of the Lease.
        namespace: Of the Lease.
        identity: Unique for each process, e.g. the Pod's name and something random.
        lease_duration: Others wait so long after the last renewal that they saw.
        renew_deadline: Without a renewal for so long, the work is ended; the rest of the lease is its time to end.
        retry_period: Between two tries at most.
    """

    name: str
    namespace: str
    identity: str
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0


class NoElection:
    """Leads at once and always: for a single replica, and without an API server."""

    problem = ""

    def __init__(self, *, clock: Clock, identity: str) -> None:
        self.holder = identity
        self._clock = clock
        self._leading = False

    @property
    def leading(self) -> bool:
        """Whether work is being done."""
        return self._leading

    async def lead(self, work: Work) -> None:
        """Run `work` in a term that ends with this call only."""
        term = Term(self._clock, holder=self.holder)
        self._leading = True
        try:
            await work(term)
        finally:
            self._leading = False
            term.end()
