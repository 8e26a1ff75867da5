"""HTTPRoute: translated when it, its Gateways or anything it refers to changes."""

from __future__ import annotations

from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from providers.gateway.base import RouteProvider
from translation.core.outcome import Outcome
from translation.gateway.routes.http import translate_http_route


class HttpRouteProvider(RouteProvider):
    """Owns routes; claims upstreams."""

    kind = "HTTPRoute"

    def translate(self, item: CustomObject, view: View) -> Outcome:
        """Return the records and the assessment of the HTTPRoute."""
        return translate_http_route(item, view, self._options)
