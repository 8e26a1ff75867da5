"""The header Host for backends (`upstream-vhost`): a literal name in which the variables of an Ingress are replaced."""

from __future__ import annotations

from collections.abc import Mapping

from apisix_ingress.model.formats.patterns import ValuePattern

_OF_REQUESTS = frozenset(
    form for name in ("host", "http_host", "best_http_host") for form in (f"${name}", f"${{{name}}}")
)
"""Values with the default, the Host of the request."""

VARIABLES = ("namespace", "service_name", "service_port", "ingress_name")
"""Variables with the same value for all requests of a location."""

_HOST = ValuePattern(r"[0-9A-Za-z._-]+(:[0-9]{1,5})?")


def request_host(text: str, known: Mapping[str, str]) -> str:
    """Return the Host for the backend; empty: that of the request.

    Args:
        text: The value of the annotation.
        known: The values of `VARIABLES`.
    """
    if text in _OF_REQUESTS:
        return ""
    for name, value in known.items():
        text = text.replace(f"${name}", value).replace(f"${{{name}}}", value)
    return text


def is_request_host(host: str) -> bool:
    """Return whether gateways can send a Host: it is one name, which no request changes."""
    return not host or _HOST.fits(host)
