"""GatewayClass: assessed when it changes."""

from __future__ import annotations

from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from providers.gateway.base import GatewayApiProvider


class GatewayClassProvider(GatewayApiProvider):
    """Owns no records."""

    kind = "GatewayClass"

    def is_ours(self, item: CustomObject, view: View) -> bool:
        """Return whether a GatewayClass names this controller."""
        from translation.gateway.entry.owned import is_our_class

        return is_our_class(item, self._options)
