"""Backends and their clients in one process of their own, so that both ends of a request share a clock.

The backends respond to every request immediately and record when they received it. The clients send at a constant rate
through a gateway's proxy, each on a connection that stays open.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, NamedTuple, Self

CLIENTS = 8
PORT = 8080
HOST = "deletion.example.org"
OK = 200
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"
_REQUEST = f"GET / HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
_END = 10.0
"""Seconds after which the process is killed if it does not exit."""


class Received(NamedTuple):
    """The requests of one backend: their number, and when the last one arrived (Unix seconds)."""

    requests: int
    last: float


class Load:
    """The process with the backends and clients. A context manager starts and stops it.

    Args:
        proxy: Host and port of the gateway's proxy.
        rate: Requests per second of all clients together.
    """

    def __init__(self, proxy: tuple[str, int], rate: float) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_main, args=(other, proxy, rate), daemon=True)

    def __enter__(self) -> Self:
        self._process.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pipe.close()
        self._process.join(_END)
        self._process.kill()

    def serve(self, address: str) -> None:
        """Start a backend."""
        self._ask("serve", address)

    def received(self, address: str) -> Received:
        """Return what a backend has received so far."""
        return Received(*self._ask("received", address))

    def send(self) -> None:
        """Start the clients."""
        self._ask("send")

    def statuses(self) -> Counter[int]:
        """Return the number of responses by status; 0 counts broken connections."""
        return Counter(self._ask("statuses"))

    def _ask(self, *words: str) -> Any:
        self._pipe.send(words)
        return self._pipe.recv()


class _Backends:
    """Servers by address."""

    def __init__(self) -> None:
        self.received: dict[str, Received] = {}

    async def serve(self, address: str) -> None:
        self.received[address] = Received(0, 0.0)
        await asyncio.get_running_loop().create_server(lambda: _Backend(self, address), address, PORT)


class _Backend(asyncio.Protocol):
    """One connection: every chunk that ends a request head is one request, since none has a body."""

    def __init__(self, backends: _Backends, address: str) -> None:
        self._backends = backends
        self._address = address
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._transport is not None and data.endswith(b"\r\n\r\n"):
            before = self._backends.received[self._address]
            self._backends.received[self._address] = Received(before.requests + 1, time.time())
            self._transport.write(_ANSWER)


async def _client(proxy: tuple[str, int], pause: float, statuses: Counter[int]) -> None:
    """Send requests one after the other, each `pause` seconds after the one before was due."""
    due = time.monotonic()
    while True:
        with suppress(OSError, asyncio.IncompleteReadError, ValueError):
            reader, writer = await asyncio.open_connection(*proxy)
            try:
                while True:
                    due = max(due + pause, time.monotonic())
                    await asyncio.sleep(due - time.monotonic())
                    writer.write(_REQUEST)
                    statuses[await _status(reader)] += 1
            finally:
                writer.close()
        statuses[0] += 1
        await asyncio.sleep(pause)


async def _status(reader: asyncio.StreamReader) -> int:
    """Read one response with a length or in chunks; return its status."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = next((int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:")), None)
    if length is not None:
        await reader.readexactly(length)
    else:
        await reader.readuntil(b"0\r\n\r\n")
    return int(head.split(b" ", 2)[1])


async def _run(pipe: Connection, proxy: tuple[str, int], rate: float) -> None:
    """Handle the parent's requests until it closes the pipe."""
    backends, statuses = _Backends(), Counter[int]()
    clients: list[asyncio.Task[None]] = []
    with suppress(EOFError):
        while True:
            words: Sequence[str] = await _next(pipe)
            match words:
                case ("serve", address):
                    await backends.serve(address)
                    pipe.send(None)
                case ("received", address):
                    pipe.send(tuple(backends.received[address]))
                case ("send",):
                    each = (_client(proxy, CLIENTS / rate, statuses) for _ in range(CLIENTS))
                    clients += map(asyncio.ensure_future, each)
                    pipe.send(None)
                case _:
                    pipe.send(dict(statuses))


async def _next(pipe: Connection) -> Sequence[str]:
    """Return the next request without blocking the event loop."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(pipe.fileno(), ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(pipe.fileno())
    words: Sequence[str] = pipe.recv()
    return words


def _main(pipe: Connection, proxy: tuple[str, int], rate: float) -> None:
    asyncio.run(_run(pipe, proxy, rate))
