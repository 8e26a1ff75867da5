"""Leader election on a Lease: creates terms and ensures that no work outlives the lease it was done under.

Every deadline is monotonic. The holder counts from the moment before it sent the renewal, followers from the moment
after they observed it. So the holder gives up first, regardless of the wall clocks; the times in the Lease are
informational. The caller of `lead` decides what to do within a term.
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
"""How long a lease is held for unacknowledged writes at the end. If they may take longer, the lease is not released."""

_SHORTEST, _LONGEST = 0.6, 0.8
"""Time between two reads of the lease, in retry periods: a released lease is acquired within one retry period."""


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
        """Why this process cannot campaign, as text; empty if it can."""
        return self._lease.problem

    @property
    def holder(self) -> str:
        """Identity of the last observed holder."""
        return self._lease.holder

    @property
    def leading(self) -> bool:
        """Whether this process has a term now."""
        return self._term is not None and self._term.remaining() > 0

    async def lead(self, work: Work) -> None:
        """Run `work` in every term until cancelled.

        In each term `work` runs as a task. If the lease could not be renewed in time, the term ends: the work is
        cancelled and awaited before the next campaign. If the work raises LeadershipLost, the term ends; any other
        exception is raised to the caller after the lease was released. When this call is cancelled, the work is
        cancelled and awaited first, then the lease is released. The lease is not released, and no campaign starts,
        while writes of the term are unacknowledged.
        """
        while True:
            term = await self._campaign()
            renewal = Renewal(self._lease, term, self._options, clock=self._clock, rng=self._rng)
            if await self._is_confirmed(renewal):
                await self._run_term(term, renewal, work)
            await self._clock.sleep(max(self._pause(), term.unacked_seconds()))

    async def _run_term(self, term: Term, renewal: Renewal, work: Work) -> None:
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
        """Read the lease and acquire it if it is free; return None if it is not free or the attempt failed."""
        try:
            seen = await self._lease.look()
            if not self._lease.is_free():
                return None
            began = self._clock.monotonic()
            await self._write(self._lease.take(seen))
        except KubeConflict:
            return None  # another candidate was faster
        except KubeError as error:
            self._lease.report(error)
            return None
        return Term(self._clock, holder=self._options.identity, deadline=began + self._options.lease_duration)

    async def _write(self, request: Coroutine[Any, Any, None]) -> None:
        """Send a write that may acquire the lease; if cancelled meanwhile, release the lease immediately."""
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
        """Return whether an acquired lease lasts long enough to start work."""
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
        """Renew the lease while the work runs; end the work when the term ends for any reason."""

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
            self._log_error(task)
            if ended:
                await self._give_back(term)
            raise
        ending = asyncio.create_task(self._conclude(term, renewal, task), name="term-end")
        try:
            await asyncio.wait((ending,))
        except asyncio.CancelledError:
            await asyncio.wait((ending,))
            self._log_error(ending)
            raise
        ending.result()

    async def _conclude(self, term: Term, renewal: Renewal, task: asyncio.Task[None]) -> None:
        """End the work of a term and raise its exception, if any."""
        await self._end_work(term, task)
        await renewal.end()
        error = None if task.cancelled() else task.exception()
        if task.cancelled() or (error is not None and _is_leadership_lost(error)):
            return
        await self._give_back(term)
        if error is not None:
            raise error

    def _log_error(self, task: asyncio.Task[None]) -> None:
        """Log the exception of work that was cancelled: the caller raises the cancellation instead."""
        if not task.cancelled() and (error := task.exception()) is not None and not _is_leadership_lost(error):
            log.error("term.failed", identity=self._options.identity, exc_info=error)

    # Releasing.

    async def _end_work(self, term: Term, task: asyncio.Task[None]) -> bool:
        """End the term so that no write starts, then cancel the work and wait; return whether it ended in time."""
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
        """Release the lease once no write of the term can take effect after writes of the next leader."""
        left = term.unacked_seconds()
        if left > HOLD_SECONDS:
            reason = f"an unacknowledged write may still take effect for up to {left:.3g} s"
            log.warning("lease.not_released", lease=self._options.name, reason=reason)
            return
        if left > 0:
            await self._clock.sleep(left)
        await self._release()

    async def _release(self) -> None:
        """Release the lease, so that other candidates need not wait until it expires. A failure does no harm."""
        try:
            released = await bounded(self._lease.free(), RELEASE_SECONDS, clock=self._clock)
        except (KubeError, TimeoutError) as error:
            log.warning("lease.not_released", lease=self._options.name, reason=str(error) or "no response in time")
            return
        if released:
            log.info("lease.released", lease=self._options.name)

    def _pause(self) -> float:
        return self._options.retry_period * self._rng.uniform(_SHORTEST, _LONGEST)


def _is_leadership_lost(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(_is_leadership_lost(each) for each in error.exceptions)
    return isinstance(error, LeadershipLost)
