"""The status page for the HTTP server: loaded when the server starts, since its templates cost memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apisix_ingress import __version__
from apisix_ingress.statuspage.history import History
from apisix_ingress.wiring.controller_state import ControllerState

if TYPE_CHECKING:
    from aiohttp import web

    from apisix_ingress.statuspage.access import Audience


class LazyStatusPage:
    """Installs the status page.

    Args:
        state: The controller.
        history: The history of the gateway clusters.
        audience: Who may see it.
    """

    def __init__(self, state: ControllerState, history: History, audience: Audience) -> None:
        self._state = state
        self._history = history
        self._audience = audience

    def install(self, app: web.Application) -> None:
        """Load the page and add its routes."""
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
        StatusPage(inputs, self._audience).install(app)
