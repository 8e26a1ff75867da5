"""Leader election on a Lease: makes terms, and sees to it that no work outlives the lease it was done under.

Every deadline is monotonic. The holder counts from the moment before it sent the renewal, followers from the moment
after they saw it, so that the holder gives up first whatever the wall clocks say; times in the Lease are for people.
What is done within a term is the business of whoever calls `lead`.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import structlog

from apisix_ingress.errors import (
    KubeConflict,
    KubeError,
    KubeForbidden,
    KubeNotFound,
    KubeUnavailable,
    KubeUnreachable,
    LeadershipLost,
)
from apisix_ingress.model.json import JsonObject
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.tasks import bounded
from apisix_ingress.runtime.term import Term

log = structlog.get_logger()

Work = Callable[[Term], Awaitable[None]]

_JITTER = 0.2
_RELEASE_SECONDS = 3.0


class LeaseApi(Protocol):
    """What the elector needs of the API server; `api.KubeApi` has it."""

    async def get(self, path: str, *, timeout: float = ...) -> JsonObject:
        """Return an object."""

    async def create(self, path: str, body: JsonObject, *, timeout: float = ...) -> JsonObject:
        """Create an object."""

    async def update(self, path: str, body: JsonObject, *, timeout: float = ...) -> JsonObject:
        """Replace an object if it is still the version that the body names."""


class Election(Protocol):
    """Runs work under leadership."""

    problem: str
    holder: str

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
        retry_period: Between two tries.
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


@dataclass(slots=True)
class _Observed:
    """What a follower knows of the lease: the spec that it saw, and since when it has not changed."""

    spec: JsonObject
    since: float


class LeaderElector:
    """Campaigns for one Lease and runs work while it is held.

    Args:
        api: The API server.
        options: The Lease.
        clock: For every deadline, and for the times that people read.
        rng: For jitter.
    """

    def __init__(
        self,
        api: LeaseApi,
        options: LeaseOptions,
        *,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        self.problem = ""
        """Why this process can't campaign, for people; empty: it can."""
        self.holder = ""
        """Identity of the holder that was seen last."""
        self._api = api
        self._options = options
        self._clock = clock
        self._rng = rng
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{options.namespace}/leases"
        self._path = f"{self._collection}/{options.name}"
        self._lease: JsonObject | None = None
        self._observed: _Observed | None = None
        self._term: Term | None = None

    @property
    def leading(self) -> bool:
        """Whether a term lasts."""
        return self._term is not None and self._term.remaining() > 0

    async def lead(self, work: Work) -> None:
        """Run `work` in every term that is won, until cancelled.

        In each term `work` runs as a task. When the lease could not be renewed in time, the term ends, and the work is
        cancelled and awaited before the next campaign. What the work raises goes to the caller, with the lease
        released; LeadershipLost alone counts as the end of the term. When this call is cancelled, the work is
        cancelled and awaited first, then the lease is released.
        """
        while True:
            term = await self._campaign()
            self._term = term
            log.info("term.started", identity=self._options.identity)
            try:
                await self._serve(term, work)
            finally:
                term.end()
                self._term = None
                log.info("term.ended", identity=self._options.identity)
            await self._clock.sleep(self._pause())

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
            lease = await self._look()
            if not self._is_free():
                return None
            began = self._clock.monotonic()
            self._lease = await self._write(self._create() if lease is None else self._take(lease))
        except KubeConflict:
            return None  # somebody was faster
        except KubeError as error:
            self._complain(error)
            return None
        self._complain(None)
        self._see(self._lease)
        return Term(self._clock, holder=self._options.identity, deadline=began + self._options.lease_duration)

    async def _look(self) -> JsonObject | None:
        try:
            lease = await self._api.get(self._path, timeout=self._try_seconds())
        except KubeNotFound:
            return None
        self._see(lease)
        self._complain(None)
        return lease

    def _see(self, lease: JsonObject) -> None:
        """Remember since when the lease looks as it does; only what we watched ourselves counts."""
        spec = lease.get("spec") or {}
        holder = str(spec.get("holderIdentity") or "")
        if holder and holder not in (self.holder, self._options.identity):
            log.info("term.awaited", lease=self._options.name, leader=holder)
        self.holder = holder
        if self._observed is None or self._observed.spec != spec:
            self._observed = _Observed(spec, self._clock.monotonic())

    def _is_free(self) -> bool:
        """Whether the lease that was seen last may be taken; one that was deleted has to run out all the same."""
        if self._observed is None:
            return True
        spec = self._observed.spec
        holder = spec.get("holderIdentity") or ""
        if not holder or holder == self._options.identity:
            return True
        duration = spec.get("leaseDurationSeconds")
        waits = max(float(duration) if isinstance(duration, int | float) else 0.0, self._options.lease_duration)
        return self._clock.monotonic() >= self._observed.since + waits

    async def _write(self, request: Coroutine[Any, Any, JsonObject]) -> JsonObject:
        """Carry out a write that may win the lease; if we are stopped meanwhile, it is given back at once."""
        write = asyncio.ensure_future(request)
        try:
            return await asyncio.shield(write)
        except asyncio.CancelledError:
            await asyncio.wait((write,), timeout=_RELEASE_SECONDS)
            if write.done() and isinstance(write.exception(), KubeConflict):
                raise
            write.cancel()
            await self._release()
            raise

    async def _create(self) -> JsonObject:
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._options.name, "namespace": self._options.namespace},
            "spec": self._spec({}, acquired=True, transitions=0),
        }
        return await self._api.create(self._collection, lease, timeout=self._try_seconds())

    async def _take(self, lease: JsonObject) -> JsonObject:
        spec = lease.get("spec") or {}
        changes = spec.get("holderIdentity") != self._options.identity
        transitions = int(spec.get("leaseTransitions") or 0) + changes
        wanted = {**lease, "spec": self._spec(spec, acquired=changes, transitions=transitions)}
        return await self._api.update(self._path, wanted, timeout=self._try_seconds())

    def _spec(self, spec: JsonObject, *, acquired: bool, transitions: int) -> JsonObject:
        now = micro_time(self._clock.now())
        return {
            **spec,
            "holderIdentity": self._options.identity,
            # Followers believe the Lease, so it never says less than we count on.
            "leaseDurationSeconds": math.ceil(self._options.lease_duration),
            "acquireTime": now if acquired else spec.get("acquireTime", now),
            "renewTime": now,
            "leaseTransitions": transitions,
        }

    # Keeping.

    async def _serve(self, term: Term, work: Work) -> None:
        """Renew while the work runs; end the work when the term ends, in whatever way."""

        async def run() -> None:
            await work(term)

        task = asyncio.create_task(run(), name="term")
        try:
            await self._renew_until_lost(term, task)
        except asyncio.CancelledError:
            ended = await self._end_work(term, task)
            self._tell(task)
            if ended:
                await self._release()
            raise
        await self._end_work(term, task)
        await self._settle(task)

    async def _settle(self, task: asyncio.Task[None]) -> None:
        """Pass on how the work ended."""
        error = None if task.cancelled() else task.exception()
        if task.cancelled() or (error is not None and _is_leadership_lost(error)):
            return
        await self._release()
        if error is not None:
            raise error

    def _tell(self, task: asyncio.Task[None]) -> None:
        """Log what the work raised while it was shut down: the cancellation goes first."""
        if not task.cancelled() and (error := task.exception()) is not None and not _is_leadership_lost(error):
            log.error("term.failed", identity=self._options.identity, exc_info=error)

    async def _renew_until_lost(self, term: Term, task: asyncio.Task[None]) -> None:
        """Return when the work has ended, or when the lease is lost or may be."""
        renewed = term.deadline - self._options.lease_duration
        while not task.done():
            spent = self._clock.monotonic() - renewed
            await self._wait(task, min(self._pause(), self._options.renew_deadline) - spent)
            if task.done():
                return
            try:
                renewed = await self._renew(term, renewed)
            except LeadershipLost as error:
                log.warning("lease.lost", lease=self._options.name, reason=str(error))
                return

    async def _renew(self, term: Term, renewed: float) -> float:
        """Try until a renewal succeeds; return the time at which it began."""
        give_up = renewed + self._options.renew_deadline
        while (left := give_up - self._clock.monotonic()) > 0:
            began = self._clock.monotonic()
            cached = self._lease is not None
            try:
                await self._renew_once(min(left, self._try_seconds()))
            except KubeNotFound:
                raise LeadershipLost("the lease was deleted") from None
            except KubeError as error:
                if cached and isinstance(error, KubeConflict):
                    continue  # somebody wrote it: look at once who has it
                self._complain(error)
                await self._clock.sleep(min(self._pause(), give_up - self._clock.monotonic()))
                continue
            self._complain(None)
            term.deadline = began + self._options.lease_duration
            return began
        raise LeadershipLost(f"no renewal for {self._options.renew_deadline:g} s: {self.problem}")

    async def _renew_once(self, seconds: float) -> None:
        try:
            await bounded(self._put_again(seconds), seconds, clock=self._clock)
        except TimeoutError:
            raise KubeUnavailable("renewing the lease: no answer in time") from None

    async def _put_again(self, seconds: float) -> None:
        """Put the lease as we know it with a new time; if we do not know it any more, look who has it now."""
        lease = self._lease or await self._api.get(self._path, timeout=seconds)
        spec = lease.get("spec") or {}
        if spec.get("holderIdentity") != self._options.identity:
            raise LeadershipLost(f"{spec.get('holderIdentity') or 'nobody'} holds the lease")
        self._lease = None  # until the answer says that the write came through
        transitions = int(spec.get("leaseTransitions") or 0)
        wanted = {**lease, "spec": self._spec(spec, acquired=False, transitions=transitions)}
        self._lease = await self._api.update(self._path, wanted, timeout=seconds)

    async def _wait(self, task: asyncio.Task[None], seconds: float) -> None:
        """Wait for the time or the end of the work, whichever comes first."""
        timer = asyncio.ensure_future(self._clock.sleep(max(0.0, seconds)))
        try:
            await asyncio.wait((task, timer), return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()

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

    async def _release(self) -> None:
        """Give the lease up, so that nobody has to wait for it to run out. Failing to is no harm."""
        try:
            async with asyncio.timeout(_RELEASE_SECONDS):
                try:
                    released = await self._free()
                except KubeConflict:  # with a renewal of ours that was under way when we were stopped
                    self._lease = None
                    released = await self._free()
        except (KubeError, TimeoutError) as error:
            log.warning("lease.kept", lease=self._options.name, reason=str(error) or "no answer in time")
            return
        finally:
            self._lease = None
        if released:
            log.info("lease.released", lease=self._options.name)

    async def _free(self) -> bool:
        """Take our name out of the lease; False if it is somebody else's."""
        lease = self._lease or await self._api.get(self._path, timeout=_RELEASE_SECONDS)
        spec = lease.get("spec") or {}
        if spec.get("holderIdentity") != self._options.identity:
            return False
        now = micro_time(self._clock.now())
        free = {**spec, "holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": now}
        await self._api.update(self._path, {**lease, "spec": free}, timeout=_RELEASE_SECONDS)
        return True

    # Details.

    def _pause(self) -> float:
        return self._options.retry_period * (1 + _JITTER * self._rng.random())

    def _try_seconds(self) -> float:
        """Bound one request: a hung one must leave time for another."""
        return self._options.renew_deadline / 2

    def _complain(self, error: KubeError | None) -> None:
        problem = "" if error is None else str(error)
        if isinstance(error, KubeForbidden):
            where = f"namespace {self._options.namespace}"
            problem = f"electing a leader is forbidden: grant get, create, update on leases in {where} ({error})"
        if problem and problem != self.problem:
            line = log.debug if isinstance(error, KubeUnreachable) else log.warning
            line("lease.unavailable", lease=self._options.name, problem=problem)
        self.problem = problem


def micro_time(moment: datetime) -> str:
    """Return a MicroTime: RFC 3339 in UTC with six digits of the second."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _is_leadership_lost(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(_is_leadership_lost(each) for each in error.exceptions)
    return isinstance(error, LeadershipLost)
