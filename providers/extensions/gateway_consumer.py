"""Consumer: translated when it, its Gateway or a Secret with its credentials changes."""

from __future__ import annotations

from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from providers.gateway.base import GatewayApiProvider
from translation.core.outcome import Outcome
from translation.gateway.extensions.gateway_consumer import is_consumer_of_ours, translate_gateway_consumer


class GatewayConsumerProvider(GatewayApiProvider):
    """Owns consumers."""

    kind = "Consumer"

    def translate(self, item: CustomObject, view: View) -> Outcome:
        """Return the consumer."""
        return translate_gateway_consumer(item, view, self._options)

    def is_ours(self, item: CustomObject, view: View) -> bool:
        """Return whether a Consumer names a Gateway of this controller."""
        return is_consumer_of_ours(item, view, self._options)
