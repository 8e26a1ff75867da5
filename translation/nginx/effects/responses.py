"""Response headers for clients: HSTS, CORS, custom headers, affinity cookies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from apisix_ingress.model.formats.patterns import ValuePattern, escaped_literal
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import ConfigMap
from translation.nginx.effects.branches import Branch, Site, answer
from translation.nginx.tables.checks import ORIGIN, ORIGIN_LIST
from translation.nginx.tables.gateway_fields import ORIGINS, REMOVED_HEADER
from translation.nginx.tables.values import Values, integer

_METHODS = "GET, PUT, POST, DELETE, PATCH, OPTIONS"
_HEADERS = "DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,Content-Type,Range,Authorization"
_MAX_AGE = 1_728_000

_NOBODY = "(?!)"
_NAME = ValuePattern(r"[a-zA-Z0-9_-]+")
_DOLLAR = "${literal ?? $}"
"""A dollar sign that gateways write as it is: the default of a variable that does not exist."""
_VALUE = ValuePattern(r"""[a-zA-Z0-9_ :;.,\\/"'?!(){}\[\]@<>=\-+*#$&`|~^%]+""")
_SEPARATOR = r"(?:,\s?|\s)"
_METHOD_LIST = ValuePattern(rf"[A-Za-z]+(?:{_SEPARATOR}[A-Za-z]+)*{_SEPARATOR}?")
_HEADER_LIST = ValuePattern(r"[A-Za-z0-9_, -]+")
_EXPOSED_LIST = ValuePattern(rf"(?:[A-Za-z0-9_-]+|\*)(?:{_SEPARATOR}?(?:[A-Za-z0-9_-]+|\*))*{_SEPARATOR}?")
CORS = "Access-Control-"
HSTS = "Strict-Transport-Security"


def hsts(site: Site) -> dict[str, str]:
    """Return the HSTS header of https responses."""
    config = site.config
    if not config.flag("hsts"):
        return {}
    text = f"max-age={config.text('hsts-max-age')}"
    text += "; includeSubDomains" if config.flag("hsts-include-subdomains") else ""
    return {HSTS: text + ("; preload" if config.flag("hsts-preload") else "")}


def cors_headers(values: Values) -> dict[str, str]:
    """Return the CORS headers; the origin is that of the request unless every origin is allowed."""
    if not values.flag("enable-cors"):
        return {}
    headers = {"Access-Control-Allow-Origin": "$http_origin" if cors_pattern(values) else "*"}
    if values.flag("cors-allow-credentials", True):
        headers["Access-Control-Allow-Credentials"] = "true"
    headers["Access-Control-Allow-Methods"] = _listed(values, "cors-allow-methods", _METHOD_LIST, _METHODS)
    headers["Access-Control-Allow-Headers"] = _listed(values, "cors-allow-headers", _HEADER_LIST, _HEADERS)
    exposed = _listed(values, "cors-expose-headers", _EXPOSED_LIST, "")
    if exposed:
        headers["Access-Control-Expose-Headers"] = exposed
    age = integer(values.text("cors-max-age"))
    headers["Access-Control-Max-Age"] = str(_MAX_AGE if age is None else age)
    return headers


def cors_pattern(values: Values) -> str:
    """Return the pattern of the allowed origins; empty allows all, as does an invalid item in nginx."""
    text = values.text("cors-allow-origin")
    origins = [part.strip() for part in text.split(",") if part.strip()]
    if not text or "*" in origins or not ORIGIN_LIST.fits(text.replace(" ", "")):
        return ""
    return f"^({'|'.join(_origin(origin) for origin in origins if ORIGIN.fits(origin)) or _NOBODY})$"


def cors_plugin(headers: Mapping[str, str], pattern: str) -> JsonObject:
    """Return the plugin that adds the CORS headers for the allowed origins."""
    body: JsonObject = {
        "allow_origins_by_regex": list(_regexes(pattern)),
        "allow_methods": headers[f"{CORS}Allow-Methods"],
        "allow_headers": headers[f"{CORS}Allow-Headers"],
        "max_age": int(headers[f"{CORS}Max-Age"]),
        "allow_credential": f"{CORS}Allow-Credentials" in headers,
        "_meta": {"filter": [["http_origin", "~*", pattern]]},
    }
    exposed = headers.get(f"{CORS}Expose-Headers", "")
    if exposed == "*" and body["allow_credential"]:
        exposed = ""  # With credentials, browsers take it for the name of a header.
    # Without credentials `*` stands for everything, and the plugin's own default is that, too.
    body["allow_origins"] = "null"
    return body | ({"expose_headers": exposed} if exposed else {})


