"""Responses of the simulated API server: replies, and the streams of watches. `apiserver` decides what they contain."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Mapping
from contextvars import Context
from dataclasses import dataclass, field
from typing import Any, Protocol

import aiohttp
import orjson

from tests.fakes.kube.faults import Refusal
from tests.fakes.kube.kinds import Kind
from tests.simulation.loop import Process


class Sender(Protocol):
    """The parts of the API server that a stream uses."""

    def delay(self) -> float:
        """Draw the latency of one direction."""

    def state_of(self, process: Process) -> str:
        """Return the state of a process' network."""

    def close(self, stream: Stream) -> None:
        """Forget a stream."""


class Stream:
    """The response to a watch: chunks in order, each with a delay after it was sent."""

    def __init__(self, server: Sender, kind: Kind, process: Process, back: Context, since: int) -> None:
        self.kind = kind
        self.process = process
        self.since = since
        self._server = server
        self._back = back
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._last = -math.inf
        self._stalled = False
        self._is_torn = False
        self._is_over = False

    def send(self, chunk: bytes | None) -> None:
        """Send a chunk; None is the end."""
        if self._stalled or self._is_over:
            return
        loop = asyncio.get_running_loop()
        self._last = max(self._last, loop.time() + self._server.delay())
        loop.call_at(self._last, self._arrive, chunk, context=self._back)

    def end(self) -> None:
        """End it regularly."""
        self.send(None)
        self._is_over = True
        self._server.close(self)

    def stall(self) -> None:
        """Send nothing more, without closing."""
        self._stalled = True
        self._server.close(self)

    def cut(self) -> None:
        """Cut it: chunks in flight may still arrive."""
        self.send(b"")
        self._is_over = True
        self._server.close(self)

    def _arrive(self, chunk: bytes | None) -> None:
        if self._server.state_of(self.process) != "up":
            # A chunk is lost: nothing after it can be read either.
            self._is_torn = True
            self.stall()
        if not self._is_torn:
            self._queue.put_nowait(chunk)

    async def iter_any(self) -> AsyncGenerator[bytes, None]:
        """Yield chunks until the end, like aiohttp's reader."""
        while (chunk := await self._queue.get()) is not None:
            if not chunk:
                raise aiohttp.ClientPayloadError("cut")
            yield chunk


@dataclass(slots=True)
class Reply:
    """A response for `KubeApi`; `content` is the stream of a watch, otherwise the body."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    content: Any = None

    def __post_init__(self) -> None:
        self.content = self.content or self

    async def iter_any(self) -> AsyncGenerator[bytes, None]:
        """Yield the body."""
        yield self.body


class BoundedStream:
    """The body of a watch, with a read timeout."""

    def __init__(self, stream: Stream, silence: float) -> None:
        self._stream = stream
        self._silence = silence

    async def iter_any(self) -> AsyncGenerator[bytes, None]:
        """Yield chunks until the end.

        Raises:
            TimeoutError: Nothing arrived in time.
        """
        chunks = self._stream.iter_any()
        while True:
            try:
                async with asyncio.timeout(self._silence):
                    chunk = await anext(chunks)
            except StopAsyncIteration:
                return
            yield chunk


def rejection(refusal: Refusal, headers: Mapping[str, str] | None = None) -> Reply:
    """Return the reply that reports an error."""
    status = {"kind": "Status", "message": str(refusal), "reason": refusal.reason, "code": refusal.code}
    return Reply(refusal.code, orjson.dumps(status), headers or {})
