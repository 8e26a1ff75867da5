"""Why a Gateway is refused as a whole, whatever its listeners are: what its spec asks for and gateways do not have."""

from __future__ import annotations

from apisix_ingress.model.assessment import Verdict
from crds.gateway.gateways import GatewaySpec

ADDRESS_TYPES = frozenset({"IPAddress", "Hostname"})
"""Types of addresses that a Gateway may ask for."""


def refusal_of(spec: GatewaySpec) -> Verdict | None:
    """Return the condition Accepted of a Gateway that is refused as a whole, or None."""
    if (parameters := spec.infrastructure.parameters_ref) is not None:
        what = f"{parameters.group}/{parameters.kind}"
        return Verdict("Accepted", False, "InvalidParameters", f"parametersRef: {what} is not supported; remove it")
    if unknown := next((each.type for each in spec.addresses if each.type not in ADDRESS_TYPES), None):
        known = " or ".join(sorted(ADDRESS_TYPES))
        return Verdict("Accepted", False, "UnsupportedAddress", f"address type {unknown} is not supported; use {known}")
    return None
