"""The HTTP server for health, readiness and metrics. Its callers supply the readiness checks and other pages.

====================  ==================================================================================
/healthz              200 as long as the event loop runs
/readyz               200 or 503, and for each check ``ok`` or the reason of its failure; ``notes`` if there are any
/apisix/healthz       200 ``{"status":"ok"}`` or 500 ``{"status":"<error>"}``, as in 1.8: the leader cannot write to a
                      gateway, or a gateway rejects a follower's key
/metrics              Prometheus text
====================  ==================================================================================

Listening and serving are two steps; connections in between wait. Anyone in the Kubernetes cluster may reach the port,
so the number of connections and their idle time are limited.
"""

from __future__ import annotations

import asyncio
import errno
import math
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

import orjson
from aiohttp import web

from apisix_ingress.errors import ConfigError
from apisix_ingress.model.secrets.redaction import escape, redact_text
from apisix_ingress.observability.http_log import server_logger
from apisix_ingress.observability.metrics import CONTENT_TYPE, Metrics
from apisix_ingress.runtime.clock import Clock, MonotonicClock
from apisix_ingress.runtime.connections import Connections

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

# Seconds for requests in flight when the server stops; every response here is computed immediately.
_SHUTDOWN_TIMEOUT = 1.0

_REST = 4
"""Pause after rendering metrics, as a multiple of its duration."""

_BACKLOG = 128
"""Connections that may wait until `serve`."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for connections to the server.

    Attributes:
        connections: Maximum number of connections; one more closes the connection that has been idle longest.
        first: Seconds until the first request.
        idle: Seconds between two requests; longer than a Prometheus scrape interval.
    """

    connections: int = 256
    first: float = 10.0
    idle: float = 120.0


Check = Callable[[], str | None]


