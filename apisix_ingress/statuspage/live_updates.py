"""Live updates: a stream of server-sent events that announce changes without their content. Clients are limited."""

from __future__ import annotations

import asyncio

import orjson
from aiohttp import hdrs, web

from apisix_ingress.statuspage.inputs import PageInputs
from apisix_ingress.statuspage.views.overview import replica

MOST_CLIENTS = 32
TICK, HEARTBEAT = 0.5, 15.0
"""Seconds between two checks, and between two keep-alives."""

SLOWEST = 10.0
"""Seconds that a client may take to read."""


class LiveUpdates:
    """Serves the stream."""

    def __init__(self, facts: PageInputs) -> None:
        self._facts = facts
        self._clients = 0
        self._closing = False

    def close(self) -> None:
        """End every stream."""
        self._closing = True

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Notify one client of changes until it disconnects; 503 if there are too many."""
        if self._closing or self._clients >= MOST_CLIENTS:
            text = f"{MOST_CLIENTS} pages already receive updates, which is the limit; reload this page to update it\n"
            return web.Response(status=503, text=text, headers={hdrs.RETRY_AFTER: "10"})
        self._clients += 1
        try:
            return await self._stream(request)
        finally:
            self._clients -= 1

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        headers = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-store"}
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        if request.method == hdrs.METH_HEAD:
            return response
        clock, sent, silent_since = self._facts.clock, b"", self._facts.clock.monotonic()
        try:
            while not self._closing and not _is_gone(request):
                news = self._news()
                if news != sent or clock.monotonic() - silent_since >= HEARTBEAT:
                    line = b"event: changed\ndata: " + news + b"\n\n" if news != sent else b"event: alive\ndata: {}\n\n"
                    await asyncio.wait_for(response.write(line), SLOWEST)
                    sent, silent_since = news, clock.monotonic()
                await clock.sleep(TICK)
        except (ConnectionError, TimeoutError):
            pass  # it has left or does not read; it will connect again
        return response

    def _news(self) -> bytes:
        return orjson.dumps(replica(self._facts))


def _is_gone(request: web.Request) -> bool:
    return request.transport is None or request.transport.is_closing()
