"""The status page as the HTTP server gets it: loaded with the first request, since it costs time and memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from aiohttp import web

from apisix_ingress import __version__
from apisix_ingress.statuspage.access import Audience, protect
from apisix_ingress.statuspage.history import History
from apisix_ingress.wiring.controller_state import ControllerState

if TYPE_CHECKING:
    from apisix_ingress.statuspage.service import StatusPage

Serve = Callable[[web.Request], Awaitable[web.StreamResponse]]
Close = Callable[[web.Application], Awaitable[None]]


class LazyStatusPage:
    """Serves the status page.

    Args:
        state: The controller.
        history: The history of the gateway clusters.
        audience: Who may see it.
    """

    def __init__(self, state: ControllerState, history: History, audience: Audience) -> None:
        self._state = state
        self._history = history
        self._audience = audience
        self._page: StatusPage | None = None

    @property
    def is_loaded(self) -> bool:
        """Whether there was a request."""
        return self._page is not None

    def install(self, app: web.Application) -> None:
        """Add the addresses."""
        mount(app, self._serve, self._close)

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        if self._page is None:
            # In a thread: writes and the lease continue meanwhile. A second request in between gets the same module.
            page = await asyncio.to_thread(self._load)
            self._page = self._page or page
        return await self._page.serve(request)

    def _load(self) -> StatusPage:
        from apisix_ingress.statuspage.inputs import PageInputs
        from apisix_ingress.statuspage.service import StatusPage

        state = self._state
        inputs = PageInputs(
            state.world,
            state.options,
            state.clusters.syncs,
            self._history,
            state.clock,
            state.identity,
            __version__,
            state,
        )
        return StatusPage(inputs, self._audience)

    async def _close(self, app: web.Application) -> None:
        if self._page is not None:
            await self._page.close(app)


def mount(app: web.Application, serve: Serve, close: Close) -> None:
    """Add the addresses of the page, for GET and HEAD only.

    Args:
        app: The HTTP server's application.
        serve: Answers a request for any of the addresses.
        close: Ends what takes long when the server stops.
    """
    app.router.add_get("/", serve)
    app.router.add_get("/status{rest:(/.*)?}", serve)
    app.on_response_prepare.append(protect)
    app.on_shutdown.append(close)
