"""The definition of a plugin, and the full schemas of the plugins that the data plane runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from e2e.devgateway.schemas.record_schemas import (
    ARRAY,
    BOOLEAN,
    ID,
    IP_OR_RANGE,
    METHODS,
    OBJECT,
    STRING,
    UPSTREAM,
    Schema,
    any_required,
    array,
    closed,
    one_of,
    text,
    whole,
)

META = closed(
    {
        "disable": BOOLEAN,
        "error_response": {"oneOf": [STRING, OBJECT]},
        "priority": whole(),
        "filter": ARRAY,
        "pre_function": STRING,
    }
)
SCALAR: Schema = {"oneOf": [STRING, {"type": "number"}]}
SCALARS: Schema = {"oneOf": [STRING, {"type": "number"}, array(SCALAR, 1)]}
REALM = text(1, 128, r"^[ -!#-[\]-~]+$")
ORIGINS = text(pattern=r"^(\*|\*\*|null|\w+://[^,]+(,\w+://[^,]+)*)$")
CODE = whole(200)


def _map(value: Schema, least: int = 1) -> Schema:
    return {"type": "object", "patternProperties": {"^[^:]+$": value}, "minProperties": least}


@dataclass(frozen=True, slots=True)
class Plugin:
    """One plugin: priority orders execution, `consumer` is the schema inside a consumer or credential."""

    name: str
    priority: int
    schema: Schema
    consumer: Schema | None = None
    auth: bool = False
    stream: bool = False
    secret: tuple[str, ...] = ()
    consumer_secret: tuple[str, ...] = field(default=())

    def as_json(self) -> dict[str, Any]:
        """Return its entry in `/plugins?all=true`."""
        shown: dict[str, Any] = {"priority": self.priority, "version": 0.1, "schema": self.schema}
        if self.auth:
            shown["type"] = "auth"
        if self.consumer is not None:
            shown["consumer_schema"] = self.consumer
        return shown


def plugin_schema(properties: Schema, **more: object) -> Schema:
    """Return a plugin's schema; every plugin has `_meta`."""
    return {"type": "object", "properties": {**properties, "_meta": META}, **more}


def auth_plugin(name: str, priority: int, properties: Schema, consumer: Schema, secret: str) -> Plugin:
    common = {"hide_credentials": BOOLEAN, "realm": REALM, "anonymous_consumer": text(1)}
    schema = plugin_schema({**common, **properties})
    return Plugin(name, priority, schema, consumer=consumer, auth=True, consumer_secret=(secret,))


def all_required(properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties)}


_ADDRESSES = array({"anyOf": IP_OR_RANGE}, 1)
_COUNT: Schema = {"oneOf": [{"type": "integer", "exclusiveMinimum": 0}, STRING]}
_REJECT: Schema = {"rejected_code": whole(200, 599), "rejected_msg": text(1), "allow_degradation": BOOLEAN}
_POLICY = one_of("local", "redis", "redis-cluster")
_POLICIES = one_of("local", "redis", "redis-cluster", "redis-sentinel")


def _policy(name: str) -> Schema:
    return {"properties": {"policy": one_of(name)}, "required": ["policy"]}


_REDIS: Schema = {
    "if": _policy("redis"),
    "then": {"properties": {"redis_host": text(2)}, "required": ["redis_host"]},
    "else": {"if": _policy("redis-cluster"), "then": {"required": ["redis_cluster_nodes", "redis_cluster_name"]}},
}
_KEY_TYPE = one_of("var", "var_combination")
_JWT_ALGORITHMS = one_of(*(kind + size for kind in ("HS", "RS", "ES", "PS") for size in ("256", "384", "512")), "EdDSA")

