"""Annotations that restrict access: authentication, addresses, methods, cross-site requests.

An invalid one makes the Ingress fail: a route must not be created without its protection.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from apisix_ingress.model.formats.patterns import ValuePattern
from translation.annotations.reader import Annotations
from translation.hosts.matching import Var, is_network
from translation.plugins.configs import Plugins, present

_AUTH_PLUGINS = {"keyAuth": "key-auth", "basicAuth": "basic-auth"}
_METHOD = ValuePattern(r"[A-Z][A-Z_-]*")
"""Methods that the gateway accepts, including those of WebDAV and other standards."""

_ORIGIN = ValuePattern(r"\w+://[^,]+")
_ORIGIN_WORDS = frozenset({"*", "**", "null"})
"""Values that the gateway accepts instead of origins (APISIX plugin cors)."""

METHOD_NOT_ALLOWED = 405


def authentication(annotations: Annotations) -> Plugins:
    """auth-type."""
    kind = annotations.text("auth-type")
    if not kind:
        return {}
    if kind not in _AUTH_PLUGINS:
        annotations.error("auth-type", f"{kind!r} is unknown; use keyAuth or basicAuth")
        return {}
    return {_AUTH_PLUGINS[kind]: {}}


def forward_auth(annotations: Annotations) -> Plugins:
    """auth-uri and its options."""
    uri = annotations.text("auth-uri")
    if not uri:
        return {}
    if not _is_url(uri):
        annotations.error("auth-uri", "is not a URL; write http:// or https:// and a host")
    options = {
        "request_headers": annotations.items("auth-request-headers"),
        "upstream_headers": annotations.items("auth-upstream-headers"),
        "client_headers": annotations.items("auth-client-headers"),
    }
    verify = annotations.text("auth-ssl-verify") != "false"
    return {"forward-auth": {"uri": uri, "ssl_verify": verify, **present(options)}}


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


def address_lists(annotations: Annotations) -> Plugins:
    """allowlist-source-range or blocklist-source-range; the gateway accepts one of them."""
    allowed = _addresses(annotations, "allowlist-source-range")
    blocked = _addresses(annotations, "blocklist-source-range")
    if allowed and blocked:
        annotations.error(
            "blocklist-source-range", "cannot be combined with allowlist-source-range; remove one of them"
        )
    lists = present({"whitelist": allowed, "blacklist": blocked})
    return {"ip-restriction": lists} if lists else {}


def _addresses(annotations: Annotations, name: str) -> list[str]:
    found = annotations.guard(name)
    for item in found:
        if not is_network(item):
            annotations.error(name, f"{item!r} is neither an IP address nor a CIDR range such as 10.0.0.0/8")
    return found


def refused_methods(annotations: Annotations) -> list[Var]:
    """http-allow-methods, else http-block-methods: the conditions under which a request is rejected."""
    allowed = _methods(annotations, "http-allow-methods")
    if allowed:
        return [["request_method", "!", "in", allowed]]
    blocked = _methods(annotations, "http-block-methods")
    return [["request_method", "in", blocked]] if blocked else []


def _methods(annotations: Annotations, name: str) -> list[str]:
    found = annotations.guard(name)
    for item in found:
        if not _METHOD.fits(item):
            annotations.error(name, f"{item!r} is not a method; write methods in capitals, such as GET,POST")
    return found


def csrf(annotations: Annotations) -> Plugins:
    """enable-csrf with csrf-key."""
    if not annotations.flag("enable-csrf"):
        return {}
    key = annotations.verbatim("csrf-key")
    if not key:
        annotations.warn("csrf-key", "is missing, so enable-csrf has no effect; set a key")
        return {}
    return {"csrf": {"key": key}}


def cors(annotations: Annotations) -> Plugins:
    """enable-cors with its options; the gateway's defaults permit everything."""
    if not annotations.flag("enable-cors"):
        return {}
    options = {
        # The gateway rejects spaces between origins.
        "allow_origins": ",".join(_origins(annotations)),
        "allow_headers": annotations.text("cors-allow-headers"),
        "allow_methods": annotations.text("cors-allow-methods"),
    }
    return {"cors": present(options)}


def _origins(annotations: Annotations) -> list[str]:
    found = annotations.items("cors-allow-origin")
    for item in found:
        if not (_ORIGIN.fits(item) or (len(found) == 1 and item in _ORIGIN_WORDS)):
            remedy = "write origins such as https://www.example.org, or * alone"
            annotations.error("cors-allow-origin", f"{item!r} is not an origin; {remedy}")
    return found
