"""Renews a lease while a term lasts: decides when to try, how long to wait, and when to give up.

A renewal extends the lease from the moment before it was sent, so a slow response leaves little of that time. Therefore
attempts overlap: the next one is sent before the response to the previous one. If every response takes at most
`renew_deadline` minus one `retry_period`, a renewal always succeeds in time. `lease` implements an attempt.
"""

from __future__ import annotations

import asyncio
import math
import random

from apisix_ingress.errors import KubeError, LeadershipLost
from apisix_ingress.kube.election.interface import LeaseOptions
from apisix_ingress.kube.election.lease import Lease
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.term import Term

_SHORTEST, _LONGEST = 0.75, 0.95
"""Time between two attempts in retry periods; below 1, which the limit in the module docstring requires."""


class Renewal:
    """Renewals of the lease that a term rests on.

    Args:
        lease: The lease, just acquired.
        term: Each success extends its deadline.
        options: The times.
        clock: For every deadline.
        rng: For jitter.
    """

    def __init__(self, lease: Lease, term: Term, options: LeaseOptions, *, clock: Clock, rng: random.Random) -> None:
        self._lease = lease
        self._term = term
        self._options = options
        self._clock = clock
        self._rng = rng
        self._renewed = self._sent = term.deadline - options.lease_duration
        self._pause = self._draw()
        self._tries: dict[asyncio.Task[None], float] = {}

    async def confirm(self) -> None:
        """Return once the last success is recent enough for the next one to follow in time.

        Raises:
            LeadershipLost: No renewal succeeded, or another candidate holds the lease.
        """
        last, give_up = self._renewed, self._clock.monotonic() + self._options.lease_duration
        try:
            while self._renewed == last and self._clock.monotonic() - last > self._pause:
                await self._step(give_up)
        except BaseException:
            await self.end()
            raise

    async def keep(self, work: asyncio.Task[None]) -> None:
        """Renew until the work has ended. The caller must call `end`, after more urgent steps.

        Raises:
            LeadershipLost: The lease is lost or is about to expire.
        """
        while not work.done():
            await self._step(self._renewed + self._options.renew_deadline, work)

    async def end(self) -> None:
        """Cancel the attempts in flight; they may still take effect."""
        for each in self._tries:
            each.cancel()
        if self._tries:
            await asyncio.wait(self._tries)
        self._tries.clear()

    async def _step(self, give_up: float, *work: asyncio.Task[None]) -> None:
        """Start an attempt if one is due, wait for the next event, and handle finished attempts."""
        now = self._clock.monotonic()
        if now >= give_up:
            raise LeadershipLost(f"no renewal for {now - self._renewed:.3g} s: {self._lease.problem or 'no response'}")
        until = min(give_up, self._due())
        if until <= now:
            self._try()
            until = min(give_up, self._due())
        await self._wait({*work, *self._tries}, until - now)
        for each in [each for each in self._tries if each.done()]:
            self._settle(each, self._tries.pop(each))

    def _due(self) -> float:
        """Return when the next attempt is due."""
        return self._sent + self._pause if self._lease.overlaps or not self._tries else math.inf

    def _try(self) -> None:
        deadline = self._options.renew_deadline
        # Without overlap, an attempt must leave time for a second one.
        seconds = deadline if self._lease.overlaps else deadline / 2
        self._sent, self._pause = self._clock.monotonic(), self._draw()
        self._tries[asyncio.create_task(self._lease.renew(seconds), name="renewal")] = self._sent

    def _settle(self, done: asyncio.Task[None], sent: float) -> None:
        """Handle a finished attempt."""
        # Raise only for a lost lease: a raised error references this frame, and the frame the task with the error.
        error = done.exception()
        if isinstance(error, KubeError):
            self._lease.report(error)
            return
        if error is not None:
            raise error
        self._lease.report(None)
        self._renewed = max(self._renewed, sent)
        self._term.deadline = self._renewed + self._options.lease_duration

    async def _wait(self, tasks: set[asyncio.Task[None]], seconds: float) -> None:
        """Wait for a timeout or the end of a task, whichever comes first."""
        timer = asyncio.ensure_future(self._clock.sleep(max(0.0, seconds)))
        try:
            await asyncio.wait((*tasks, timer), return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()

    def _draw(self) -> float:
        return self._options.retry_period * self._rng.uniform(_SHORTEST, _LONGEST)
