"""Redirects: to https, to another URL, to a trailing slash, to the host with or without www, to the app's root."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from apisix_ingress.model.json import JsonObject
from translation.nginx.effects.branches import Branch, Site, received_over
from translation.nginx.effects.requests import NAMED, numbered
from translation.nginx.functions.requests import PORTS
from translation.nginx.options import CATCH_ALL
from translation.nginx.tables.config_map import Config
from translation.nginx.tables.gateway_fields import LOCATION
from translation.nginx.tables.values import Values
from translation.plugins.rewrites import whole_path

_FORWARDED_HOST = ("original_x_forwarded_host", "~~", "^[^,:]+$")
_FORWARDED_PORT = ("original_x_forwarded_port", "~~", "^[0-9]{1,5}$")
_NO_HOST = ("http_host", "!", "~~", ".")
_TEMPORAL, _PERMANENT = range(300, 308), range(300, 309)

_ANYTHING = "^[\\s\\S]*$"


def location_redirect(site: Site) -> Branch | None:
    """Return the redirect of all requests for a location; temporary ones take precedence over permanent ones."""
    values = site.values
    if site.location.plain or not configured(values):
        return None
    temporal, permanent = values.text("temporal-redirect"), values.text("permanent-redirect")
    if temporal:
        return Branch(
            plugins=_redirect(_absolute(site, temporal), _code(values.number("temporal-redirect-code"), _TEMPORAL, 302))
        )
    if permanent:
        code = _code(values.number("permanent-redirect-code"), _PERMANENT, 301)
        return Branch(plugins=_redirect(_absolute(site, permanent), code))
    target = site.location.target
    if target.startswith(("http://", "https://")):
        return Branch(plugins=_rewritten(site, target))
    return None


def configured(values: Values) -> bool:
    """Return whether the redirects of an Ingress are read: an empty annotation or a bad URL drops all of them."""
    temporal = values.text("temporal-redirect")
    if any(map(values.is_empty, ("from-to-www-redirect", "relative-redirects", "temporal-redirect"))):
        return False
    if temporal:
        return not values.is_empty("temporal-redirect-code") and _is_url(temporal)
    return not any(map(values.is_empty, ("permanent-redirect", "permanent-redirect-code")))


def _rewritten(site: Site, target: str) -> dict[str, JsonObject]:
    """Return the plugins of a redirect to a rewrite target that is a URL; the query of the request is kept."""
    target = numbered(target, site.location.path)
    if NAMED.found(target):
        place: JsonObject = {"uri": target}
    else:
        place = {"regex_uri": [whole_path(site.location.path), target], "encode_uri": True}
    return {"redirect": {**place, "ret_code": 302, "append_query_string": True}}


def redirects_http(site: Site) -> bool:
    """Return whether every http request of a location is redirected to https."""
    return _is_forced(site) or (_has_certificate(site) and not site.plain_aliases)


def https_redirects(site: Site) -> tuple[Branch, ...]:
    """Return the redirects of http requests to https."""
    forced = _is_forced(site)
    if forced or _has_certificate(site):
        when = [("host", "!", "in", list(site.plain_aliases))] if site.plain_aliases and not forced else []
        forwarded = (_to_https(site, "$original_x_forwarded_host", _FORWARDED_HOST, *when),) if site.forwarded else ()
        return (*forwarded, _to_https(site, "$host", *when))
    if site.server.host == CATCH_ALL and site.location.source and _redirects_to_https(site):
        return (_to_https(site, CATCH_ALL, _NO_HOST),)  # The server itself has a certificate: the default one.
    return ()


def _is_forced(site: Site) -> bool:
    forced = site.values.flag("force-ssl-redirect", site.config.flag("force-ssl-redirect"))
    return forced and not _is_exempt(site)


def _has_certificate(site: Site) -> bool:
    return site.secure and _redirects_to_https(site) and not _is_exempt(site)


def _is_exempt(site: Site) -> bool:
    return any(site.location.path.startswith(item) for item in site.config.texts("no-tls-redirect-locations"))


def _redirects_to_https(site: Site) -> bool:
    return site.values.flag("ssl-redirect", site.config.flag("ssl-redirect"))


def _to_https(site: Site, host: str, *when: Sequence[object]) -> Branch:
    code = site.config.number("http-redirect-code")
    keeps = site.values.flag("preserve-trailing-slash", site.config.flag("preserve-trailing-slash"))
    names_port = site.values.flag("use-port-in-redirects", site.config.flag("use-port-in-redirects"))
    place = f"{host}:{PORTS['https']}" if names_port else host
    return Branch((site.plain_http, *when), https_redirect(place, code, keeps_slash=keeps))


def https_redirect(host: str, code: int, *, keeps_slash: bool) -> dict[str, JsonObject]:
    """Return the plugins of a redirect to https on a host, with or without the slash at the end."""
    start = f"https://{host}"
    return _redirect(f"{start}$real_request_uri", code) if keeps_slash else trimmed_redirect(start, code)


def trimmed_redirect(start: str, code: int) -> dict[str, JsonObject]:
    """Return the plugins of a redirect to the same path on another host or scheme, without the trailing slash.

    The first plugin removes the slash, and the second one inserts the result once: variables in the client's path are
    not evaluated.
    """
    return {
        "proxy-rewrite": {"use_real_request_uri_unsafe": True, "regex_uri": ["^([\\s\\S]*?)/?$", "$1"]},
        "redirect": {"uri": f"{start}$upstream_uri", "ret_code": code},
    }


def slash_redirect(site: Site) -> dict[str, JsonObject]:
    """Return the plugins of the redirect to a path with a trailing slash."""
    return _redirect(f"{_origin(site)}{_literal(site.location.path)}$is_args$args", 301)


def app_root(site: Site) -> Branch | None:
    """Return the redirect of `/` to the root of the app."""
    root = "" if site.location.plain else site.values.text("app-root")
    return Branch(plugins=_redirect(f"$scheme://$http_host{_literal(root)}", 302)) if root else None


def www_redirects(host: str, config: Config) -> Iterator[Branch]:
    """Yield the redirects for the host's name with www added or removed; a front proxy may name scheme and port."""
    code, forwarded = config.number("http-redirect-code"), config.flag("use-forwarded-headers")
    for scheme in ("https", "http") if forwarded else ():
        # What is not https is http: the last redirect has no condition.
        when = (received_over(scheme),) if scheme == "https" else ()
        yield Branch((*when, _FORWARDED_PORT), trimmed_redirect(f"{scheme}://{host}:$original_x_forwarded_port", code))
        yield Branch((*when, ("scheme", "==", "https")), trimmed_redirect(f"{scheme}://{host}:{PORTS['https']}", code))
        yield Branch(when, trimmed_redirect(f"{scheme}://{host}:{PORTS['http']}", code))
    for scheme, port in PORTS.items() if not forwarded else ():
        yield Branch((("scheme", "==", scheme),), trimmed_redirect(f"{scheme}://{host}:{port}", code))


def twin_of(host: str) -> str:
    """Return the name of a host with www added or removed."""
    return host.removeprefix("www.") if host.startswith("www.") else f"www.{host}"


def _redirect(uri: str, code: int) -> dict[str, JsonObject]:
    place: JsonObject = {"uri": uri} if LOCATION.fits(uri) else {"regex_uri": [_ANYTHING, uri]}
    return {"redirect": {**place, "ret_code": code}}


def _absolute(site: Site, url: str) -> str:
    """Return the target of a redirect as in nginx: a path becomes an absolute URL."""
    return f"{_origin(site)}{_literal(url)}" if url.startswith("/") else _literal(url)


def _origin(site: Site) -> str:
    """Return what nginx puts before a path: scheme and host, without a port; nothing if redirects are relative."""
    is_relative = site.values.flag("relative-redirects") or site.config.flag("relative-redirects")
    return "" if is_relative else "$scheme://$host"


def _literal(text: str) -> str:
    return text.replace("$", "\\$")


def _is_url(text: str) -> bool:
    return urlsplit(text).scheme.startswith("http")


def _code(code: int, known: range, default: int) -> int:
    return code if code in known else default
