"""TCPRoute: translated when it, its Gateways or anything it refers to changes."""

from __future__ import annotations

from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from providers.gateway.base import RouteProvider
from translation.core.outcome import Outcome
from translation.gateway.routes.streams import translate_stream_route


class TcpRouteProvider(RouteProvider):
    """Owns stream routes; claims upstreams."""

    kind = "TCPRoute"

    def translate(self, item: CustomObject, view: View) -> Outcome:
        """Return the records and the assessment of the TCPRoute."""
        return translate_stream_route(item, view, self._options)
