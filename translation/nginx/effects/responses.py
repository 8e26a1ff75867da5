"""Responses: headers that clients get: HSTS, CORS, custom headers, affinity cookies."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import ConfigMap
from translation.nginx.effects.branches import Branch, Site, answer
from translation.nginx.tables.values import Values, integer

_METHODS = "GET, PUT, POST, DELETE, PATCH, OPTIONS"
_HEADERS = "DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,Content-Type,Range,Authorization"
_MAX_AGE = 1_728_000

_ORIGINS = re.compile(r"[A-Za-z0-9\-._~:/*, \[\]]*")
_ORIGIN = re.compile(r"[a-z]+://(\*\.)?[A-Za-z0-9\-._~]+(:\d+)?")
_NOBODY = "(?!)"
_METHOD_LIST = re.compile(r"[A-Za-z]+( *, *[A-Za-z]+)*")
_HEADER_LIST = re.compile(r"([A-Za-z0-9_-]+|\*)( *, *([A-Za-z0-9_-]+|\*))*")


def hsts(site: Site) -> dict[str, str]:
    """Return the HSTS header of answers by https."""
    config = site.config
    if not config.flag("hsts"):
        return {}
    text = f"max-age={config.text('hsts-max-age')}"
    text += "; includeSubDomains" if config.flag("hsts-include-subdomains") else ""
    return {"Strict-Transport-Security": text + ("; preload" if config.flag("hsts-preload") else "")}


def cors_headers(values: Values) -> dict[str, str]:
    """Return the headers of CORS; the origin is that of the request unless any may ask."""
    if not values.flag("enable-cors"):
        return {}
    headers = {"Access-Control-Allow-Origin": "$http_origin" if cors_pattern(values) else "*"}
    if values.flag("cors-allow-credentials", True):
        headers["Access-Control-Allow-Credentials"] = "true"
    headers["Access-Control-Allow-Methods"] = _listed(values, "cors-allow-methods", _METHOD_LIST, _METHODS)
    headers["Access-Control-Allow-Headers"] = _listed(values, "cors-allow-headers", _HEADER_LIST, _HEADERS)
    exposed = _listed(values, "cors-expose-headers", _HEADER_LIST, "")
    if exposed:
        headers["Access-Control-Expose-Headers"] = exposed
    age = integer(values.text("cors-max-age"))
    headers["Access-Control-Max-Age"] = str(_MAX_AGE if age is None else age)
    return headers


def cors_pattern(values: Values) -> str:
    """Return the pattern of the origins that may ask; empty: any. A list with a bad text is open, as with nginx."""
    text = values.text("cors-allow-origin")
    origins = [part.strip() for part in text.split(",") if part.strip()]
    if not origins or "*" in origins or not _ORIGINS.fullmatch(text):
        return ""
    return f"^({'|'.join(_origin(origin) for origin in origins if _ORIGIN.fullmatch(origin)) or _NOBODY})$"


def cors_plugin(headers: Mapping[str, str], pattern: str) -> JsonObject:
    """Return the plugin that adds the headers of CORS for the origins that may ask."""
    start = "Access-Control-"
    body: JsonObject = {
        "allow_origins_by_regex": [f"(?i){pattern}"],
        "allow_methods": headers[f"{start}Allow-Methods"],
        "allow_headers": headers[f"{start}Allow-Headers"],
        "max_age": int(headers[f"{start}Max-Age"]),
        "allow_credential": f"{start}Allow-Credentials" in headers,
        "_meta": {"filter": [["http_origin", "~*", pattern]]},
    }
    exposed = headers.get(f"{start}Expose-Headers")
    # Without credentials `*` stands for everything, and the plugin's own default is that, too.
    body["allow_origins"] = "null"
    return body | ({"expose_headers": exposed} if exposed else {})


def preflights(site: Site) -> Iterator[Branch]:
    """Yield the branch that answers preflights."""
    headers = cors_headers(site.values)
    if headers:
        pattern = cors_pattern(site.values)
        of_origin = ((("http_origin", "~*", pattern),)) if pattern else ()
        yield Branch((("request_method", "==", "OPTIONS"), *of_origin), answer(204, headers))


def response_headers(site: Site) -> dict[str, str] | None:
    """Return the headers of the ConfigMap that an Ingress or everybody names; None where that one is missing."""
    found: dict[str, str] = {}
    everywhere = site.config.text("add-headers")
    if everywhere:
        found |= _config_map(site, everywhere) or {}
    own = site.values.text("custom-headers")
    if own:
        data = _config_map(site, own if "/" in own else f"{site.namespace}/{own}")
        allowed = {name.lower() for name in site.config.words("global-allowed-response-headers")}
        if data is None or any(name.lower() not in allowed for name in data):
            return None
        found |= data
    return found


def _config_map(site: Site, name: str) -> Mapping[str, str] | None:
    namespace, _, name = name.partition("/")
    found = site.builder.view.get(ConfigMap, ObjectKey("ConfigMap", namespace, name))
    return found.data if found else None


def _origin(origin: str) -> str:
    escaped = re.escape(origin)
    return escaped.replace(r"\*", "[A-Za-z0-9-]+", 1)


def _listed(values: Values, name: str, shape: re.Pattern[str], default: str) -> str:
    text = values.text(name)
    return text if shape.fullmatch(text) else default
