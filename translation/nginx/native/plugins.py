"""Plugins of the provider as plugins that a manifest may have: without functions, which manifests cannot contain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from apisix_ingress.model.json import JsonObject
from translation.nginx.effects.protection.limits import limit_plugins
from translation.nginx.functions.attached import FIELD, PLUGINS

_ERRORS = "custom-http-errors: error responses are passed unchanged; use the plugin error-page"
_RETRIES = "proxy-next-upstream, proxy-http-version: only failed connections are retried, and backends get HTTP/1.1"
_OF_RETRIES = ("again", "tries", "timeout")
_ANSWERS = "proxy-redirect-*, proxy-cookie-*: redirects and cookies of backends are passed unchanged"
_NOT_RETRIES = ("head", "bare")
"""Values for which a function sends requests, although it sends no request again."""

_LOST = {
    "always": "",
    "bare": "rewrite-target: backends get a path that begins with a slash; write the slash in the annotation",
    "forwarded": "use-forwarded-headers: backends get scheme, host and port of the connection, not those of the proxy",
    "groups": "x-forwarded-prefix, proxy-set-headers: headers with groups of the path ($1) are not sent: the gateway"
    " would evaluate variables in them, which a client can put into its path",
    "mirror": "mirror-target: no copies are sent; use the plugin proxy-mirror",
    "errors": _ERRORS,
    **dict.fromkeys(("redirect", "cookie_path", "cookie_domain"), _ANSWERS),
    **dict.fromkeys((*_OF_RETRIES, "any_method", "version"), _RETRIES),
    "head": "proxy-buffer-size: larger response headers need proxy_buffer_size in the gateway's config.yaml",
    "limit": "",
    "namespace": "",
    "tls": "",
}
"""Values of functions that protect nothing → what is different without the function; any other closes the path."""

CLOSED: Mapping[str, JsonObject] = {"fault-injection": {"abort": {"http_status": 503}}}
"""The plugins of a path that is closed."""


@dataclass(frozen=True, slots=True)
class Plain:
    """Plugins without functions.

    Attributes:
        plugins: By name.
        closed: Why the path has to respond with 503; empty if it does not.
        differs: What differs from the provider.
    """

    plugins: Mapping[str, JsonObject] = field(default_factory=dict)
    closed: str = ""
    differs: tuple[str, ...] = ()


def function_values(plugins: Mapping[str, JsonObject]) -> JsonObject:
    """Return the values that the functions of a route read."""
    values: JsonObject = {}
    for name in PLUGINS:
        values |= plugins.get(name, {}).get(FIELD, {})
    return values


def refused(plugins: Mapping[str, JsonObject]) -> Mapping[str, JsonObject]:
    """Return the plugins of a route that rejects requests with an error page of a function; empty for any other."""
    status = function_values(plugins).get("refused")
    return {"fault-injection": {"abort": {"http_status": status}}} if status else {}


def plain_plugins(plugins: Mapping[str, JsonObject]) -> Plain:
    """Return plugins that a manifest may have instead of the provider's."""
    kept = {name: config for name, config in plugins.items() if name not in PLUGINS}
    values = function_values(plugins)
    if "limit" in values:
        kept.setdefault("client-control", {"max_body_size": values["limit"]})
    if "limits" in values:
        kept |= limit_plugins(values.pop("limits"))
    if "tls" in values:
        if "ca" in values["tls"]:
            return Plain(closed=_VERIFY)
        kept.pop("proxy-buffering", None)  # With it, APISIX 3.18 does not send the client certificate.
    if "basic" in values or "waived" in values:
        return Plain(closed=_BASIC)
    if "errors" not in values and any(map(values.__contains__, _NOT_RETRIES)) and not set(values["again"]) - {"error"}:
        values = {name: value for name, value in values.items() if name not in _OF_RETRIES}
    differs = dict.fromkeys(_LOST[name] for name in values if _LOST.get(name))
    if unknown := next((name for name in values if name not in _LOST and name != "external"), ""):
        return Plain(closed=f"the controller serves it with a function ({unknown}), which manifests cannot express")
    if "external" in values:
        return Plain(closed=_EXTERNAL)
    return Plain(kept, differs=tuple(differs))


_BASIC = (
    "auth-type: native manifests cannot check password hashes; create an ApisixConsumer for each user and"
    " use authentication type basicAuth"
)
_VERIFY = "proxy-ssl-verify: APISIX 3.18 cannot verify certificates of backends; use a service mesh, or APISIX 3.19"
_EXTERNAL = (
    "auth-url: the plugin forward-auth sends only listed headers of the client, so a service that relies on others"
    " could admit requests; add forward-auth with request_headers yourself, or keep the Ingresses of this host"
)
