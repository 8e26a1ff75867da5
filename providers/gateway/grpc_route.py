"""GRPCRoute: translated when it, its Gateways or anything it refers to changes."""

from __future__ import annotations

from providers.gateway.base import RouteProvider


class GrpcRouteProvider(RouteProvider):
    """Owns routes; claims upstreams."""

    kind = "GRPCRoute"
