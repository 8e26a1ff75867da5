"""Filters of a rule → plugins of a route record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from apisix_ingress.model.formats.patterns import escaped_literal
from apisix_ingress.model.network.gateway_matches import decoded_path
from crds.gateway.common import (
    Cors,
    ExternalAuth,
    Filter,
    HeaderChanges,
    HeaderValue,
    LocalReference,
    Mirror,
    PathChange,
    Redirect,
    Rewrite,
)
from crds.gateway.routes import PathMatch
from translation.gateway.entry.listeners import Listener

_DEFAULT_PORTS = {"http": 80, "https": 443}
_REWRITE = "proxy-rewrite"
_RESPONSE = "response-rewrite"

_SAFE_METHODS = "GET,HEAD,POST"
_SAFE_HEADERS = "Accept,Accept-Language,Content-Language,Range"
"""What browsers always permit (Fetch, CORS-safelisted), for filters that list none; the plugin would permit everything.
Content-Type is not listed: browsers permit only three values of it."""

_STARTS_VARIABLE = ("_", ".", "{")
"""Characters that begin a variable after `$`, besides letters and digits (APISIX core/utils.lua, resolve_var)."""

_METHODS = "GET,POST,PUT,DELETE,PATCH,HEAD,OPTIONS,CONNECT,TRACE"
"""The methods that the cors plugin allows for `**`."""

_PREFIX = "replacePrefixMatch"
_ALLOW_METHODS = "Access-Control-Allow-Methods"
_REQUESTED = "http_access_control_request_method"


@dataclass(frozen=True, slots=True)
class Setting:
    """The context of a filter: the path of the match, and the listener."""

    path: PathMatch
    listener: Listener


@dataclass(slots=True)
class Steps:
    """The translated filters of a rule.

    Attributes:
        plugins: By name.
        mirrors: Backends that get copies, each with its share of the requests, 0 to 1.
        extensions: References to plugin configs.
        auth: The service that must permit the requests, or None.
        redirects: Whether the response is a redirect.
        reflects_method: Whether the response to a CORS preflight request allows the requested method.
        refusal: Reason and message why the route is not accepted, or empty texts.
    """

    plugins: dict[str, Any] = field(default_factory=dict)
    mirrors: list[tuple[Mirror, float]] = field(default_factory=list)
    extensions: list[LocalReference] = field(default_factory=list)
    auth: ExternalAuth | None = None
    redirects: bool = False
    reflects_method: bool = False
    refusal: tuple[str, str] = ("", "")

    def rewrite(self, changes: dict[str, Any]) -> None:
        """Add changes to the request."""
        self.plugins.setdefault(_REWRITE, {}).update(changes)

    def add_to_answers(self, name: str, value: str) -> None:
        """Add a header to responses; the value may contain variables of the gateway."""
        headers = self.plugins.setdefault(_RESPONSE, {"headers": {}})["headers"]
        headers.setdefault("add", []).append(f"{name}: {value}")

    def change_headers(self, changes: HeaderChanges) -> None:
        """Add changes to the request's headers; several filters add up."""
        headers = self.plugins.setdefault(_REWRITE, {}).setdefault("headers", {})
        for name, value in request_headers(changes).items():
            if isinstance(value, dict):
                headers.setdefault(name, {}).update(value)
            else:
                headers.setdefault(name, []).extend(value)


def steps_of(filters: Iterable[Filter], setting: Setting) -> Steps:
    """Translate the filters of a rule for one match at one listener."""
    steps = Steps()
    for each in filters:
        _add(steps, each, setting)
    if steps.reflects_method:
        _reflect_method(steps.plugins)
    if steps.redirects and any(each.type == "URLRewrite" for each in filters):
        steps.refusal = ("IncompatibleFilters", "RequestRedirect and URLRewrite exclude each other; remove one of them")
    return steps


def _add(steps: Steps, item: Filter, setting: Setting) -> None:
    if item.request_header_modifier is not None:
        steps.change_headers(item.request_header_modifier)
    elif item.response_header_modifier is not None:
        _change_response(steps, item.response_header_modifier)
    elif item.request_redirect is not None:
        _redirect(steps, item.request_redirect, setting)
    elif item.url_rewrite is not None:
        _rewrite(steps, item.url_rewrite, setting.path)
    elif item.request_mirror is not None:
        if share := _share(item.request_mirror):
            steps.mirrors.append((item.request_mirror, share))
    elif item.cors is not None:
        steps.plugins["cors"] = _cors(item.cors)
        steps.reflects_method = item.cors.allow_credentials and "*" in item.cors.allow_methods
    elif item.external_auth is not None:
        steps.auth = item.external_auth
    elif item.extension_ref is not None:
        steps.extensions.append(item.extension_ref)
    else:
        steps.refusal = ("UnsupportedValue", f"filter type {item.type} is not supported; remove it")


def request_headers(changes: HeaderChanges) -> dict[str, Any]:
    """Return header changes in the format of proxy-rewrite."""
    found: dict[str, Any] = {}
    if changes.set:
        found["set"] = {each.name: literal(each.value) for each in changes.set}
    if changes.add:
        found["add"] = {each.name: literal(each.value) for each in changes.add}
    if changes.remove:
        found["remove"] = list(dict.fromkeys(changes.remove))
    return found


def literal(text: str) -> str:
    """Return a text without variables of the gateway: `$` becomes the default of a variable that does not exist."""
    parts = text.split("$")
    pieces = [parts[0]]
    for before, after in pairwise(parts):
        is_variable = after[:1].isalnum() or after.startswith(_STARTS_VARIABLE)
        pieces += ("${apisix_none ?? $}" if is_variable and not before.endswith("\\") else "$", after)
    return "".join(pieces)


