"""The table of fields that gateways limit: it has every such field that annotations lead to, as gateways publish it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from apisix_ingress.model.json import FrozenJson
from apisix_ingress.webhook.schemas.published import published_book
from e2e.devgateway.schemas import record_schemas
from e2e.devgateway.schemas.record_checks import HASH_KEYS
from tests.unit.translation.nginx.host.bodies import SECRET, config
from tests.unit.translation.nginx.objects import SERVICE, ingress, translated
from translation.nginx.tables.annotations import TABLE
from translation.nginx.tables.config_map import DEFAULTS
from translation.nginx.tables.gateway_fields import FIELDS, GatewayField

RECORDS: dict[str, FrozenJson] = {
    "routes": record_schemas.ROUTE,
    "ssls": record_schemas.SSL,
    "upstreams": {**record_schemas.UPSTREAM, "properties": {**record_schemas.UPSTREAM["properties"], **HASH_KEYS}},
}
LIMITS = ("pattern", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "enum", "format")
HOLDERS = ("anyOf", "oneOf", "allOf")


def plugin_schema(name: str) -> FrozenJson:
    schema = published_book().http.plugins[name]
    assert schema is not None
    return schema.document


def parts(schema: FrozenJson, path: tuple[str, ...]) -> Iterator[FrozenJson]:
    """Yield what a schema says about a field, in each of its alternatives."""
    for holder in HOLDERS:
        for each in schema.get(holder, ()):
            yield from parts(each, path)
    if not path:
        yield schema
    elif path[0] == "[]":
        if "items" in schema:
            yield from parts(schema["items"], path[1:])
    elif path[0] in schema.get("properties", {}):
        yield from parts(schema["properties"][path[0]], path[1:])


def split(path: str) -> tuple[str, ...]:
    return tuple(path.replace("[]", ".[]").split("."))


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: f"{field.record}.{field.path}")
def test_a_field_accepts_what_gateways_publish(field: GatewayField) -> None:
    schema = RECORDS.get(field.record) or plugin_schema(field.record)
    path = ("cookie",) if (field.record, field.path) == ("upstreams", "key") else split(field.path)

    found = [{key: each[key] for key in ("type", *LIMITS) if key in each} for each in parts(schema, path)]

    assert dict(field.accepts) in found


def test_the_annotations_and_keys_exist() -> None:
    assert {name for field in FIELDS for name in field.annotations} <= TABLE.keys()
    assert {name for field in FIELDS for name in field.config} <= DEFAULTS.keys()


CHECKED_OTHERWISE = {
    "fault-injection.abort.http_status": "a constant",
    "gzip.types[]": "words",
    "ip-restriction.whitelist[]": "networks are parsed and written again",
    "ip-restriction.blacklist[]": "networks are parsed and written again",
    "ip-restriction.response_code": "a constant",
    "limit-conn.conn": "a positive number",
    "limit-conn.burst": "a constant",
    "limit-conn.default_conn_delay": "a constant",
    "limit-count.count": "a positive number",
    "limit-count.time_window": "a constant",
    "proxy-rewrite.headers.remove[]": "constants",
    "proxy-rewrite.method": "a constant",
    "real-ip.source": "with a constant start",
    "real-ip.trusted_addresses[]": "networks are parsed and written again",
    "request-id.algorithm": "a constant",
    "request-id.range_id.char_set": "a constant",
    "request-id.range_id.length": "a constant",
    "serverless-post-function.phase": "a constant",
    "serverless-pre-function.phase": "a constant",
    "traffic-split.rules[].weighted_upstreams[].upstream_id": "an id",
    "traffic-split.rules[].weighted_upstreams[].weight": "a natural number",
    "cors.allow_origins": "a constant",
}
"""Fields with limits for which no value of a user is copied, and why they are not in the table."""

CASES: tuple[tuple[dict[str, Any], ...], ...] = (
    ({"affinity": "cookie"}, {"use-gzip": "true"}),
    ({"enable_cors": "true", "cors_allow_origin": "http://a.test", "cors_expose_headers": "X-A"},),
    ({"limit_rps": "1", "limit_rpm": "2", "limit_connections": "3", "limit_whitelist": "10.0.0.0/8"},),
    ({"whitelist_source_range": "10.0.0.0/8", "denylist_source_range": "::1"}, {"use-forwarded-headers": "true"}),
    ({"denylist_source_range": "::1"}, {"use-forwarded-headers": "true", "hide-headers": "X-A"}),
    ({"rewrite_target": "/$host"},),
    ({"rewrite_target": "http://a.test/$1"},),
    ({"permanent_redirect": "http://a.test/"},),
    ({"upstream_vhost": "a.test", "app_root": "/x", "proxy_body_size": "1m"},),
    ({"auth_url": "http://a.test", "custom_http_errors": "503", "mirror_target": "http://m.test"},),
    ({"auth_tls_secret": "shop/ca", "auth_tls_match_cn": "CN=a", "auth_tls_error_page": "/error"},),
)


def leaves(value: object, path: str) -> Iterator[str]:
    """Yield the paths of texts and numbers."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from leaves(each, f"{path}.{name}")
    elif isinstance(value, list):
        for each in value:
            yield from leaves(each, f"{path}[]")
    else:
        yield path


def test_each_field_with_a_limit_that_the_translation_writes_is_in_the_table() -> None:
    canary = ingress("canary", ("/", "Prefix"), age=1, service="next", canary="true", canary_weight="10")
    next_service = {**SERVICE, "metadata": {"name": "next", "namespace": "shop"}}
    written: set[str] = set()
    for given, *keys in CASES:
        web = ingress("web", ("/", "Prefix"), **given)
        outcome = translated(web, canary, next_service, SECRET, config(**keys[0] if keys else {}))
        for record in outcome.records:
            for name, plugin in record.body.get("plugins", {}).items():
                written |= {path for path in leaves(plugin, name) if "_meta" not in path}

    limited = {
        path
        for path in written
        for each in parts(plugin_schema(path.partition(".")[0]), split(path.partition(".")[2]))
        if any(limit in each for limit in LIMITS)
    }
    known = {f"{field.record}.{field.path}" for field in FIELDS}
    assert limited - known - CHECKED_OTHERWISE.keys() == set()
    assert CHECKED_OTHERWISE.keys() - limited - {"proxy-rewrite.method"} == set()
