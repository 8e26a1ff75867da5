"""Values of annotations of ingress-nginx for property tests, and what a gateway rejects in the records."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hypothesis import strategies as st

from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.model.records import Record
from apisix_ingress.webhook.schemas.published import published_book
from e2e.devgateway.adminapi.record_kinds import Refused
from e2e.devgateway.schemas import record_schemas
from e2e.devgateway.schemas.record_checks import HASH_KEYS, check_plugins, check_schema, check_vars
from e2e.devgateway.schemas.validator import Schema
from translation.nginx.tables.annotations import TABLE

_SCHEMAS: dict[str, Schema] = {
    "routes": record_schemas.ROUTE,
    "ssls": record_schemas.SSL,
    "upstreams": record_schemas.UPSTREAM,
    "plugin_configs": record_schemas.PLUGIN_CONFIG,
}
_BOOK = published_book()
_TEMPLATE = re.compile(r"(?:[^$]|\$\$|\$[0-9]+|\$\{[0-9]+\})*")
"""A replacement that the gateway's library accepts (`ngx.re.sub`)."""


def rejections(record: Record) -> Iterator[str]:
    """Yield why APISIX would reject a record."""
    body = record.body
    try:
        check_schema(_SCHEMAS[record.key.kind], body)
        check_plugins(body.get("plugins", {}))
        check_vars(body.get("vars", []))
        if body.get("type") == "chash":
            check_schema(HASH_KEYS.get(body["hash_on"], {}), body["key"])
    except Refused as refused:
        yield str(refused)
    for name, config in body.get("plugins", {}).items():
        yield from (f"{name}.{path}: {message}" for path, message in _BOOK.http.mistakes(name, config))
        yield from _own_rules(name, config)


def _own_rules(name: str, config: FrozenJson) -> Iterator[str]:
    """Yield the mistakes that plugins find themselves (`check_schema` of APISIX 3.18)."""
    if name == "cors" and config["allow_credential"]:
        starred = [key for key in ("allow_origins", "allow_methods", "allow_headers") if config.get(key, "*") == "*"]
        if starred or config.get("expose_headers") == "*":
            yield "cors: you can not set '*' for other option when 'allow_credential' is true"
    for template in config.get("regex_uri", [])[1::2]:
        if not _TEMPLATE.fullmatch(template):
            yield f"{name}: invalid regex_uri {template!r}"


_WORDS = (
    *("true", "false", "on", "off", "0", "1", "-1", "7", "300", "999999999999999999", "9223372036854775807"),
    *("8m", "0", "999999999999999g", "1k", "cookie", "basic", "HTTPS", "GRPC", "HTTP", "persistent", "Lax", "None"),
    *("/", "/x", "x", "a", "/x:y", "/x/", "/$1", "/$host", "$uri", "$request_uri", "$scheme", "$host/y", "/x$", "/$/y"),
    *("/$_", "/$A", "$$", "/${1", "my_host", "my_app.internal:8080", "my-app:80", "a.b:99999", "a.b:999999", "a/b"),
    *("$http_host", "$host", "$service_name.$namespace.svc:$service_port", "a:b/c", "JSESSIONID.node1", "route", "~x"),
    *("$remote_addr", "$http_x_y", "$cookie_a", "${arg_x}-$uri", "$binary_remote_addr", "a.test", "*.a.test", "a.*"),
    *("~^a.*$", "a.test,b_c.test, a/b ,~x", "http://a.test", "https://a.test/x", "http://a.test/?x=$arg_x", "x:y"),
    *("http://a.test,https://*.b.test", "*", "*, X-A", "GET, PUT", "X-A,X-B", "10.0.0.0/8,2001:db8::/32", "::1", "..."),
    *("shop/ca", "users", "shop/users", "404,503", "error http_503 timeout", "200 10m, 401 1m", "CN=.*", "@page"),
    *("/error", "http://e.test/x", "Path=/:", "é", "\n", "a\r\nb", " ", ""),
)
_CHARACTERS = "abz09AZ_-.~/:,?&=$(){}[]*+|\\^ %@#;\"'"

_LONG = st.sampled_from(["x", "/x", "http://a.test,", "a.test,", "$1", "9"]).map(lambda text: text * 2000)
VALUES = st.one_of(st.sampled_from(_WORDS), st.text(_CHARACTERS, max_size=12), _LONG)

_ENABLING: JsonObject = {
    "enable-cors": "true",
    "affinity": "cookie",
    "auth-url": "http://auth.test/",
    "mirror-target": "http://mirror.test",
    "limit-rps": "7",
    "rewrite-target": "/$1",
    "auth-tls-secret": "shop/ca",
}
"""Values without which other annotations have no effect."""

ANNOTATIONS = st.builds(
    lambda enabling, given: {**{name: _ENABLING[name] for name in enabling}, **given},
    st.sets(st.sampled_from(sorted(_ENABLING))),
    st.dictionaries(st.sampled_from(sorted(TABLE)), VALUES, max_size=6),
)
PATHS = st.sampled_from(["/", "/x", "/v1/items:batch", "/a(/|$)(.*)", "/(?P<v>[0-9]+)/(.*)", "/[0-9]+$", "/a*b"])
CONFIG = st.dictionaries(
    st.sampled_from(
        [
            *("http-redirect-code", "limit-req-status-code", "limit-conn-status-code", "hide-headers", "gzip-level"),
            *("gzip-min-length", "gzip-types", "use-gzip", "proxy-body-size", "use-forwarded-headers", "hsts-max-age"),
            *("proxy-read-timeout", "block-user-agents", "custom-http-errors", "upstream-hash-by"),
        ]
    ),
    VALUES,
    max_size=3,
)
