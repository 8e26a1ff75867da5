"""BackendTrafficPolicy: assessed when it, a Service that it applies to, or another policy for that Service changes."""

from __future__ import annotations

from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from providers.gateway.base import GatewayApiProvider
from translation.core.outcome import Outcome
from translation.gateway.extensions.backend_traffic_policy import is_policy_of_ours, translate_backend_traffic_policy


class BackendTrafficPolicyProvider(GatewayApiProvider):
    """Owns no records: those of the objects that it applies to change."""

    kind = "BackendTrafficPolicy"

    def translate(self, item: CustomObject, view: View) -> Outcome:
        """Return the assessment of the policy."""
        return translate_backend_traffic_policy(item, view, self._options)

    def is_ours(self, item: CustomObject, view: View) -> bool:
        """Return whether a policy applies to a Service."""
        return is_policy_of_ours(item, view, self._options)
