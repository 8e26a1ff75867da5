"""What APISIX checks in a plugin beyond its JSON schema: one small function per rule, in a table by plugin.

The rules are those of the functions `check_schema` of APISIX 3.18. Whatever a gateway accepts must pass. Values that
refer to a secret manager are not known here and are not checked.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from apisix_ingress.lint.expressions import expression_mistakes
from apisix_ingress.model.formats.patterns import pcre_error
from apisix_ingress.model.json import FrozenJson, list_in, mapping_in

Mistake: TypeAlias = tuple[str, str]
"""A field of the configuration, and what is wrong with it."""
Check: TypeAlias = Callable[[FrozenJson], Iterator[Mistake]]

_REFERENCES = ("$secret://", "$env://")
_LOGGERS = ("http-logger", "kafka-logger", "file-logger", "tcp-logger", "udp-logger", "syslog", "elasticsearch-logger")


def mistakes_beyond_schema(plugin: str, config: FrozenJson) -> Iterator[Mistake]:
    """Yield the mistakes in a configuration that has the defaults of its schema."""
    for check in CHECKS.get(plugin, ()):
        yield from check(config)


def _is_reference(value: object) -> bool:
    return isinstance(value, str) and value.lower().startswith(_REFERENCES)


def _regex(path: str, value: object) -> Iterator[Mistake]:
    if isinstance(value, str) and not _is_reference(value) and (why := pcre_error(value)):
        yield path, f"the regular expression cannot be compiled: {why}"


def _regexes(*names: str) -> Check:
    """Return the check that the items of lists are regular expressions."""

    def check(config: FrozenJson) -> Iterator[Mistake]:
        for name in names:
            for index, value in enumerate(list_in(config.get(name))):
                yield from _regex(f"{name}[{index}]", value)

    return check


def _addresses(*names: str) -> Check:
    """Return the check that the items of lists are IP addresses or networks."""

    def check(config: FrozenJson) -> Iterator[Mistake]:
        for name in names:
            for index, value in enumerate(list_in(config.get(name))):
                if isinstance(value, str) and not _is_network(value):
                    yield f"{name}[{index}]", "must be an IP address or a network such as 10.0.0.0/8"

    return check


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return "%" not in text


def _expressions(*names: str) -> Check:
    """Return the check that fields are conditions."""

    def check(config: FrozenJson) -> Iterator[Mistake]:
        for name in names:
            if isinstance(config.get(name), list):
                yield from expression_mistakes(config[name], name)

    return check


def _cors(config: FrozenJson) -> Iterator[Mistake]:
    names = ("allow_origins", "allow_methods", "allow_headers", "expose_headers", "timing_allow_origins")
    for name in names if config.get("allow_credential") else ():
        if config.get(name) == "*":
            yield name, "must not be * (which is its default for some options) with allow_credential: list the values"


def _rewrite(config: FrozenJson) -> Iterator[Mistake]:
    pairs = list_in(config.get("regex_uri"))
    if len(pairs) % 2:
        yield "regex_uri", "must have a replacement for each regular expression: the number of items must be even"
    for index in range(0, len(pairs) - 1, 2):
        yield from _regex(f"regex_uri[{index}]", pairs[index])


def _headers(config: FrozenJson) -> Iterator[Mistake]:
    headers = mapping_in(config.get("headers"))
    if {"add", "set", "remove"} & headers.keys():
        return
    for name in headers:
        if not name or any(not "!" <= char <= "~" or char == ":" for char in name):
            yield "headers", f"{name!r} is not the name of a header"


def _redirect(config: FrozenJson) -> Iterator[Mistake]:
    if config.get("http_to_https") and config.get("append_query_string"):
        yield "append_query_string", "cannot be combined with http_to_https, which keeps the query string; remove it"


def _response_body(config: FrozenJson) -> Iterator[Mistake]:
    body = config.get("body")
    if config.get("body_base64") and not _is_reference(body) and not (isinstance(body, str) and _is_base64(body)):
        yield "body", "must be base64, since body_base64 is true"


def _is_base64(text: str) -> bool:
    try:
        return bool(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        return False


def _split(config: FrozenJson) -> Iterator[Mistake]:
    for number, rule in enumerate(map(mapping_in, list_in(config.get("rules")))):
        for index, match in enumerate(map(mapping_in, list_in(rule.get("match")))):
            if isinstance(match.get("vars"), list):
                yield from expression_mistakes(match["vars"], f"rules[{number}].match[{index}].vars")


def _faults(config: FrozenJson) -> Iterator[Mistake]:
    for name in ("abort", "delay"):
        for index, each in enumerate(list_in(mapping_in(config.get(name)).get("vars"))):
            if isinstance(each, list):
                yield from expression_mistakes(each, f"{name}.vars[{index}]")


def _workflow(config: FrozenJson) -> Iterator[Mistake]:
    for number, rule in enumerate(map(mapping_in, list_in(config.get("rules")))):
        for index, action in enumerate(list_in(rule.get("actions"))):
            name = action[0] if isinstance(action, list) and action else ""
            if isinstance(name, str) and name not in ("return", "limit-count", "limit-conn"):
                yield f"rules[{number}].actions[{index}]", "must be return, limit-count or limit-conn"


def _limit_count(config: FrozenJson) -> Iterator[Mistake]:
    rules = list_in(config.get("rules"))
    for name in ("count", "time_window", "group"):
        if rules and config.get(name) is not None:
            yield name, "cannot be combined with rules; remove one of them"
    keys = [mapping_in(rule).get("key") for rule in rules]
    for index, key in enumerate(keys):
        if key in keys[:index]:
            yield f"rules[{index}].key", "another rule has the same key, and they would share a counter"
    interval, window = config.get("sync_interval"), config.get("time_window")
    if not str(config.get("policy")).startswith("redis") or not isinstance(interval, int | float) or interval == -1:
        return
    if interval < 0.1:
        yield "sync_interval", "must be at least 0.1 seconds"
    if isinstance(window, int | float) and interval >= window:
        yield "sync_interval", "must be less than time_window"


def _jwt_consumer(config: FrozenJson) -> Iterator[Mistake]:
    algorithm, secret = config.get("algorithm"), config.get("secret")
    if not isinstance(algorithm, str) or "key" not in config:
        return  # the plugin of a route
    if algorithm.startswith("HS"):
        if not secret:
            yield "secret", f"is required for the algorithm {algorithm}"
        elif config.get("base64_secret") and not _is_reference(secret) and not _is_base64(str(secret)):
            yield "secret", "must be base64, since base64_secret is true"
    elif not config.get("public_key"):
        yield "public_key", f"is required for the algorithm {algorithm}"


_FLAT = {
    "use_par": "par.enabled",
    "pushed_authorization_request_endpoint": "par.endpoint",
    "pushed_authorization_request_endpoint_auth_method": "par.endpoint_auth_method",
    "use_dpop": "dpop.enabled",
    "dpop_signing_alg": "dpop.signing_alg",
    "dpop_private_key": "dpop.private_key",
    "dpop_public_jwk": "dpop.public_jwk",
}


def _openid(config: FrozenJson) -> Iterator[Mistake]:
    bearer, signed = bool(config.get("bearer_only")), "private_key_jwt"
    if not bearer and not config.get("session"):
        yield "session", "session.secret is required unless bearer_only is true"
    if bearer:
        is_local = config.get("public_key") or config.get("use_jwks")
        without_secret = is_local or config.get("introspection_endpoint_auth_method") == signed
    else:
        without_secret = config.get("token_endpoint_auth_method") == signed or config.get("use_pkce")
    if not without_secret and not config.get("client_secret"):
        yield "client_secret", "is required"
    for name, instead in _FLAT.items():
        if name in config:
            yield name, f"is not an option; use {instead}"


_CONTENT_TYPES = ("application/xml", "application/json", "text/plain", "text/html", "text/xml")


def _mocking(config: FrozenJson) -> Iterator[Mistake]:
    given = config.get("content_type")
    if isinstance(given, str) and given.partition(";")[0].strip() not in _CONTENT_TYPES:
        yield "content_type", f"must be one of {', '.join(_CONTENT_TYPES)}"


def _cache(config: FrozenJson) -> Iterator[Mistake]:
    for index, key in enumerate(list_in(config.get("cache_key"))):
        if key == "$request_method":
            yield f"cache_key[{index}]", "$request_method is not supported; remove it"
    if (config.get("cache_strategy"), config.get("cache_zone")) == ("memory", "disk_cache_one"):
        yield "cache_zone", "the default zone is on disk; name a zone in memory, such as memory_cache"


_TYPES = ("object", "array", "string", "number", "integer", "boolean", "null", "table", "function", "userdata")


def _schemas(config: FrozenJson) -> Iterator[Mistake]:
    for name in ("body_schema", "header_schema"):
        yield from _schema(mapping_in(config.get(name)), name)


def _schema(schema: FrozenJson, path: str, depth: int = 16) -> Iterator[Mistake]:
    """Yield the unknown types in a schema."""
    if not schema or depth == 0:
        return
    named = schema.get("type")
    for each in [named] if isinstance(named, str) else []:
        if each not in _TYPES:
            yield f"{path}.type", f"{each!r} is not a type of JSON schema"
    for name, item in mapping_in(schema.get("properties")).items():
        yield from _schema(mapping_in(item), f"{path}.properties.{name}", depth - 1)
    yield from _schema(mapping_in(schema.get("items")), f"{path}.items", depth - 1)


CHECKS: Mapping[str, Iterable[Check]] = {
    "cors": (_cors, _regexes("allow_origins_by_regex", "timing_allow_origins_by_regex")),
    "fault-injection": (_faults,),
    "ip-restriction": (_addresses("whitelist", "blacklist"),),
    "jwt-auth": (_jwt_consumer,),
    "limit-count": (_limit_count,),
    "mocking": (_mocking,),
    "openid-connect": (_openid,),
    "proxy-cache": (_cache,),
    "proxy-rewrite": (_rewrite, _headers),
    "real-ip": (_addresses("trusted_addresses"),),
    "redirect": (_rewrite, _redirect),
    "request-validation": (_schemas,),
    "response-rewrite": (_response_body, _expressions("vars")),
    "traffic-split": (_split,),
    "ua-restriction": (_regexes("allowlist", "denylist"),),
    "uri-blocker": (_regexes("block_rules"),),
    "workflow": (_workflow,),
    **dict.fromkeys(_LOGGERS, (_expressions("include_req_body_expr", "include_resp_body_expr"),)),
}
"""Plugin → its checks. Plugins that are not listed have no rules beyond their schema, or some that need the gateway."""
