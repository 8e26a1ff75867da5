"""The HTTPS server of the webhook, `POST /validate`: listening and TLS. `admission` generates the responses."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from aiohttp import web

from apisix_ingress.errors import ConfigError
from apisix_ingress.observability.http_log import server_logger
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.connections import Connections
from apisix_ingress.webhook.admission import Admission, Judge, Limits, Observer
from apisix_ingress.webhook.handshakes import Handshakes
from apisix_ingress.webhook.server_certificate import ServerCertificate
from apisix_ingress.webhook.threads import Threads

PATH = "/validate"

_SHUTDOWN_TIMEOUT = 1.0
"""Seconds to finish requests in flight, and TLS, when the server stops."""

_BACKLOG = 256
"""Connections that wait to be accepted, and that are accepted in one step of the event loop."""


class WebhookServer:
    """Serves `POST /validate`; use ``async with``, and `run` while it is open.

    Args:
        host: Address to listen on, empty for every interface.
        port: 0 for any free one, see `port`.
        certificate: The server certificate.
        judge: Checks the object; called in a thread.
        observer: Receives every request.
        clock: Provides the time.
        limits: The limits.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        certificate: ServerCertificate,
        judge: Judge,
        observer: Observer,
        clock: Clock,
        limits: Limits | None = None,
    ) -> None:
        self._host = host
        self._port = port
        self._certificate = certificate
        self._clock = clock
        self._limits = limits or Limits()
        self._threads = Threads()
        self._admission = Admission(judge, observer, clock, self._limits, self._threads)
        self._runner = web.AppRunner(
            self._application(),
            logger=server_logger(),
            access_log=None,
            # A compressed body could unfold to any size; API servers send none.
            auto_decompress=False,
            keepalive_timeout=self._limits.idle,
            lingering_time=0,
            shutdown_timeout=_SHUTDOWN_TIMEOUT,
        )
        self._connections: Connections | None = None
        self._handshakes: Handshakes | None = None
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        """Listen and serve.

        Raises:
            ConfigError: The address cannot be used.
        """
        await self._runner.setup()
        assert self._runner.server is not None  # the runner is set up
        limits = self._limits
        self._connections = Connections(
            self._runner.server, self._clock, limits.connections, limits.handshake, limits.first, limits.idle
        )
        self._handshakes = Handshakes(
            self._certificate.context,
            self._connections.accept,
            most=limits.handshakes,
            seconds=limits.handshake,
            shutdown=_SHUTDOWN_TIMEOUT,
        )
        try:
            self._server = await asyncio.get_running_loop().create_server(
                self._handshakes.receiver, self._host or None, self._port, backlog=_BACKLOG
            )
        except OSError as error:
            await self._runner.cleanup()
            reason = error.strerror or error
            raise ConfigError(f"webhook.listen: cannot listen on {self._host}:{self._port}: {reason}") from None
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Accept no more requests, finish requests in flight, close every connection."""
        if self._server is not None:
            self._server.close()
        if self._handshakes is not None:
            self._handshakes.close()
        await self._runner.cleanup()
        self._threads.close()

    @property
    def port(self) -> int:
        """The port of the server."""
        assert self._server is not None, "the server is not started"
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def run(self) -> None:
        """Reload the certificate and limit connections until cancelled."""
        assert self._connections is not None, "the server is not started"
        async with asyncio.TaskGroup() as group:
            group.create_task(self._certificate.follow(), name="webhook-certificate")
            group.create_task(self._connections.run(), name="webhook-connections")

    def _application(self) -> web.Application:
        application = web.Application(client_max_size=self._limits.body)
        application.router.add_post(PATH, self._validate)
        return application

    async def _validate(self, request: web.Request) -> web.Response:
        assert self._connections is not None  # a request arrived
        with self._connections.active(request):
            return await self._admission.handle(request)
