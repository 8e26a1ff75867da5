"""Gateway: translated when it, its class, its ListenerSets or anything they refer to changes."""

from __future__ import annotations

from providers.gateway.base import GatewayApiProvider


class GatewayProvider(GatewayApiProvider):
    """Owns certificates, and the records that isolate listeners from each other."""

    kind = "Gateway"
    names_hosts = False
