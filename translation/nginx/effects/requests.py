"""Requests as backends receive them: path, Host, headers, and the maximum body size."""

from __future__ import annotations

from collections.abc import Mapping

from apisix_ingress.model.formats.patterns import TextPattern, group_numbers
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import ConfigMap, Service
from translation.nginx.effects.balancing.backends import port_number, scheme_of
from translation.nginx.effects.branches import Site
from translation.nginx.effects.protection.access import reads_addresses
from translation.nginx.functions.attached import Function
from translation.nginx.functions.headers import (
    ADDRESS,
    CONNECTION,
    FORWARDED,
    GROUPS,
    INVALID,
    MANY,
    UNDERSCORES,
    UPSTREAM_HOST,
)
from translation.nginx.functions.requests import PORTS, REMOVED
from translation.nginx.tables.gateway_fields import REQUEST_HOST
from translation.nginx.tables.request_hosts import VARIABLES, request_host
from translation.nginx.tables.values import python_pattern, size
from translation.plugins.rewrites import whole_rewrite

FORWARDED_FOR, FORWARDED_HOST = "X-Original-Forwarded-For", "X-Original-Forwarded-Host"

NAMED = TextPattern(r"\$\{?[a-zA-Z_]")
"""A variable of nginx in a rewrite target; gateways support these, too, but not together with groups."""

_OF_KNOWN_LENGTH = [
    ["http_transfer_encoding", "!", "~~", "."],
    [
        "OR",
        ["server_protocol", "~~", "^HTTP/1"],
        ["http_content_length", "~~", "."],
        ["request_method", "in", ["GET", "HEAD"]],
    ],
]
"""The condition that the body of a request has a length in its header, or that there is none."""

UNBUFFERED: Mapping[str, JsonObject] = {
    "always": {"disable_proxy_buffering": True},
    "known": {"disable_proxy_buffering": True, "_meta": {"filter": _OF_KNOWN_LENGTH}},
}
"""Which responses are not buffered, and the plugin for that."""

_GROUP = TextPattern(r"\$\{?[0-9]")
"""A group of the path in the value of a header."""


def proxy_rewrite(site: Site, scheme: str) -> JsonObject:
    """Return the plugin that rewrites a client's request for the backend."""
    header = site.config.text("forwarded-for-header").lower().replace("-", "_")
    headers: dict[str, str] = {
        FORWARDED_FOR: f"$http_{header}",
        FORWARDED_HOST: _forwarded_host(site.config.text("forwarded-host-header")),
    } | headers_of_scheme(scheme)
    if site.config.flag("proxy-add-original-uri-header"):
        headers["X-Original-Uri"] = "$real_request_uri"
    headers |= {name: text for name, text in _own_headers(site).items() if not _GROUP.found(text)}
    body: JsonObject = {"headers": {"set": headers, "remove": list(REMOVED)}}
    vhost = _vhost(site)
    if vhost and REQUEST_HOST.fits(vhost):
        body["host"] = vhost
    return body | _uri(site)


def headers_of_scheme(scheme: str) -> dict[str, str]:
    """Return the headers of every request to a backend that depend on the scheme, or on nothing."""
    scheme_headers = dict.fromkeys(("X-Forwarded-Scheme", "X-Scheme"), scheme)
    return {"Forwarded": "$original_forwarded", **scheme_headers, "X-Forwarded-Port": PORTS[scheme]}


def _own_headers(site: Site) -> dict[str, str]:
    """Return the headers that the annotations and the ConfigMap define, with variables and groups of the path."""
    prefix = site.values.text("x-forwarded-prefix") if site.location.target else ""
    return ({"X-Forwarded-Prefix": prefix} if prefix else {}) | dict(_set_headers(site))


def header_names(site: Site, *, trusts: bool) -> tuple[Function, ...]:
    """Return the functions that replace Connection, and drop or pass on headers by their names or their number.

    Args:
        site: The location.
        trusts: Whether the backend or the canary depends on a header with an underscore.
    """
    config = site.config
    drops = trusts and not config.flag("enable-underscores-in-headers") and config.flag("ignore-invalid-headers")
    counting = (Function(MANY, {}),) if reads_addresses(site) else ()
    dropping = (Function(UNDERSCORES, {}),) if drops else ()
    passing = () if config.flag("ignore-invalid-headers") else (Function(INVALID, {}),)
    return (Function(CONNECTION, {}), *counting, *dropping, *passing)


