"""The filter ExternalAuth: requests that another backend must permit first (GEP-1494).

The gateway asks the backend through a path of its own, as mirrors do, so that its endpoints, its BackendTLSPolicy and
its settings apply and a removed endpoint requires no write of a route.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apisix_ingress.model.formats.patterns import ValuePattern, escaped_literal
from crds.gateway.common import ExternalAuth, Filter
from translation.core.builder import Builder
from translation.gateway.routes.backends import Invalid, Wanted, target_of
from translation.gateway.routes.loopback import add_route, own_path
from translation.nginx.functions.attached import Function, attached
from translation.nginx.functions.external_auth import ASK, FRAMING, MARK

_PATH = "/__auth"
_ALWAYS = "authorization"

_HEADER = ValuePattern(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}")
_PREFIX = ValuePattern(r"/(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|%[0-9a-fA-F]{2})*", 1024)
_DOTS = frozenset({".", ".."})


def refusal_of(filters: Sequence[Filter], *, enabled: bool) -> tuple[str, str]:
    """Return why a route with these filters is not accepted; empty texts if it is."""
    auths = [each.external_auth for each in filters if each.external_auth is not None]
    if not auths:
        return "", ""
    if not enabled:
        return _refused("is experimental; set gateway_api.experimental or remove it")
    if len(auths) > 1:
        return _refused("occurs twice; use one filter of this type in a rule")
    if any(each.type == "RequestRedirect" for each in filters):
        return "IncompatibleFilters", "ExternalAuth and RequestRedirect exclude each other; remove one of them"
    (auth,) = auths
    if auth.protocol != "HTTP":
        return _refused("protocol GRPC is not supported; use HTTP")
    if auth.http.path and not _is_path(auth.http.path):
        return _refused("http.path is not a path; begin it with / and use no segments . and ..")
    if not all(map(_HEADER.fits, (*auth.http.allowed_headers, *auth.http.allowed_response_headers))):
        return _refused("http has an invalid header name in allowedHeaders or allowedResponseHeaders; correct it")
    return "", ""


def auth_plugins(
    draft: Builder, auth: ExternalAuth, name: str, of_hosts: dict[str, Any], path: str
) -> dict[str, Any] | Invalid:
    """Add the record of the service of a route record; return its plugins, or the invalid reference.

    Args:
        draft: The translation.
        auth: The filter.
        name: The name of the route record.
        of_hosts: The field of the route record with its hosts; requests to the service have the same hosts.
        path: The field of the filters.
    """
    target = target_of(draft, auth.backend_ref, f"{path}.externalAuth.backendRef", Wanted())
    if isinstance(target, Invalid):
        return target
    own = own_path(_PATH, name)
    prefix = auth.http.path.rstrip("/").replace("$", "$$")
    rewrite = {
        "use_real_request_uri_unsafe": True,
        "regex_uri": [f"^{escaped_literal(own)}(/.*)$", f"{prefix}$1"],
        "headers": {"remove": [MARK]},
    }
    plugins = {"proxy-rewrite": rewrite, "response-rewrite": {"headers": {"set": {MARK: own}}}}
    add_route(draft, f"{name}_auth", own, of_hosts, target.upstream_id, plugins)
    return attached([Function(ASK, {"external": _values(auth, f"{draft.options.loopback}{own}", draft)})])


def _values(auth: ExternalAuth, uri: str, draft: Builder) -> dict[str, Any]:
    """Return what the function reads."""
    values: dict[str, Any] = {
        "base": draft.options.loopback,
        "uri": uri,
        "namespace": draft.namespace,
        "headers": _names((_ALWAYS, *auth.http.allowed_headers)),
        "copied": _names(auth.http.allowed_response_headers),
    }
    if auth.forward_body.max_size > 0:
        values["most"] = auth.forward_body.max_size
    return values


def _names(headers: Sequence[str]) -> list[str]:
    lower = dict.fromkeys(each.lower() for each in headers)
    return [each for each in lower if each not in FRAMING and each != MARK]


def _is_path(text: str) -> bool:
    plain = text.lower().replace("%2e", ".").replace("%2f", "/")
    return _PREFIX.fits(text) and _DOTS.isdisjoint(plain.split("/"))


def _refused(message: str) -> tuple[str, str]:
    return "UnsupportedValue", f"externalAuth {message}"
