"""The network between a process and the simulated API server: it replaces the HTTP client's transport."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import copy_context

import aiohttp
import orjson

from apisix_ingress.kube.client.requests import Request
from tests.fakes.kube.faults import Refusal, Seen
from tests.simulation.loop import Process
from tests.simulation.servers.api_responses import BoundedStream, Reply, rejection
from tests.simulation.servers.apiserver import SimApiServer
from tests.simulation.servers.network import refused

VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get"}


class LinkTransport:
    """Replaces `kube.client.requests.Transport` in one process."""

    def __init__(self, server: SimApiServer, process: Process) -> None:
        self._server = server
        self._process = process

    async def close(self) -> None:
        """Do nothing: there are no connections."""

    @asynccontextmanager
    async def exchange(self, request: Request) -> AsyncIterator[Reply]:
        """Send a request and yield its response.

        Raises:
            aiohttp.ClientError, TimeoutError: There was no response.
        """
        bound = request.timeout.total or request.timeout.sock_read or math.inf
        await self._reach(request)
        seen = self._seen(request)
        back = copy_context()
        async with asyncio.timeout(bound):
            reply = await self._server.receive(seen, self._process, back)
        if not (seen.verb == "watch" and reply.status == 200):
            yield reply
            return
        try:
            stream = self._server.open_stream(seen, self._process, back)
        except Refusal as refusal:
            yield rejection(refusal)
            return
        try:
            yield Reply(200, content=BoundedStream(stream, bound))
        finally:
            self._server.close(stream)

    async def fetch(self, request: Request) -> Reply:
        """Send a request and return its response."""
        async with self.exchange(request) as reply:
            return reply

    async def _reach(self, request: Request) -> None:
        """Make a connection."""
        state = self._server.state_of(self._process)
        if state == "refused":
            await asyncio.sleep(0.001)
            raise refused("simulated")
        if state == "dropped":
            await asyncio.sleep(request.timeout.sock_connect or request.timeout.total or 10.0)
            raise aiohttp.ConnectionTimeoutError

    def _seen(self, request: Request) -> Seen:
        plural, _, name, _ = self._server.parse(request.path)
        verb = VERBS[request.method]
        if verb == "get" and plural and not name:
            verb = "watch" if ("watch", "true") in request.query else "list"
        # Send copies: objects are never shared over a network.
        body = orjson.loads(orjson.dumps(request.body)) if request.body is not None else None
        return Seen(verb, plural, request.path, dict(request.query), request.headers, body)
