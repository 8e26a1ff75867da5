"""The interface of leader election, its options, and the implementation for a single replica, which always leads.

`elector` implements it for several replicas; `runtime.term` defines terms.
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
        """Why this process cannot campaign, as text; empty if it can."""

    @property
    def holder(self) -> str:
        """Identity of the last observed holder."""

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
        identity: Unique per process, e.g. the Pod's name and a random suffix.
        lease_duration: How long other candidates wait after the last renewal they observed.
        renew_deadline: The work is ended after this time without a renewal; it has the rest of the lease to end.
        retry_period: Maximum time between two attempts.
    """

    name: str
    namespace: str
    identity: str
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0


class NoElection:
    """Leads immediately and permanently: for a single replica, or without an API server."""

    problem = ""

    def __init__(self, *, clock: Clock, identity: str) -> None:
        self.holder = identity
        self._clock = clock
        self._leading = False

    @property
    def leading(self) -> bool:
        """Whether `lead` is running."""
        return self._leading

    async def lead(self, work: Work) -> None:
        """Run `work` in one term that lasts as long as this call."""
        term = Term(self._clock, holder=self.holder)
        self._leading = True
        try:
            await work(term)
        finally:
            self._leading = False
            term.end()