def _regexes(pattern: str) -> Iterator[str]:
    """Yield the pattern of the allowed origins, or one for each origin if it is too long for a gateway."""
    whole = f"(?i){pattern}"
    origins = dict.fromkeys(f"(?i)^{each}$" for each in pattern[2:-2].split("|"))
    yield from (whole,) if ORIGINS.fits(whole) else filter(ORIGINS.fits, origins)


def preflights(site: Site) -> Iterator[Branch]:
    """Yield the branch that responds to preflights."""
    if cors_headers(site.values):
        pattern = cors_pattern(site.values)
        of_origin = ((("http_origin", "~*", pattern),)) if pattern else ()
        yield Branch((("request_method", "==", "OPTIONS"), *of_origin), answer(204))


def with_headers(site: Site, branch: Branch, custom: Mapping[str, str], *, cors: bool = True) -> Iterator[Branch]:
    """Yield a branch that responds without a backend, with the headers that every response of its location has.

    The headers depend on the scheme and the origin of the request, so there may be a branch for each of them.
    """
    pattern, of_cors = cors_pattern(site.values), cors_headers(site.values) if cors else {}
    plainly = ("scheme", "==", "http") in branch.when
    secure = {} if plainly else hsts(site)
    schemes: tuple[tuple[str, dict[str, str]], ...] = (("https", secure), ("http", {})) if secure else (("", {}),)
    for scheme, of_scheme in schemes:
        plain = {**custom, **of_scheme}
        when = (*branch.when, ("scheme", "==", scheme)) if scheme else branch.when
        if of_cors and pattern:
            of_origin = ("http_origin", "~*", pattern)
            yield replace(branch, when=(*when, of_origin), plugins={**branch.plugins, **_set({**plain, **of_cors})})
        headers = plain if pattern else {**plain, **of_cors}
        yield replace(branch, when=when, plugins={**branch.plugins, **_set(headers)})


def rewritten(
    headers: Mapping[str, str], pattern: str, *, cookie: str = "", hidden: Sequence[str] = ()
) -> dict[str, JsonObject]:
    """Return the plugins that write the headers of a backend's responses.

    CORS for some origins only is the cors plugin's, since response-rewrite has one condition for everything.
    """
    plugins: dict[str, JsonObject] = {}
    plain = {name: value for name, value in headers.items() if not (pattern and name.startswith(CORS))}
    if pattern and f"{CORS}Allow-Origin" in headers:
        plugins["cors"] = cors_plugin(headers, pattern)
    kept = {name.lower() for name in headers}
    removed = [name for name in hidden if name.lower() not in kept and REMOVED_HEADER.fits(name)]
    return {**plugins, **_set(plain, cookie, removed)}


def _set(headers: Mapping[str, str], cookie: str = "", removed: Sequence[str] = ()) -> dict[str, JsonObject]:
    parts: JsonObject = {"set": dict(headers)} if headers else {}
    parts |= {"add": [f"Set-Cookie: {cookie}"]} if cookie else {}
    parts |= {"remove": list(removed)} if removed else {}
    return {"response-rewrite": {"headers": parts}} if parts else {}


def response_headers(site: Site) -> dict[str, str] | None:
    """Return the headers in the ConfigMap of an Ingress, or in the global one; None if the ConfigMap is missing."""
    found: dict[str, str] = {}
    everywhere = site.config.text("add-headers")
    if everywhere:
        found |= _config_map(site, everywhere) or {}
    own = site.values.text("custom-headers")
    if own:
        data = _config_map(site, own)
        allowed = site.config.texts("global-allowed-response-headers")
        if data is None or not all(
            name in allowed and _NAME.fits(name) and _VALUE.fits(text) for name, text in data.items()
        ):
            return None
        found |= {name: text.replace("$", _DOLLAR) for name, text in data.items()}
    return found


def compression(site: Site) -> dict[str, JsonObject]:
    """Return the plugin that compresses responses, if the ConfigMap enables that."""
    config = site.config
    if not config.flag("use-gzip"):
        return {}
    types = ["text/html", *config.text("gzip-types").split()]
    level, least = min(9, max(1, config.number("gzip-level"))), max(1, config.number("gzip-min-length"))
    body: JsonObject = {"types": types, "comp_level": level, "min_length": least, "vary": True}
    return {"gzip": {**body, "types": "*"} if "*" in types else body}


def _config_map(site: Site, name: str) -> Mapping[str, str] | None:
    namespace, _, name = name.partition("/")
    found = site.builder.view.get(ConfigMap, ObjectKey("ConfigMap", namespace, name))
    return found.data if found else None


def _origin(origin: str) -> str:
    return escaped_literal(origin).replace(r"\*", "[A-Za-z0-9-]+", 1)


def _listed(values: Values, name: str, shape: ValuePattern, default: str) -> str:
    text = values.text(name)
    return text if shape.fits(text) else default
