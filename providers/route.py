"""ApisixRoute: translated when it, or anything it refers to, changes."""

from __future__ import annotations

from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from providers.core.base import Provider
from translation.core.result import Translation


class RouteProvider(Provider[CustomObject]):
    """Owns routes and stream routes; claims upstreams."""

    kind = "ApisixRoute"

    def translate(self, item: CustomObject, view: View) -> Translation:
        """Return the records and claims of an ApisixRoute."""
        from translation.route import translate_route

        return translate_route(item, view, self._options)
