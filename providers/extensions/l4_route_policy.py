"""L4RoutePolicy: assessed when it, a route that it applies to, or another policy for that route changes."""

from __future__ import annotations

from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from providers.gateway.base import GatewayApiProvider
from translation.core.outcome import Outcome
from translation.gateway.extensions.l4_route_policy import is_policy_of_ours, translate_l4_route_policy


class L4RoutePolicyProvider(GatewayApiProvider):
    """Owns no records: those of the objects that it applies to change."""

    kind = "L4RoutePolicy"

    def translate(self, item: CustomObject, view: View) -> Outcome:
        """Return the assessment of the policy."""
        return translate_l4_route_policy(item, view, self._options)

    def is_ours(self, item: CustomObject, view: View) -> bool:
        """Return whether a policy applies to an object of this controller."""
        return is_policy_of_ours(item, view, self._options)
