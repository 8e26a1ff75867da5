"""BackendTLSPolicy: assessed when it, a route to its Services, or a Gateway of such a route changes."""

from __future__ import annotations

from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from providers.gateway.base import GatewayApiProvider
from translation.core.outcome import Outcome
from translation.gateway.policies.backend_tls import translate_backend_tls_policy


class BackendTlsPolicyProvider(GatewayApiProvider):
    """Owns no records: routes read the policies of their backends."""

    kind = "BackendTLSPolicy"

    def translate(self, item: CustomObject, view: View) -> Outcome:
        """Return the assessment of the policy."""
        return translate_backend_tls_policy(item, view, self._options)

    def is_ours(self, item: CustomObject, view: View) -> bool:
        """Return True: a policy belongs to every controller with a route to its Services."""
        return True
