"""Authentication: by passwords in a Secret, and by a service (auth-url). If it cannot be set up, the path is closed."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from apisix_ingress.model.formats.patterns import TextPattern, ValuePattern
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import ConfigMap
from translation.nginx.effects.branches import Site, is_on_one_line
from translation.nginx.effects.destinations import objection
from translation.nginx.effects.own_requests import shown_statuses
from translation.nginx.effects.protection.passwords import passwords
from translation.nginx.effects.shared_data import shared
from translation.nginx.functions.attached import Function
from translation.nginx.functions.guards import COOKIES, GUARD
from translation.nginx.tables.checks import LISTS, URLS_AND_SPACES
from translation.nginx.tables.destinations import destination_of

_REQUEST_URI = TextPattern(r"\$\{?request_uri\}?")
_CACHED = "200 202 401 5m"
_CACHED_BY_DEFAULT = ("200", "301", "302")
_HEADER = ValuePattern(r"[a-zA-Z0-9_-]+")
_DURATION = ValuePattern(r"([0-9]{1,9})(ms|s|m|h|d|w|M|y|)")
_DAY = 86_400_000
_UNITS = {"ms": 1, "": 1000, "s": 1000, "m": 60_000, "h": 3_600_000} | {
    "d": _DAY, "w": 7 * _DAY, "M": 30 * _DAY, "y": 365 * _DAY
}  # fmt: skip
"""Milliseconds of a unit of time in nginx."""


@dataclass(frozen=True, slots=True)
class Authentication:
    """The authentication of a location.

    Attributes:
        functions: What runs before and after the request to the backend.
        closed: Why it responds with 503, as in ingress-nginx, after the annotation and a colon; empty: it does not.
        shut: Why it responds with 503 because it cannot be guarded, in the same form.
    """

    functions: tuple[Function, ...] = ()
    closed: str = ""
    shut: str = ""

    @property
    def sets_headers(self) -> bool:
        """Whether the backend gets headers from an authentication service."""
        return any(function.values.get("external", {}).get("response_headers") for function in self.functions)

    def waived(self) -> Authentication:
        """Return the part for requests that need not authenticate: it only keeps credentials from the backend."""
        checks_passwords = any("basic" in function.values for function in self.functions)
        return Authentication(_functions({"waived": True}, None)) if checks_passwords else Authentication()


@dataclass(frozen=True, slots=True)
class _Service:
    """An authentication service of an Ingress or the ConfigMap."""

    url: str
    method: str = ""
    signin: str = ""
    parameter: str = ""
    response_headers: tuple[str, ...] = ()
    request_redirect: str = ""
    headers: str = ""
    always: bool = False
    cache_key: str = ""
    cache_duration: str = ""

    @property
    def redirect(self) -> str:
        """The address in X-Auth-Request-Redirect; one that is not valid is ignored."""
        return self.request_redirect if URLS_AND_SPACES(self.request_redirect) else ""


def authentication(site: Site) -> Authentication:
    """Return the authentication required by the annotations, or by the ConfigMap for every host."""
    if site.location.source is None:
        return Authentication()
    if any(site.location.path.startswith(item) for item in site.config.texts("no-auth-locations")):
        return Authentication()
    wanted: JsonObject = {}
    if site.values.has("auth-type"):
        found = passwords(site)
        if found.closed or found.shut:
            return Authentication(closed=found.closed, shut=found.shut)
        wanted["basic"] = {"realm": site.values.text("auth-realm"), "users": found.reference}
    service = _service(site)
    if service:
        external = _external(site, service)
        if isinstance(external, Authentication):
            return external
        wanted["external"] = external
    if not wanted:
        return Authentication()
    if len(wanted) > 1 and site.values.text("satisfy") == "any":
        wanted["any"] = True
    statuses = shown_statuses(site)
    return Authentication(_functions(wanted | ({"shown": statuses} if statuses else {}), service))


def _functions(wanted: JsonObject, service: _Service | None) -> tuple[Function, ...]:
    guard = Function(GUARD, wanted)
    return (guard, Function(COOKIES, {"always": service.always}, late=True)) if service else (guard,)


def _service(site: Site) -> _Service | None:
    values, config = site.values, site.config
    if values.has("auth-url"):
        return _Service(
            values.text("auth-url"),
            values.text("auth-method"),
            values.text("auth-signin"),
            values.text("auth-signin-redirect-param"),
            _listed(values.text("auth-response-headers")),
            values.text("auth-request-redirect"),
            values.text("auth-proxy-set-headers"),
            values.flag("auth-always-set-cookie"),
            values.text("auth-cache-key"),
            _readable(values.text("auth-cache-duration")),
        )
    if not config.text("global-auth-url") or not values.flag("enable-global-auth", True):
        return None
    return _Service(
        config.text("global-auth-url"),
        config.text("global-auth-method"),
        config.text("global-auth-signin"),
        config.text("global-auth-signin-redirect-param"),
        _listed(config.text("global-auth-response-headers")),
        config.text("global-auth-request-redirect"),
        always=config.flag("global-auth-always-set-cookie"),
        cache_key=config.text("global-auth-cache-key"),
        cache_duration=config.text("global-auth-cache-duration"),
    )


def _external(site: Site, service: _Service) -> JsonObject | Authentication:
    if why := _wrong(service.url):
        return _closed("auth-url", f"the value {why}")
    destination = destination_of(service.url)
    why = objection(site, destination, to_operator=not site.values.has("auth-url"))
    if destination is None or why:
        return Authentication(shut=f"auth-url: {why}")
    headers = {
        "X-Original-URL": "$scheme://$http_host$real_request_uri",
        "X-Original-Method": "$request_method",
        "X-Sent-From": "nginx-ingress-controller",
        "X-Real-IP": "$remote_addr",
        "X-Auth-Request-Redirect": service.redirect or "$real_request_uri",
    }
    added = _added(site, service)
    if added is None:
        return _closed("auth-proxy-set-headers", "its ConfigMap does not exist, or has an invalid header")
    if service.method:
        headers |= {"X-Original-URI": "$real_request_uri", "X-Scheme": "$scheme"}
    wanted: JsonObject = {
        "uri": _for_gateway(service.url),
        "base": destination.base,
        "namespace": site.namespace,
        "method": service.method or "GET",
        "headers": {name: _for_gateway(text) for name, text in headers.items()},
        "response_headers": list(service.response_headers),
    } | ({"added": added} if added else {})
    if any(name.lower() == "authorization" for name in service.response_headers):
        wanted["sets_authorization"] = True
    if service.cache_key:
        location = site.location
        wanted["cache"] = {
            "id": f"{site.server.host} {location.type} {location.path} {service.url}",
            "key": _for_gateway(service.cache_key),
            "valid": cache_times(service.cache_duration or _CACHED),
        }
    if service.signin:
        wanted |= {"signin": _for_gateway(service.signin), "parameter": service.parameter or "rd"}
    return wanted


def _added(site: Site, service: _Service) -> JsonObject | None:
    """Return the reference to the headers of auth-proxy-set-headers; None if one is invalid or it is missing."""
    if not service.headers:
        return {}
    namespace, _, name = service.headers.rpartition("/")
    key = ObjectKey("ConfigMap", namespace, name)
    own = namespace == site.namespace or site.config.flag("allow-cross-namespace-resources")
    found = site.builder.view.get(ConfigMap, key) if own else None
    if found is None or not all(map(_HEADER.fits, found.data)):
        return None
    headers = {name: _for_gateway(text) for name, text in found.data.items() if text}
    if site.builder.options.judges_plugins and not is_on_one_line(headers):
        return None
    return shared(site, key, "auth-headers", lambda: {"headers": headers}) if headers else {}


def cache_times(text: str) -> dict[str, int]:
    """Return the seconds for which responses are cached, by status, from a list like `200 202 10m, 401 1m`."""
    found: dict[str, int] = {}
    for part in text.split(","):
        *codes, time = part.split() or [""]
        parsed = _DURATION.fullmatch(time)
        seconds = int(parsed[1]) * _UNITS[parsed[2]] // 1000 if parsed else 0
        for code in codes or _CACHED_BY_DEFAULT:
            found.setdefault(code, seconds)
    return {code: seconds for code, seconds in found.items() if seconds}


def _closed(annotation: str, why: str) -> Authentication:
    return Authentication(closed=f"{annotation}: {why}")


def _readable(text: str) -> str:
    return text if LISTS(text) else ""


def _for_gateway(text: str) -> str:
    """Return a text in which the variable for the address of the request is the gateway's, which is not rewritten."""
    return _REQUEST_URI.sub("$real_request_uri", text)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _wrong(url: str) -> str:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return "is not a URL"
    if parts.scheme not in ("http", "https"):
        return "has no scheme http or https"
    return "" if host and ".." not in host and not any(map(str.isspace, url)) else "has no valid host"
