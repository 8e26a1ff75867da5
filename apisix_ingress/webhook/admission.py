"""Handles one request of an API server: reads it within limits, checks it, and responds.

Clients that send too much, too slowly or too often are rejected, so that neither the memory nor the event loop of the
controller suffers; `threads` runs the checks. If a check crashes or takes too long, the object is admitted with a
warning: rejecting objects because of a bug would be worse, and the controller checks each object anyway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

import structlog
from aiohttp import web

from apisix_ingress.runtime.clock import Clock
from apisix_ingress.webhook.review import Review, ReviewError, Verdict, parse_review, render
from apisix_ingress.webhook.room import Full, Room
from apisix_ingress.webhook.threads import Threads

log = structlog.get_logger()

Result = Literal["allowed", "warned", "denied", "crashed", "late", "invalid", "oversized", "busy", "slow", "aborted"]
"""The result of a request; the label of a metric."""

CRASHED = Verdict(warnings=("the object was not checked: the check crashed; the controller checks it again",))
LATE = Verdict(warnings=("the object was not checked: the check took too long; the controller checks it again",))


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits.

    Attributes:
        body: Bytes of a request.
        deadline: Seconds for a request, from its headers to the response.
        check: Seconds for which a check may run.
        inline: Bytes beyond which a request is parsed in a thread, so that the event loop continues.
        requests: Concurrent requests; see `Room` for the share of one client.
        memory: Bytes of all concurrent requests; one without a length counts as the longest.
        handshakes: Concurrent TLS handshakes.
        handshake: Seconds for TLS. Under a burst of connections, this process is the slow side.
        first: Seconds from then to the first request.
        idle: Seconds between two requests; more than the API server's 90, so that the API server closes first.
        connections: Concurrent connections.
    """

    body: int = 3 * 1024 * 1024
    deadline: float = 2.0
    check: float = 1.0
    inline: int = 16 * 1024
    requests: int = 1024
    memory: int = 48 * 1024 * 1024
    handshakes: int = 512
    handshake: float = 15.0
    first: float = 10.0
    idle: float = 120.0
    connections: int = 1024


class Observer(Protocol):
    """Counts requests."""

    def answered(self, kind: str, result: Result, seconds: float) -> None:
        """Count a request: the kind of the object (empty: unknown), the result, and the duration."""


Judge = Callable[[Review], Verdict]


class _Refused(Exception):
    """A request that is rejected without a check of the object."""

    def __init__(self, result: Result, status: int, text: str) -> None:
        super().__init__(text)
        self.result = result
        self.status = status


@dataclass(slots=True)
class _Outcome:
    """What is known about a request while it is handled."""

    kind: str = ""
    result: Result = "aborted"


@dataclass(slots=True)
class Admission:
    """Answers requests.

    Attributes:
        judge: Checks the object. Called in a thread.
        observer: Receives every request.
        clock: Measures durations.
        limits: The limits.
        threads: Run the checks.
    """

    judge: Judge
    observer: Observer
    clock: Clock
    limits: Limits
    threads: Threads
    _room: Room = field(init=False)

    def __post_init__(self) -> None:
        self._room = Room(self.limits.requests, self.limits.memory)

    async def handle(self, request: web.Request) -> web.Response:
        """Answer a request."""
        began, outcome = self.clock.monotonic(), _Outcome()
        try:
            return await self._answer(request, outcome)
        except _Refused as refusal:
            outcome.result = refusal.result
            return _refusal(refusal)
        finally:
            self.observer.answered(outcome.kind, outcome.result, self.clock.monotonic() - began)

    async def _answer(self, request: web.Request, outcome: _Outcome) -> web.Response:
        size = self.limits.body if request.content_length is None else request.content_length
        if size > self.limits.body:
            raise _Refused("oversized", 413, f"the body is larger than {self.limits.body} bytes")
        client, ends = request.remote or "", asyncio.get_running_loop().time() + self.limits.deadline
        try:
            with self._room.taken(client, size):
                content = await self._read(request, ends)
                review, verdict = await self._checked(client, content, ends)
        except Full:
            raise _Refused("busy", 429, "too many requests at once") from None
        outcome.kind, outcome.result = review.kind, _result(verdict)
        return web.Response(body=render(review, verdict), content_type="application/json")

    async def _read(self, request: web.Request, ends: float) -> bytes:
        try:
            async with asyncio.timeout_at(ends):
                return await request.read()
        except TimeoutError:
            raise _Refused("slow", 408, f"the body did not arrive within {self.limits.deadline:g} s") from None
        except web.HTTPRequestEntityTooLarge:
            raise _Refused("oversized", 413, f"the body is larger than {self.limits.body} bytes") from None

    async def _checked(self, client: str, content: bytes, ends: float) -> tuple[Review, Verdict]:
        """Check an object in a thread.

        Stores may change meanwhile, which can make a check fail: it is then repeated.
        """
        review = [_parsed(content)] if len(content) <= self.limits.inline else []

        def work() -> tuple[Review, Verdict]:
            if not review:
                review.append(_parsed(content))
            return review[0], self._judged(review[0], tries=3)

        try:
            return await self.threads.run(client, work, ends=ends, seconds=self.limits.check)
        except TimeoutError:
            if review:
                return review[0], LATE
            raise _Refused("slow", 503, f"the body could not be read within {self.limits.deadline:g} s") from None

    def _judged(self, review: Review, *, tries: int) -> Verdict:
        try:
            return self.judge(review)
        except Exception as error:
            if tries > 1:
                return self._judged(review, tries=tries - 1)
            name = f"{review.kind} {review.namespace}/{review.name}"
            log.error("review.crashed", object=name, operation=review.operation, exc_info=error)
            return CRASHED


def _parsed(content: bytes) -> Review:
    try:
        return parse_review(content)
    except ReviewError as error:
        raise _Refused("invalid", 400, str(error)) from None


def _result(verdict: Verdict) -> Result:
    if verdict in (CRASHED, LATE):
        return "crashed" if verdict == CRASHED else "late"
    if not verdict.allowed:
        return "denied"
    return "warned" if verdict.warnings else "allowed"


def _refusal(refusal: _Refused) -> web.Response:
    """Return the response to a rejected request; the rest of its body is not read."""
    headers = {"Retry-After": "1"} if refusal.status == 429 else {}
    response = web.Response(status=refusal.status, text=f"{refusal}\n", headers=headers)
    response.force_close()
    return response
