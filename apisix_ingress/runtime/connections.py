"""Limits the number and the idle time of connections to the program's HTTP servers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from apisix_ingress.runtime.clock import Clock

SWEEP_INTERVAL = 1.0
"""Seconds between two checks of all connections, while there are any."""


@dataclass(slots=True)
class Connections:
    """The connections of one server.

    Attributes:
        server: Creates the handler of a connection.
        clock: Measures idle time.
        most: Maximum number of connections; one more closes the connection that has been idle longest.
        handshake: Seconds after which the event loop ends a TLS handshake.
        first: Seconds from the end of the TLS handshake to the first request.
        idle: Seconds between two requests.
    """

    server: web.Server
    clock: Clock
    most: int
    handshake: float
    first: float
    idle: float
    _since: dict[RequestHandler, float] = field(default_factory=dict)
    """Connection → when it was accepted; later, when it was first seen open; later, when its last request ended."""
    _open: set[RequestHandler] = field(default_factory=set)
    _served: set[RequestHandler] = field(default_factory=set)
    _active: set[RequestHandler] = field(default_factory=set)
    _accepted: asyncio.Event = field(default_factory=asyncio.Event)

    def __len__(self) -> int:
        """Return the number of connections, including those in their TLS handshake."""
        return len(self._since)

    def accept(self) -> RequestHandler:
        """Return the handler of a new connection."""
        if len(self._since) >= self.most:
            self._close_idlest()
        connection = self.server()
        self._since[connection] = self.clock.monotonic()
        self._accepted.set()
        return connection

    @contextmanager
    def active(self, request: web.Request) -> Iterator[None]:
        """Do not close the connection of a request while the request is handled."""
        connection = request.protocol
        self._active.add(connection)
        try:
            yield
        finally:
            self._active.discard(connection)
            if connection in self._since:
                self._since[connection] = self.clock.monotonic()
                self._served.add(connection)

    async def run(self) -> None:
        """Check all connections periodically until cancelled."""
        while True:
            if not self._since:
                self._accepted.clear()
                await self._accepted.wait()
            await self.clock.sleep(SWEEP_INTERVAL)
            self.sweep()

    def sweep(self) -> None:
        """Close connections that have been idle for too long, and forget closed ones."""
        now, found = self.clock.monotonic(), set(self.server.connections)
        for connection, since in tuple(self._since.items()):
            if connection in found and connection not in self._open:
                self._open.add(connection)
                self._since[connection] = now
            elif connection in self._open and connection not in found:
                self._forget(connection)
            elif connection in found and connection not in self._active and now - since > self._limit(connection):
                self._close(connection)
            elif connection not in found and now - since > self.handshake:
                self._forget(connection)

    def _limit(self, connection: RequestHandler) -> float:
        return self.idle if connection in self._served else self.first

    def _close_idlest(self) -> None:
        idle = [each for each in self.server.connections if each not in self._active and each in self._since]
        if idle:
            self._close(min(idle, key=self._since.__getitem__))

    def _close(self, connection: RequestHandler) -> None:
        connection.force_close()
        self._forget(connection)

    def _forget(self, connection: RequestHandler) -> None:
        self._since.pop(connection, None)
        self._open.discard(connection)
        self._served.discard(connection)
