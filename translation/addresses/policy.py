"""Destinations in users' objects: the single check, by notation and by what they are in the Kubernetes cluster."""

from __future__ import annotations

from translation.addresses.destinations import NEEDS_GRANT, objection
from translation.addresses.host_policy import BY_PRESET, refusal
from translation.core.context import Context
from translation.core.grants import Destination


def check_address(scope: Context, host: str, path: str, *, port: int | None = None) -> bool:
    """Return whether a user may use a host as a destination; report it if not.

    Args:
        scope: The object that names it.
        host: A name or an address, in any notation; no scheme, no port.
        path: The field that names it.
        port: The destination port; None: any port, or unknown.
    """
    if found := refusal(scope.options, host, port):
        scope.forbid("AddressRefused", path, _rejection(host, found.what, found.setting))
        return False
    if what := objection(scope, host):
        asks = what.endswith(NEEDS_GRANT)
        message = f"{host!r} is {what}; add one, or use another host" if asks else _rejection(host, what, BY_PRESET)
        # An address may get another owner without an edit of the object: records published with it must then be
        # withdrawn.
        scope.revoke("ForeignAddress", path, message)
        return False
    if scope.options.external_addresses != "allow":
        scope.destinations[Destination(scope.kind, scope.namespace, host)] = None
    return True


def _rejection(host: str, what: str, setting: str) -> str:
    return f"{host!r} is {what}, which is rejected by the controller's setting {setting}; use another host"
