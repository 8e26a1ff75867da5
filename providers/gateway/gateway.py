"""Gateway: translated when it, its class, its ListenerSets or anything they refer to changes."""

from __future__ import annotations

from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from providers.gateway.base import GatewayApiProvider
from translation.core.outcome import Outcome
from translation.gateway.entry.gateway import translate_gateway
from translation.gateway.entry.owned import is_our_gateway


class GatewayProvider(GatewayApiProvider):
    """Owns certificates, and the records that isolate listeners from each other."""

    kind = "Gateway"
    names_hosts = False

    def translate(self, item: CustomObject, view: View) -> Outcome:
        """Return the records and the assessment of the Gateway."""
        return translate_gateway(item, view, self._options)

    def is_ours(self, item: CustomObject, view: View) -> bool:
        """Return whether the class of a Gateway names this controller."""
        return is_our_gateway(item, view, self._options)
