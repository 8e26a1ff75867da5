"""TLSRoute: translated when it, its Gateways or anything it refers to changes."""

from __future__ import annotations

from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from providers.gateway.base import RouteProvider
from translation.core.outcome import Outcome
from translation.gateway.routes.streams import translate_stream_route


class TlsRouteProvider(RouteProvider):
    """Owns stream routes; claims upstreams."""

    kind = "TLSRoute"

    def translate(self, item: CustomObject, view: View) -> Outcome:
        """Return the records and the assessment of the TLSRoute."""
        return translate_stream_route(item, view, self._options)
