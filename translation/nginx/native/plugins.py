"""Plugins of the provider as plugins that a manifest may have: without functions, which are refused in manifests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from apisix_ingress.model.json import JsonObject
from translation.nginx.functions.attached import FIELD

_FUNCTIONS = ("serverless-pre-function", "serverless-post-function")
_ERRORS = "custom-http-errors: error responses are passed unchanged; use the plugin error-page"
_RETRIES = "proxy-next-upstream, proxy-http-version: only failed connections are retried, and backends get HTTP/1.1"
_ANSWERS = "proxy-redirect-*, proxy-cookie-*: redirects and cookies of backends are passed unchanged"
_LOST = {
    "always": "",
    "forwarded": "use-forwarded-headers: backends get scheme, host and port of the connection, not those of the proxy",
    "mirror": "mirror-target: no copies are sent; use the plugin proxy-mirror",
    "errors": _ERRORS,
    **dict.fromkeys(("redirect", "cookie_path", "cookie_domain"), _ANSWERS),
    **dict.fromkeys(("again", "tries", "any_method", "timeout", "version"), _RETRIES),
    "limit": "",
}
"""Values of functions that protect nothing → what is different without the function; any other closes the path."""

CLOSED: Mapping[str, JsonObject] = {"fault-injection": {"abort": {"http_status": 503}}}
"""The plugins of a path that is closed."""

_HEADERS = ["Authorization", "Cookie", "Accept", "User-Agent", "Origin", "X-Requested-With"]
"""Headers of the client that the authentication service gets; all of them with ingress-nginx."""


@dataclass(frozen=True, slots=True)
class Plain:
    """Plugins without functions.

    Attributes:
        plugins: By name.
        closed: Why the path has to answer 503; empty if it does not.
        differs: What is different.
    """

    plugins: Mapping[str, JsonObject] = field(default_factory=dict)
    closed: str = ""
    differs: tuple[str, ...] = ()


def function_values(plugins: Mapping[str, JsonObject]) -> JsonObject:
    """Return the values that the functions of a route read."""
    values: JsonObject = {}
    for name in _FUNCTIONS:
        values |= plugins.get(name, {}).get(FIELD, {})
    return values


def refused(plugins: Mapping[str, JsonObject]) -> Mapping[str, JsonObject]:
    """Return the plugins of a route that refuses requests by a function with an error page; empty for any other."""
    status = function_values(plugins).get("refused")
    return {"fault-injection": {"abort": {"http_status": status}}} if status else {}


def plain_plugins(plugins: Mapping[str, JsonObject]) -> Plain:
    """Return plugins that a manifest may have instead of the provider's."""
    kept = {name: config for name, config in plugins.items() if name not in _FUNCTIONS}
    values = function_values(plugins)
    if "limit" in values:
        kept.setdefault("client-control", {"max_body_size": values["limit"]})
    if "basic" in values or "waived" in values:
        return Plain(closed=_BASIC)
    differs = dict.fromkeys(_LOST[name] for name in values if _LOST.get(name))
    if unknown := next((name for name in values if name not in _LOST and name != "external"), ""):
        return Plain(closed=f"the provider serves it with a function ({unknown}), and manifests have none")
    external = values.get("external")
    if external is None:
        return Plain(kept, differs=tuple(differs))
    if why := _why_not(external):
        return Plain(closed=f"auth-url: {why}")
    return Plain({**kept, "forward-auth": _forward_auth(external)}, differs=(*differs, _FORWARDED))


_BASIC = (
    "auth-type: a gateway checks no password hashes without the provider; create an ApisixConsumer for each user and"
    " use authentication type basicAuth"
)
_FORWARDED = (
    f"auth-url became the plugin forward-auth: the service receives only the headers {', '.join(_HEADERS)} of the"
    " client, and its Set-Cookie does not reach the client; add headers to request_headers if it decides by others"
)


def _why_not(external: JsonObject) -> str:
    if "signin" in external:
        return "forward-auth cannot redirect to auth-signin; let the service redirect, with client_headers: [Location]"
    if "$" in external["uri"]:
        return "forward-auth takes no variables in the address; use a constant address"
    if external["method"] not in ("GET", "POST"):
        return "forward-auth asks by GET or POST only; let the service accept one of them"
    return ""


def _forward_auth(external: JsonObject) -> JsonObject:
    found: JsonObject = {
        "uri": external["uri"],
        "request_method": external["method"],
        "request_headers": _HEADERS,
        "extra_headers": external["headers"],
        "status_on_error": 500,
        "ssl_verify": False,
    }
    return found | ({"upstream_headers": external["response_headers"]} if external["response_headers"] else {})