RUN: tuple[Plugin, ...] = (
    auth_plugin("basic-auth", 2520, {}, all_required({"username": STRING, "password": STRING}), "password"),
    auth_plugin("key-auth", 2500, {"header": STRING, "query": STRING}, all_required({"key": STRING}), "key"),
    auth_plugin(
        "jwt-auth",
        2510,
        {
            "header": STRING,
            "query": STRING,
            "cookie": STRING,
            "key_claim_name": text(1),
            "store_in_ctx": BOOLEAN,
            "claims_to_verify": array(one_of("exp", "nbf"), unique=True),
        },
        {
            "type": "object",
            "properties": {
                "key": text(1),
                "secret": text(1),
                "algorithm": _JWT_ALGORITHMS,
                "exp": whole(1),
                "base64_secret": BOOLEAN,
                "lifetime_grace_period": whole(0),
            },
            "required": ["key"],
        },
        "secret",
    ),
    Plugin(
        "ip-restriction",
        3000,
        plugin_schema(
            {
                "whitelist": _ADDRESSES,
                "blacklist": _ADDRESSES,
                "message": text(1, 1024),
                "response_code": whole(403, 404),
            },
            oneOf=any_required(["whitelist"], ["blacklist"]),
        ),
        stream=True,
    ),
    Plugin(
        "real-ip",
        23000,
        plugin_schema({"source": text(1), "trusted_addresses": _ADDRESSES, "recursive": BOOLEAN}, required=["source"]),
    ),
    Plugin(
        "consumer-restriction",
        2400,
        plugin_schema(
            {
                "type": one_of("consumer_name", "service_id", "route_id", "consumer_group_id"),
                "whitelist": array(STRING, 1),
                "blacklist": array(STRING, 1),
                "allowed_by_methods": array(
                    {"type": "object", "properties": {"user": STRING, "methods": array(one_of(*METHODS), 1)}}
                ),
                "rejected_code": CODE,
                "rejected_msg": STRING,
            },
            anyOf=any_required(["blacklist"], ["whitelist"], ["allowed_by_methods"]),
        ),
    ),
    Plugin(
        "cors",
        4000,
        plugin_schema(
            {
                "allow_origins": ORIGINS,
                "allow_methods": STRING,
                "allow_headers": STRING,
                "expose_headers": STRING,
                "max_age": whole(),
                "allow_credential": BOOLEAN,
                "allow_origins_by_regex": array(text(1, 4096), 1, unique=True),
                "allow_origins_by_metadata": array(text(1, 4096), 1, unique=True),
                "timing_allow_origins": ORIGINS,
                "timing_allow_origins_by_regex": array(text(1, 4096), 1, unique=True),
            }
        ),
    ),
    Plugin(
        "echo",
        412,
        plugin_schema(
            {
                "before_body": STRING,
                "body": STRING,
                "after_body": STRING,
                "headers": {"type": "object", "minProperties": 1},
            },
            minProperties=1,
            anyOf=any_required(["before_body"], ["body"], ["after_body"]),
        ),
    ),
    Plugin(
        "fault-injection",
        11000,
        plugin_schema(
            {
                "abort": {
                    "type": "object",
                    "properties": {
                        "http_status": CODE,
                        "body": STRING,
                        "headers": _map(SCALAR),
                        "percentage": whole(0, 100),
                        "vars": array(ARRAY, most=20),
                    },
                    "required": ["http_status"],
                },
                "delay": {
                    "type": "object",
                    "properties": {
                        "duration": {"type": "number", "minimum": 0},
                        "percentage": whole(0, 100),
                        "vars": array(ARRAY, most=20),
                    },
                    "required": ["duration"],
                },
            },
            minProperties=1,
        ),
    ),
    Plugin(
        "limit-count",
        1002,
        plugin_schema(
            {
                "count": _COUNT,
                "time_window": _COUNT,
                "rules": array(
                    {
                        "type": "object",
                        "properties": {"count": _COUNT, "time_window": _COUNT, "key": STRING, "header_prefix": STRING},
                        "required": ["count", "time_window", "key"],
                    }
                ),
                "group": STRING,
                "key": STRING,
                "key_type": one_of("var", "var_combination", "constant"),
                "policy": _POLICIES,
                "show_limit_quota_header": BOOLEAN,
                **_REJECT,
            },
            oneOf=any_required(["count", "time_window"], ["rules"]),
            **_REDIS,
        ),
        secret=("redis_password", "sentinel_password"),
    ),
    Plugin(
        "limit-req",
        1001,
        plugin_schema(
            {
                "rate": {"type": "number", "exclusiveMinimum": 0},
                "burst": {"type": "number", "minimum": 0},
                "key": STRING,
                "key_type": _KEY_TYPE,
                "policy": _POLICY,
                "nodelay": BOOLEAN,
                **_REJECT,
            },
            required=["rate", "burst", "key"],
            **_REDIS,
        ),
        secret=("redis_password",),
    ),
    Plugin(
        "proxy-rewrite",
        1008,
        plugin_schema(
            {
                "uri": text(1, 4096, r"^\/.*"),
                "regex_uri": array(STRING, 2),
                "host": text(pattern=r"^[0-9a-zA-Z-.]+(:\d{1,5})?$"),
                "method": one_of(
                    *("GET", "POST", "PUT", "HEAD", "DELETE", "OPTIONS", "MKCOL", "COPY", "MOVE"),
                    *("PROPFIND", "LOCK", "UNLOCK", "PATCH", "TRACE"),
                ),
                "headers": {
                    "oneOf": [
                        closed(
                            {"set": _map(SCALARS), "add": _map(SCALARS), "remove": array(text(pattern="^[^:]+$"), 1)},
                            minProperties=1,
                        ),
                        _map(SCALAR),
                    ]
                },
                "use_real_request_uri_unsafe": BOOLEAN,
            },
            minProperties=1,
        ),
    ),
    Plugin(
        "redirect",
        900,
        plugin_schema(
            {
                "uri": text(2, pattern=r"(\\\$[0-9a-zA-Z_]+)|\$\{([0-9a-zA-Z_]+)\}|\$([0-9a-zA-Z_]+)|(\$|[^$\\]+)"),
                "regex_uri": array(STRING, 2, most=2),
                "http_to_https": BOOLEAN,
                "ret_code": CODE,
                "encode_uri": BOOLEAN,
                "append_query_string": BOOLEAN,
            },
            oneOf=any_required(["uri"], ["regex_uri"], ["http_to_https"]),
        ),
    ),
    Plugin(
        "request-id",
        12015,
        plugin_schema(
            {
                "header_name": STRING,
                "include_in_response": BOOLEAN,
                "algorithm": one_of("uuid", "nanoid", "range_id", "ksuid", "uuidv7"),
                "range_id": {"type": "object", "properties": {"length": whole(6), "char_set": text(6)}},
            }
        ),
    ),
    Plugin(
        "response-rewrite",
        899,
        plugin_schema(
            {
                "status_code": whole(200, 598),
                "body": STRING,
                "body_base64": BOOLEAN,
                "headers": {
                    "anyOf": [
                        _map(SCALAR),
                        {
                            "properties": {
                                "set": _map(SCALAR),
                                "add": array(text(pattern="^[^:]+:[^:]*[^/]$"), 1),
                                "remove": array(text(pattern="^[^:]+$"), 1),
                            }
                        },
                    ]
                },
                "vars": ARRAY,
                "filters": array(
                    {
                        "type": "object",
                        "properties": {
                            "regex": text(1),
                            "replace": STRING,
                            "scope": one_of("once", "global"),
                            "options": STRING,
                        },
                        "required": ["regex", "replace"],
                    },
                    1,
                ),
                "max_resp_body_size": whole(1),
            },
            dependencies={"body": {"not": {"required": ["filters"]}}, "filters": {"not": {"required": ["body"]}}},
        ),
    ),
    Plugin(
        "traffic-split",
        966,
        plugin_schema(
            {
                "rules": array(
                    {
                        "type": "object",
                        "properties": {
                            "match": array({"type": "object", "properties": {"vars": ARRAY}}),
                            "weighted_upstreams": array(
                                {
                                    "type": "object",
                                    "properties": {"upstream_id": ID, "upstream": UPSTREAM, "weight": whole(0)},
                                },
                                1,
                                most=20,
                            ),
                        },
                    }
                )
            }
        ),
        stream=True,
    ),
)
