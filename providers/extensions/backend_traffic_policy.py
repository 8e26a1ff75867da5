"""BackendTrafficPolicy: assessed when it, a Service that it applies to, or another policy for that Service changes."""

from __future__ import annotations

from providers.gateway.base import GatewayApiProvider


class BackendTrafficPolicyProvider(GatewayApiProvider):
    """Owns no records: those of the objects that it applies to change."""

    kind = "BackendTrafficPolicy"