class Readiness:
    """Named checks. Each returns None if it passes, else a short reason as text.

    A note is a check that is reported but does not affect readiness: no other replica would do better.
    """

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {}
        self._notes: dict[str, Check] = {}

    def add(self, name: str, check: Check) -> None:
        """Add a check; it replaces a check with the same name."""
        self._checks[name] = check

    def add_note(self, name: str, check: Check) -> None:
        """Add a note; it does not affect readiness."""
        self._notes[name] = check

    def failures(self) -> dict[str, str]:
        """Return check → reason for the checks that fail; empty means ready."""
        return _reasons(self._checks)

    def notes(self) -> dict[str, str]:
        """Return note → text for the notes that have one."""
        return _reasons(self._notes)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all checks."""
        return tuple(self._checks)


def _reasons(checks: Mapping[str, Check]) -> dict[str, str]:
    asked = ((name, _ask(check)) for name, check in checks.items())
    return {name: reason for name, reason in asked if reason is not None}


def _ask(check: Check) -> str | None:
    try:
        reason = check()
    except Exception as error:
        # A probe must get a response, so a check that raises is reported like a failed check.
        return f"the check failed: {type(error).__name__}"
    return None if reason is None else escape(redact_text(reason))


def _healthy() -> str | None:
    return None


class Pages(Protocol):
    """Additional pages."""

    def install(self, app: web.Application) -> None:
        """Add the routes of the pages."""


class HttpServer:
    """Serves the endpoints above; use ``async with`` and `serve`.

    Args:
        host: Address to listen on; empty for all interfaces.
        port: 0 for any free port, see `port`.
        readiness: What /readyz reports.
        metrics: What /metrics exposes.
        gateways: What /apisix/healthz reports: None if the gateways can be reached, else the error.
        pages: Additional pages, or None.
        clock: Measures how long connections are idle.
        limits: Limits for connections.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        readiness: Readiness,
        metrics: Metrics,
        gateways: Check = _healthy,
        pages: Pages | None = None,
        clock: Clock | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._host = host
        self._port = port
        self._readiness = readiness
        self._exposition = Exposition(metrics, clock or MonotonicClock())
        self._gateways = gateways
        self._pages = pages
        self._sockets: list[socket.socket] = []
        self._clock = clock or MonotonicClock()
        self._limits = limits or Limits()
        self._runner: web.AppRunner | None = None
        self._connections: Connections | None = None
        self._servers: list[asyncio.Server] = []

    async def listen(self) -> None:
        """Listen on the address; connections wait until `serve`.

        Raises:
            ConfigError: The address cannot be used.
        """
        loop = asyncio.get_running_loop()
        try:
            # create_server resolves names and binds all addresses or none. Its server would accept connections at
            # once, so keep duplicates of its sockets, which let connections wait.
            taken = await loop.create_server(asyncio.Protocol, self._host or None, self._port, start_serving=False)
            self._sockets = [each.dup() for each in taken.sockets]
            taken.close()
            for each in self._sockets:
                each.listen(_BACKLOG)
        except (OSError, UnicodeError) as error:
            await self.stop()
            raise ConfigError(self._explain(error)) from None

    async def serve(self) -> None:
        """Serve waiting and new connections until `stop`."""

        @web.middleware
        async def keep_open(request: web.Request, handler: _Handler) -> web.StreamResponse:
            assert self._connections is not None  # a request arrived
            with self._connections.active(request):
                return await handler(request)

        app = web.Application(middlewares=[keep_open])
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/apisix/healthz", self._apisix_healthz)
        app.router.add_get("/metrics", self._expose)
        if self._pages is not None:
            self._pages.install(app)
        limits = self._limits
        self._runner = web.AppRunner(
            app,
            logger=server_logger(),
            access_log=None,
            keepalive_timeout=limits.idle,
            lingering_time=0,
            shutdown_timeout=_SHUTDOWN_TIMEOUT,
        )
        await self._runner.setup()
        assert self._runner.server is not None  # the runner is set up
        self._connections = Connections(
            self._runner.server, self._clock, limits.connections, limits.first, limits.first, limits.idle
        )
        loop = asyncio.get_running_loop()
        for each in self._sockets:
            server = await loop.create_server(
                self._connections.accept, sock=each.dup(), backlog=_BACKLOG, start_serving=False
            )
            self._servers.append(server)  # before it serves: if that is cancelled, `stop` closes it
            await server.start_serving()

    async def run(self) -> None:
        """Enforce the limits until cancelled; call it after `serve`."""
        assert self._connections is not None, "the server is not started"
        await self._connections.run()

    async def stop(self) -> None:
        """Stop listening and end requests in flight. Idempotent."""
        sockets, self._sockets = self._sockets, []
        for server in self._servers:
            server.close()
        self._servers.clear()
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()
        for each in sockets:
            each.close()

    async def __aenter__(self) -> Self:
        await self.listen()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def port(self) -> int:
        """The port of the server; before `listen`, the configured port."""
        return int(self._sockets[0].getsockname()[1]) if self._sockets else self._port

    def _explain(self, error: OSError | UnicodeError) -> str:
        where = f"http.listen: cannot listen on {self._host}:{self._port}"
        if isinstance(error, UnicodeError):
            return f"{where}: invalid host name; set http.listen to an address of this host"
        if error.errno == errno.EADDRINUSE:
            return f"{where}: another process listens there; stop it or set http.listen to a free port"
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        return f"{where}: {reason}; set http.listen to an address of this host and a port it may use"

    async def _healthz(self, _request: web.Request) -> web.Response:
        return _json({"status": "ok"})

    async def _readyz(self, _request: web.Request) -> web.Response:
        failures = self._readiness.failures()
        checks = dict.fromkeys(self._readiness.names, "ok") | failures
        body: dict[str, object] = {"status": "not ready" if failures else "ok", "checks": checks}
        if notes := self._readiness.notes():
            body["notes"] = notes
        return _json(body, 503 if failures else 200)

    async def _apisix_healthz(self, _request: web.Request) -> web.Response:
        reason = _ask(self._gateways)
        return _json({"status": "ok" if reason is None else reason}, 200 if reason is None else 500)

    async def _expose(self, _request: web.Request) -> web.Response:
        return web.Response(body=await self._exposition.text(), headers={"Content-Type": CONTENT_TYPE})


class Exposition:
    """Renders metrics for all requests that wait, so that many requests take at most a fifth of the time.

    The cost of one rendering grows with the number of records and certificates.
    """

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._turn = asyncio.Lock()
        self._began = self._rested = -math.inf
        self._text = b""

    async def text(self) -> bytes:
        """Return the current metrics."""
        asked = self._clock.monotonic()
        async with self._turn:
            if self._began <= asked:
                await self._render()
        return self._text

    async def _render(self) -> None:
        rest = self._rested - self._clock.monotonic()
        if rest > 0:
            await self._clock.sleep(rest)
        self._began = self._clock.monotonic()
        self._text = self._metrics.render()
        ended = self._clock.monotonic()
        self._rested = ended + _REST * (ended - self._began)


def _json(body: dict[str, object], status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(body), status=status, content_type="application/json")
