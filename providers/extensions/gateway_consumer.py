"""Consumer: translated when it, its Gateway or a Secret with its credentials changes."""

from __future__ import annotations

from providers.gateway.base import GatewayApiProvider


class GatewayConsumerProvider(GatewayApiProvider):
    """Owns consumers."""

    kind = "Consumer"
