"""HTTPRoutePolicy: assessed when it, an object that it applies to, or another policy for that object changes."""

from __future__ import annotations

from providers.gateway.base import GatewayApiProvider


class HttpRoutePolicyProvider(GatewayApiProvider):
    """Owns no records: those of the objects that it applies to change."""

    kind = "HTTPRoutePolicy"
