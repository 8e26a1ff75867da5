"""Redirects sent instead of a response: their target, and which setting to change.

Redirects are not followed: the admin key is meant for the configured address, and the effect of a write elsewhere is
unknown. Messages contain no credentials and no query, which may contain some.
"""

from __future__ import annotations

from urllib.parse import SplitResult, urljoin, urlsplit

from apisix_ingress.errors import GatewayRedirected
from apisix_ingress.gateway.adminapi.admin_key import Fields
from apisix_ingress.gateway.adminapi.error_text import scrub
from apisix_ingress.gateway.adminapi.responses import AdminResponse
from apisix_ingress.model.admin_address import check_admin_url

STATUSES = frozenset({301, 302, 303, 307, 308})
"""The statuses of a redirect; others below 400, such as 304, are not redirects."""

_EXAMPLE = "the address of the Admin API itself, as http://gateway:9180/apisix/admin"


def redirected(
    response: AdminResponse, method: str, path: str, url: str, fields: Fields, secret: str, *, sent: bool = False
) -> GatewayRedirected:
    """Return the error for a redirect.

    Args:
        response: A response with one of `STATUSES`.
        method: The method of the request.
        path: The requested path below the Admin API.
        url: The URL of the Admin API.
        fields: The names of the settings.
        secret: The admin key: a redirect may repeat it.
        sent: Whether an earlier copy of the request may have been carried out.
    """
    resource = path.partition("?")[0]
    place = _place(response.headers.get("Location", ""), f"{url}/{resource}")
    shown = scrub(place, None, secret)
    base = _base(place, resource) if shown == place else ""
    remedy = base if base and base != url else _EXAMPLE
    target = f"to {shown}" if shown else "without an address"
    text = f"redirected {target} (HTTP {response.status_code}), which is not followed: set {fields.url} to {remedy}"
    return GatewayRedirected(f"{method} {resource}: {text}", status=response.status_code, sent=sent)


def _place(location: str, asked: str) -> str:
    """Return scheme, host, port and path of the target; empty if there is none."""
    try:
        parts = urlsplit(urljoin(asked, location)) if location else SplitResult("", "", "", "", "")
        authority = parts.netloc.rpartition("@")[2] if parts.hostname and parts.port != 0 else ""
    except ValueError:
        return ""
    return f"{parts.scheme}://{authority}{parts.path.partition(';')[0]}" if authority else ""


def _base(place: str, resource: str) -> str:
    """Return the URL of the Admin API that the target belongs to; empty if it belongs to none."""
    try:
        return check_admin_url(place.removesuffix(f"/{resource}")) if place.endswith(f"/{resource}") else ""
    except ValueError:
        return ""
