"""L4RoutePolicy: assessed when it, a route that it applies to, or another policy for that route changes."""

from __future__ import annotations

from providers.gateway.base import GatewayApiProvider


class L4RoutePolicyProvider(GatewayApiProvider):
    """Owns no records: those of the objects that it applies to change."""

    kind = "L4RoutePolicy"
