"""BackendTLSPolicy: assessed when it, a route to its Services, or a Gateway of such a route changes."""

from __future__ import annotations

from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from providers.gateway.base import GatewayApiProvider


class BackendTlsPolicyProvider(GatewayApiProvider):
    """Owns no records: routes read the policies of their backends."""

    kind = "BackendTLSPolicy"

    def is_ours(self, item: CustomObject, view: View) -> bool:
        """Return True: a policy belongs to every controller with a route to its Services."""
        return True