def _change_response(steps: Steps, changes: HeaderChanges) -> None:
    found: dict[str, Any] = {}
    if changes.set:
        found["set"] = {each.name: literal(each.value) for each in changes.set}
    if changes.add:
        found["add"] = [_added(each) for each in changes.add]
        if wrong := next((each.name for each in changes.add if ":" in each.value), ""):
            message = (
                f"a gateway cannot add a value with a colon to the response header {wrong}; set the header instead"
            )
            steps.refusal = ("UnsupportedValue", message)
    if changes.remove:
        found["remove"] = list(dict.fromkeys(changes.remove))
    steps.plugins[_RESPONSE] = {"headers": found}


def _added(header: HeaderValue) -> str:
    """Return a response header to add; the plugin rejects a trailing slash, so an empty variable follows it."""
    value = literal(header.value)
    return f"{header.name}: {value}" + ("${apisix_none}" if value.endswith("/") else "")


def _rewrite(steps: Steps, rewrite: Rewrite, path: PathMatch) -> None:
    if rewrite.hostname:
        steps.rewrite({"host": rewrite.hostname})
    if rewrite.path is not None:
        _change_path(steps, rewrite.path, path, "urlRewrite")


def _change_path(steps: Steps, change: PathChange, match: PathMatch, of: str) -> None:
    """Replace the path; the gateway appends it to the name of its upstream, or of the host in a redirect."""
    full = change.type == "ReplaceFullPath"
    value, name = (change.replace_full_path, "replaceFullPath") if full else (change.replace_prefix_match, _PREFIX)
    if value and not value.startswith("/"):
        steps.refusal = ("UnsupportedValue", f"{of}.path.{name} does not begin with /; write a path")
    else:
        steps.rewrite(_new_path(change, match))


def _new_path(change: PathChange, match: PathMatch) -> dict[str, Any]:
    if change.type == "ReplaceFullPath":
        return {"uri": literal(change.replace_full_path or "/")}
    prefix = decoded_path(match.value).rstrip("/")
    new = change.replace_prefix_match.rstrip("/").replace("$", "$$")
    escaped = escaped_literal(prefix)
    if not prefix:
        return {"regex_uri": ["^/([\\s\\S]*)$", f"{new}/$1"]}
    if not new:
        return {"regex_uri": [f"^{escaped}(?:/([\\s\\S]*))?$", "/$1"]}
    return {"regex_uri": [f"^{escaped}(/[\\s\\S]*)?$", f"{new}$1"]}


def _redirect(steps: Steps, redirect: Redirect, setting: Setting) -> None:
    steps.redirects = True
    listener = setting.listener
    scheme = redirect.scheme or ("https" if listener.protocol == "HTTPS" else "http")
    default = _DEFAULT_PORTS.get(scheme)
    port = redirect.port or (default if redirect.scheme else listener.port)
    authority = (redirect.hostname or "$host") + (f":{port}" if port != default else "")
    uri = "$request_uri"
    if redirect.path is not None:
        _change_path(steps, redirect.path, setting.path, "requestRedirect")
        uri = "$upstream_uri"
    steps.plugins["redirect"] = {"uri": f"{scheme}://{authority}{uri}", "ret_code": redirect.status_code}


def _share(mirror: Mirror) -> float:
    """Return the share of requests that are mirrored, 0 to 1."""
    if mirror.percent is not None:
        return mirror.percent / 100
    if mirror.fraction is not None and mirror.fraction.denominator > 0:
        return min(1.0, mirror.fraction.numerator / mirror.fraction.denominator)
    return 1.0


def _cors(cors: Cors) -> dict[str, Any]:
    """Return the configuration of the cors plugin.

    With a plain origin the plugin allows every origin (APISIX 3.18), so all of them are regular expressions, next to an
    origin that does not exist. With credentials and `*` it needs `**`.
    """
    every = "**" if cors.allow_credentials else "*"
    config: dict[str, Any] = {
        "allow_credential": cors.allow_credentials,
        "allow_methods": _listed(cors.allow_methods, every) or _SAFE_METHODS,
        "allow_headers": _listed(cors.allow_headers, every) or _SAFE_HEADERS,
        "max_age": cors.max_age,
    }
    if cors.expose_headers:
        config["expose_headers"] = _listed(cors.expose_headers, every)
    if "*" in cors.allow_origins:
        config["allow_origins"] = every
    else:
        config["allow_origins"] = "https://unused.invalid"
        config["allow_origins_by_regex"] = [_origin(each) for each in cors.allow_origins]
    return config


def _reflect_method(plugins: dict[str, Any]) -> None:
    """Allow the requested method if the cors plugin, for `**`, allows all methods."""
    if _RESPONSE in plugins:
        headers = plugins[_RESPONSE]["headers"]
        headers.setdefault("set", {})[_ALLOW_METHODS] = f"${{{_REQUESTED} ?? {_METHODS}}}"
    else:
        asked = {"set": {_ALLOW_METHODS: f"${_REQUESTED}"}}
        plugins[_RESPONSE] = {"headers": asked, "vars": [["request_method", "==", "OPTIONS"]]}


def _listed(values: Sequence[str], every: str) -> str:
    return every if "*" in values else ",".join(values)


def _origin(origin: str) -> str:
    return "^" + escaped_literal(origin).replace(r"\*", "[A-Za-z0-9_-][A-Za-z0-9._-]*") + "$"
