"""Leader election on a Lease: makes terms, and sees to it that no work outlives the lease it was done under.

Every deadline is monotonic. The holder counts from the moment before it sent the renewal, followers from the moment
after they saw it, so that the holder gives up first whatever the wall clocks say; times in the Lease are for people.
What is done within a term is the business of whoever calls `lead`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from typing import Any

import structlog

from apisix_ingress.errors import KubeConflict, KubeError, LeadershipLost
from apisix_ingress.kube.election.interface import LeaseOptions, Work
from apisix_ingress.kube.election.lease import RELEASE_SECONDS, Lease, LeaseApi
from apisix_ingress.kube.election.renewal import Renewal
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.tasks import bounded
from apisix_ingress.runtime.term import Term

log = structlog.get_logger()

HOLD_SECONDS = 5.0
"""So long a lease is held at the end for writes that nobody answered; if they may take longer, it has to run out."""

_SHORTEST, _LONGEST = 0.6, 0.8
"""From one look to the next in retry periods: so that a lease that was given back is taken within one, all told."""


class LeaderElector:
    """Campaigns for one Lease and runs work while it is held.

    Args:
        api: The API server.
        options: The Lease.
        clock: For every deadline, and for the times that people read.
        rng: For jitter.
    """

    def __init__(self, api: LeaseApi, options: LeaseOptions, *, clock: Clock, rng: random.Random) -> None:
        self._lease = Lease(api, options, clock=clock)
        self._options = options
        self._clock = clock
        self._rng = rng
        self._term: Term | None = None

    @property
    def problem(self) -> str:
        """Why this process can't campaign, for people; empty: it can."""
        return self._lease.problem

    @property
    def holder(self) -> str:
        """Identity of the holder that was seen last."""
        return self._lease.holder

    @property
    def leading(self) -> bool:
        """Whether a term lasts."""
        return self._term is not None and self._term.remaining() > 0

    async def lead(self, work: Work) -> None:
        """Run `work` in every term that is won, until cancelled.

        In each term `work` runs as a task. When the lease could not be renewed in time, the term ends, and the work is
        cancelled and awaited before the next campaign. What the work raises goes to the caller, with the lease
        released; LeadershipLost alone counts as the end of the term. When this call is cancelled, the work is
        cancelled and awaited first, then the lease is released. It is not released, and there is no next campaign,
        while the term is in doubt.
        """
        while True:
            term = await self._campaign()
            renewal = Renewal(self._lease, term, self._options, clock=self._clock, rng=self._rng)
            if await self._is_confirmed(renewal):
                await self._reign(term, renewal, work)
            await self._clock.sleep(max(self._pause(), term.in_doubt()))

    async def _reign(self, term: Term, renewal: Renewal, work: Work) -> None:
        self._term = term
        log.info("term.started", identity=self._options.identity)
        try:
            await self._serve(term, renewal, work)
        finally:
            term.end()
            self._term = None
            log.info("term.ended", identity=self._options.identity)

    # Winning.

    async def _campaign(self) -> Term:
        while True:
            term = await self._try_acquire()
            if term is not None:
                return term
            await self._clock.sleep(self._pause())

    async def _try_acquire(self) -> Term | None:
        """Look at the lease and take it if it is free; None if it is not, or if that can't be told."""
        try:
            seen = await self._lease.look()
            if not self._lease.is_free():
                return None
            began = self._clock.monotonic()
            await self._write(self._lease.take(seen))
        except KubeConflict:
            return None  # somebody was faster
        except KubeError as error:
            self._lease.complain(error)
            return None
        return Term(self._clock, holder=self._options.identity, deadline=began + self._options.lease_duration)

    async def _write(self, request: Coroutine[Any, Any, None]) -> None:
        """Carry out a write that may win the lease; if we are stopped meanwhile, it is given back at once."""
        write = asyncio.ensure_future(request)
        try:
            await asyncio.shield(write)
        except asyncio.CancelledError:
            await asyncio.wait((write,), timeout=RELEASE_SECONDS)
            if write.done() and isinstance(write.exception(), KubeConflict):
                raise
            write.cancel()
            await self._release()
            raise

    async def _is_confirmed(self, renewal: Renewal) -> bool:
        """Say whether a lease that was won is ours for long enough to begin work under it."""
        try:
            await renewal.confirm()
        except LeadershipLost as error:
            log.info("lease.unconfirmed", lease=self._options.name, reason=str(error))
            return False
        except asyncio.CancelledError:
            await self._release()
            raise
        return True

    # Keeping.

    async def _serve(self, term: Term, renewal: Renewal, work: Work) -> None:
        """Renew while the work runs; end the work when the term ends, in whatever way."""

        async def run() -> None:
            await work(term)

        task = asyncio.create_task(run(), name="term")
        try:
            await renewal.keep(task)
        except LeadershipLost as error:
            log.warning("lease.lost", lease=self._options.name, reason=str(error))
        except asyncio.CancelledError:
            ended = await self._end_work(term, task)
            await renewal.end()
            self._tell(task)
            if ended:
                await self._give_back(term)
            raise
        ending = asyncio.create_task(self._conclude(term, renewal, task), name="term-end")
        try:
            await asyncio.wait((ending,))
        except asyncio.CancelledError:
            await asyncio.wait((ending,))
            self._tell(ending)
            raise
        ending.result()

    async def _conclude(self, term: Term, renewal: Renewal, task: asyncio.Task[None]) -> None:
        """End the work of a term that is over, and pass on how it ended."""
        await self._end_work(term, task)
        await renewal.end()
        error = None if task.cancelled() else task.exception()
        if task.cancelled() or (error is not None and _is_leadership_lost(error)):
            return
        await self._give_back(term)
        if error is not None:
            raise error

    def _tell(self, task: asyncio.Task[None]) -> None:
        """Log what the work raised while it was shut down: the cancellation goes first."""
        if not task.cancelled() and (error := task.exception()) is not None and not _is_leadership_lost(error):
            log.error("term.failed", identity=self._options.identity, exc_info=error)

    # Giving up.

    async def _end_work(self, term: Term, task: asyncio.Task[None]) -> bool:
        """Let no write start any more, then cancel the work and wait for it; return whether it ended in time."""
        left = max(0.0, term.remaining())
        term.end()
        task.cancel()
        in_time = asyncio.ensure_future(self._clock.sleep(left))
        try:
            await asyncio.wait((task, in_time), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return True
            log.error("term.overrun", identity=self._options.identity, waited_s=round(left, 3))
            await asyncio.wait((task,))
            return False
        finally:
            in_time.cancel()

    async def _give_back(self, term: Term) -> None:
        """Release the lease of a term when none of its writes can be carried out after those of the next leader."""
        left = term.in_doubt()
        if left > HOLD_SECONDS:
            reason = f"a write that got no answer may still be carried out, for {left:.3g} s perhaps"
            log.warning("lease.kept", lease=self._options.name, reason=reason)
            return
        if left > 0:
            await self._clock.sleep(left)
        await self._release()

    async def _release(self) -> None:
        """Give the lease up, so that nobody has to wait for it to run out. Failing to is no harm."""
        try:
            released = await bounded(self._lease.free(), RELEASE_SECONDS, clock=self._clock)
        except (KubeError, TimeoutError) as error:
            log.warning("lease.kept", lease=self._options.name, reason=str(error) or "no answer in time")
            return
        if released:
            log.info("lease.released", lease=self._options.name)

    def _pause(self) -> float:
        return self._options.retry_period * self._rng.uniform(_SHORTEST, _LONGEST)


def _is_leadership_lost(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(_is_leadership_lost(each) for each in error.exceptions)
    return isinstance(error, LeadershipLost)