def host_header(site: Site) -> tuple[Function, ...]:
    """Return the function that sets the Host for the backend, if the plugin does not accept it."""
    vhost = _vhost(site)
    return (Function(UPSTREAM_HOST, {"upstream_host": vhost}),) if vhost and not REQUEST_HOST.fits(vhost) else ()


def forwarded(site: Site, scheme: str) -> tuple[Function, ...]:
    """Return the functions for headers about the client: its address, its path, and the data of a front proxy."""
    # Gateways set these headers for HTTP only, and in proxy-rewrite the order of headers is random.
    address = (Function(ADDRESS, {}),) if scheme_of(site) in ("grpc", "grpcs") else ()
    # proxy-rewrite would evaluate variables in the text of a group, which the client chooses.
    of_path = {name: text for name, text in _own_headers(site).items() if _GROUP.found(text)}
    groups = (Function(GROUPS, {"groups": of_path}),) if of_path else ()
    if not site.forwarded:
        return (*address, *groups)
    values = {"port": PORTS[scheme], "keeps_host": bool(_vhost(site))}
    return (*address, *groups, Function(FORWARDED, {"forwarded": values}))


def _forwarded_host(header: str) -> str:
    name = header.lower().replace("-", "_")
    return "$original_x_forwarded_host" if name == "x_forwarded_host" else f"$http_{name}"


def _vhost(site: Site) -> str:
    """Return the Host for the backend; empty: that of the request."""
    written = site.values.text("upstream-vhost")
    if "$" not in written:
        return written
    source, backend = site.location.source, site.location.backend
    key = ObjectKey("Service", site.namespace, backend.name if backend else "")
    service = site.builder.view.get(Service, key) if backend else None
    port = port_number(service, backend.port) if service and backend else 0
    values = (site.namespace, key.name, str(port), source.meta.name if source else "")
    return request_host(written, dict(zip(VARIABLES, values, strict=True)))


def request_id() -> JsonObject:
    """Return the plugin that gives a request an id if it has none: 32 hex digits."""
    digits = {"length": 32, "char_set": "0123456789abcdef"}
    return {"header_name": "X-Request-ID", "include_in_response": False, "algorithm": "range_id", "range_id": digits}


def body_limit(site: Site) -> int:
    """Return the maximum size of a body in bytes; 0 means no limit."""
    text = site.values.text("proxy-body-size")
    found = None if text.lower().endswith("b") else size(text)  # ingress-nginx omits a size that nginx does not know
    return site.config.bytes("proxy-body-size") if found is None else found


def unbuffered(site: Site) -> JsonObject:
    """Return the plugin that passes responses on without buffering them.

    The gateway then forgets the maximum body size before it reads a body. The length of most bodies is in their header,
    and is checked before; responses to the other requests are buffered. In HTTP/2, GET usually has no body, but
    may have a response that does not end.
    """
    return UNBUFFERED["known" if body_limit(site) else "always"]


def _uri(site: Site) -> JsonObject:
    target = site.location.target
    if not target:
        return {"use_real_request_uri_unsafe": True}
    target = numbered(target, site.location.path)
    if NAMED.found(target):
        return {"uri": target if target.startswith("/") else f"/{target}"}
    return {"regex_uri": whole_rewrite(site.location.path, target)}


def numbered(target: str, path: str) -> str:
    """Return a rewrite target with numbers instead of the names of groups: gateways only support numbers."""
    for name, number in group_numbers(python_pattern(path)).items():
        target = TextPattern(rf"\$(?:{name}\b|\{{{name}\}})").sub(f"${{{number}}}", target)
    return target


def _set_headers(site: Site) -> Mapping[str, str]:
    name = site.config.text("proxy-set-headers")
    if not name:
        return {}
    namespace, _, name = name.partition("/")
    found = site.builder.view.get(ConfigMap, ObjectKey("ConfigMap", namespace, name))
    return found.data if found else {}
