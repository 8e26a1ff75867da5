"""Why a Gateway as a whole is not accepted, whatever its listeners are: its spec asks for unsupported features."""

from __future__ import annotations

from apisix_ingress.model.assessment import Verdict
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.state.view import View
from crds.gateway.gateways import GatewaySpec
from translation.gateway.extensions.gateway_proxy import proxy_of

ADDRESS_TYPES = frozenset({"IPAddress", "Hostname"})
"""Types of addresses that a Gateway may request."""

REFUSALS = {
    "InvalidParameters": ("InvalidParameters", "spec.infrastructure.parametersRef"),
    "UnsupportedAddress": ("UnsupportedValue", "spec.addresses"),
}
"""Reason of the condition → code and field of the problem."""


def refusal_of(gateway: ObjectKey, spec: GatewaySpec, view: View) -> Verdict | None:
    """Return the condition Accepted of a Gateway that is not accepted as a whole, or None."""
    if why := proxy_of(gateway, spec, view).refusal:
        return Verdict("Accepted", False, "InvalidParameters", f"parametersRef: {why}")
    if unknown := next((each.type for each in spec.addresses if each.type not in ADDRESS_TYPES), None):
        known = " or ".join(sorted(ADDRESS_TYPES))
        return Verdict("Accepted", False, "UnsupportedAddress", f"address type {unknown} is not supported; use {known}")
    return None
