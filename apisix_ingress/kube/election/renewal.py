"""Renewing one lease for as long as a term lasts: when to try, how long, and when to give up.

A renewal counts from the moment before it was sent, so with answers that take long most of its time is over when it
counts. Hence tries overlap: the next one is sent although nobody has answered the one before. As long as an answer
takes `renew_deadline` less one `retry_period` at most, one comes in time. What a try does is in `lease`.
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
"""From one try to the next in retry periods: less than one, so that what the bound above promises is kept."""


class Renewal:
    """Renewals of the lease that a term rests on.

    Args:
        lease: Won a moment ago.
        term: Its deadline moves on with each success.
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
        """Return once the last success is young enough for the next one to come in time.

        Raises:
            LeadershipLost: There was none, or somebody else was faster.
        """
        last, give_up = self._renewed, self._clock.monotonic() + self._options.lease_duration
        try:
            while self._renewed == last and self._clock.monotonic() - last > self._pause:
                await self._step(give_up)
        except BaseException:
            await self.end()
            raise

    async def keep(self, work: asyncio.Task[None]) -> None:
        """Renew until the work has ended; `end` is for the caller, who has more urgent things to do first.

        Raises:
            LeadershipLost: The lease is lost, or may be soon.
        """
        while not work.done():
            await self._step(self._renewed + self._options.renew_deadline, work)

    async def end(self) -> None:
        """Give up the tries that are under way; they may be carried out all the same."""
        for each in self._tries:
            each.cancel()
        if self._tries:
            await asyncio.wait(self._tries)
        self._tries.clear()

    async def _step(self, give_up: float, *work: asyncio.Task[None]) -> None:
        """Try if it is time to, wait until something happens, and see what came of it."""
        now = self._clock.monotonic()
        if now >= give_up:
            raise LeadershipLost(f"no renewal for {now - self._renewed:.3g} s: {self._lease.problem or 'no answer'}")
        until = min(give_up, self._due())
        if until <= now:
            self._try()
            until = min(give_up, self._due())
        await self._wait({*work, *self._tries}, until - now)
        for each in [each for each in self._tries if each.done()]:
            self._settle(each, self._tries.pop(each))

    def _due(self) -> float:
        """Return when the next try is due."""
        return self._sent + self._pause if self._lease.overlaps or not self._tries else math.inf

    def _try(self) -> None:
        deadline = self._options.renew_deadline
        # One that nobody can overtake has to leave time for another.
        seconds = deadline if self._lease.overlaps else deadline / 2
        self._sent, self._pause = self._clock.monotonic(), self._draw()
        self._tries[asyncio.create_task(self._lease.renew(seconds), name="renewal")] = self._sent

    def _settle(self, done: asyncio.Task[None], sent: float) -> None:
        """Take over how a try ended."""
        # Not raised but for a lost lease: the error would keep this frame, and that the task with the error in it.
        error = done.exception()
        if isinstance(error, KubeError):
            self._lease.complain(error)
            return
        if error is not None:
            raise error
        self._lease.complain(None)
        self._renewed = max(self._renewed, sent)
        self._term.deadline = self._renewed + self._options.lease_duration

    async def _wait(self, tasks: set[asyncio.Task[None]], seconds: float) -> None:
        """Wait for the time or the end of a task, whichever comes first."""
        timer = asyncio.ensure_future(self._clock.sleep(max(0.0, seconds)))
        try:
            await asyncio.wait((*tasks, timer), return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()

    def _draw(self) -> float:
        return self._options.retry_period * self._rng.uniform(_SHORTEST, _LONGEST)
