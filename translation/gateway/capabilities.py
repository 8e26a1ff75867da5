"""What the connected gateways support, by the version that they report."""

from __future__ import annotations

from apisix_ingress.model.json import list_in
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.gateway_versions import OLDEST
from apisix_ingress.state.view import View

PASSTHROUGH = VERIFICATION = (3, 19)
"""Versions of APISIX with TLS passthrough, and with verification of the certificates of backends."""


def can(view: View, since: tuple[int, int]) -> bool:
    """Return whether all gateways have at least a version; False before the first of them was read."""
    found = view.get(CustomObject, OLDEST)
    return found is not None and tuple(list_in(found.spec.get("version"))) >= since


def is_pending(view: View) -> bool:
    """Return whether a translation depends on the version of gateways, and no gateway has been read yet."""
    return OLDEST in getattr(view, "reads", ()) and view.get(CustomObject, OLDEST) is None
