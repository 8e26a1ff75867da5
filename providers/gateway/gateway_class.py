"""GatewayClass: assessed when it changes."""

from __future__ import annotations

from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from providers.gateway.base import GatewayApiProvider
from translation.core.outcome import Outcome
from translation.gateway.entry.gateway_class import translate_gateway_class
from translation.gateway.entry.owned import is_our_class


class GatewayClassProvider(GatewayApiProvider):
    """Owns no records."""

    kind = "GatewayClass"

    def translate(self, item: CustomObject, view: View) -> Outcome:
        """Return the records and the assessment of the GatewayClass."""
        return translate_gateway_class(item, view, self._options)

    def is_ours(self, item: CustomObject, view: View) -> bool:
        """Return whether a GatewayClass names this controller."""
        return is_our_class(item, self._options)
