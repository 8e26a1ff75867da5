"""Schemas of the records, derived from the gateway's recorded responses; `plugin_schemas` has those of plugins."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

STRING: Schema = {"type": "string"}
BOOLEAN: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
ARRAY: Schema = {"type": "array"}
TIME: Schema = {"type": "integer"}
HOST_PATTERN = r"^\*$|^\*?[0-9a-zA-Z-._\[\]:]+$"
OCTET = "([0-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])"
CIDR4_PATTERN = "^" + r"\.".join([OCTET] * 4) + "/([12]?[0-9]|3[0-2])$"
CIDR6_PATTERN = "^([a-fA-F0-9]{0,4}:){1,8}(:[a-fA-F0-9]{0,4}){0,8}([a-fA-F0-9]{0,4})?/[0-9]{1,3}$"
METHODS = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "CONNECT", "TRACE", "PURGE"]


def text(least: int = 0, most: int | None = None, pattern: str | None = None) -> Schema:
    """Return a string schema with bounds."""
    schema: Schema = {"type": "string"}
    if least:
        schema["minLength"] = least
    if most is not None:
        schema["maxLength"] = most
    if pattern is not None:
        schema["pattern"] = pattern
    return schema


def whole(least: int | None = None, most: int | None = None) -> Schema:
    """Return an integer schema with inclusive bounds."""
    bounds = {"minimum": least, "maximum": most}
    return {"type": "integer"} | {name: bound for name, bound in bounds.items() if bound is not None}


def array(items: Schema, least: int = 0, *, unique: bool = False, most: int | None = None) -> Schema:
    """Return an array schema."""
    schema: Schema = {"type": "array", "items": items}
    if least:
        schema["minItems"] = least
    if most is not None:
        schema["maxItems"] = most
    if unique:
        schema["uniqueItems"] = True
    return schema


def one_of(*values: str | int, kind: str = "string") -> Schema:
    """Return an enum schema."""
    return {"type": kind, "enum": list(values)}


def closed(properties: Schema, **more: object) -> Schema:
    """Return an object schema that forbids other properties."""
    return {"type": "object", "properties": properties, "additionalProperties": False, **more}


def any_required(*names: list[str]) -> list[Schema]:
    return [{"required": required} for required in names]


ID: Schema = {"anyOf": [text(1, 64, r"^[a-zA-Z0-9-_.]+$"), whole(1)]}
NAME = text(1, 256)
DESC = text(0, 256)
HOST = text(pattern=HOST_PATTERN)
LABELS: Schema = {"type": "object", "patternProperties": {".*": text(1, 256, r"^\S+$")}}
IP_OR_RANGE: list[Schema] = [
    {"type": "string", "format": "ipv4"},
    text(pattern=CIDR4_PATTERN),
    {"type": "string", "format": "ipv6"},
    text(pattern=CIDR6_PATTERN),
]
ADDRESS: Schema = {"type": "string", "anyOf": IP_OR_RANGE}
POSITIVE: Schema = {"type": "number", "exclusiveMinimum": 0}
TIMEOUT: Schema = {
    "type": "object",
    "properties": {"connect": POSITIVE, "send": POSITIVE, "read": POSITIVE},
    "required": ["connect", "send", "read"],
}
META: Schema = {"id": ID, "create_time": TIME, "update_time": TIME}
CERT = text(128, 65536)
KEY = text(64, 65536)
STATUS = one_of(1, 0, kind="integer")


def _check_result(least: int, *, active: bool, healthy: bool) -> Schema:
    properties: Schema = {"http_statuses": array(whole(200, 599), 1, unique=True)}
    if active:
        properties["interval"] = whole(1)
    for name in ("successes",) if healthy else ("http_failures", "tcp_failures", "timeouts"):
        properties[name] = whole(least, 254)
    return {"type": "object", "properties": properties}


CHECKS: Schema = {
    "type": "object",
    "properties": {
        "active": {
            "type": "object",
            "properties": {
                "type": one_of("http", "https", "tcp"),
                "timeout": {"type": "number"},
                "concurrency": whole(),
                "host": HOST,
                "port": whole(1, 65535),
                "http_path": STRING,
                "http_method": one_of(*METHODS),
                "http_req_body": STRING,
                "https_verify_certificate": BOOLEAN,
                "req_headers": array(STRING, 1),
                "healthy": _check_result(1, active=True, healthy=True),
                "unhealthy": _check_result(1, active=True, healthy=False),
            },
        },
        "passive": {
            "type": "object",
            "properties": {
                "type": one_of("http", "https", "tcp"),
                "healthy": _check_result(0, active=False, healthy=True),
                "unhealthy": _check_result(0, active=False, healthy=False),
            },
        },
    },
    "anyOf": any_required(["active"], ["active", "passive"]),
}

NODES: Schema = {
    "anyOf": [
        {"type": "object", "patternProperties": {".*": whole(0)}},
        array(
            {
                "type": "object",
                "properties": {
                    "host": HOST,
                    "port": whole(1, 65535),
                    "weight": whole(0),
                    "priority": whole(),
                    "metadata": OBJECT,
                },
                "required": ["host", "weight"],
            }
        ),
    ]
}

UPSTREAM = closed(
    {
        **META,
        "nodes": NODES,
        "retries": whole(0),
        "retry_timeout": {"type": "number", "minimum": 0},
        "timeout": TIMEOUT,
        "tls": {
            "type": "object",
            "properties": {
                "client_cert_id": ID,
                "client_cert": CERT,
                "client_key": KEY,
                "verify": BOOLEAN,
            },
            "dependencies": {
                "client_cert": {"required": ["client_key"]},
                "client_key": {"required": ["client_cert"]},
                "client_cert_id": {"not": {"required": ["client_cert", "client_key"]}},
            },
        },
        "keepalive_pool": {
            "type": "object",
            "properties": {
                "size": whole(1),
                "idle_timeout": {"type": "number", "minimum": 0},
                "requests": whole(1),
            },
        },
        "type": STRING,
        "checks": CHECKS,
        "hash_on": one_of("vars", "header", "cookie", "consumer", "vars_combinations"),
        "key": STRING,
        "scheme": {"enum": ["grpc", "grpcs", "http", "https", "tcp", "tls", "udp", "kafka"]},
        "labels": LABELS,
        "discovery_type": STRING,
        "discovery_args": {"type": "object", "properties": {"namespace_id": STRING, "group_name": STRING}},
        "pass_host": one_of("pass", "node", "rewrite"),
        "upstream_host": HOST,
        "name": NAME,
        "desc": DESC,
        "service_name": text(1, 256),
    },
    oneOf=any_required(["nodes"], ["service_name", "discovery_type"]),
)


def _at_most_one(name: str) -> Schema:
    both = [name, name + "s"]
    return {"oneOf": [{"not": {"anyOf": any_required(*([n] for n in both))}}, *any_required(*([n] for n in both))]}


ROUTE = closed(
    {
        **META,
        "name": NAME,
        "desc": DESC,
        "labels": LABELS,
        "uri": text(1, 4096),
        "uris": array(STRING, 1, unique=True),
        "priority": whole(),
        "methods": array(one_of(*METHODS), unique=True),
        "host": HOST,
        "hosts": array(HOST, 1, unique=True),
        "remote_addr": ADDRESS,
        "remote_addrs": array(ADDRESS, 1, unique=True),
        "timeout": TIMEOUT,
        "vars": ARRAY,
        "filter_func": text(10, pattern="^function"),
        "script": text(10, 102400),
        "script_id": ID,
        "plugins": OBJECT,
        "plugin_config_id": ID,
        "upstream": UPSTREAM,
        "upstream_id": ID,
        "service_id": ID,
        "enable_websocket": BOOLEAN,
        "status": STATUS,
    },
    allOf=[{"oneOf": any_required(["uri"], ["uris"])}, _at_most_one("host"), _at_most_one("remote_addr")],
    anyOf=any_required(
        *([target, uri] for uri in ("uri", "uris") for target in ("plugins", "upstream", "upstream_id", "service_id")),
        ["script", "uri"],
        ["script", "uris"],
    ),
    **{"not": {"anyOf": any_required(["script", "plugins"], ["script", "plugin_config_id"])}},
)

SERVICE = closed(
    {
        **META,
        "name": NAME,
        "desc": DESC,
        "labels": LABELS,
        "upstream": UPSTREAM,
        "upstream_id": ID,
        "plugins": OBJECT,
        "script": text(10, 102400),
        "enable_websocket": BOOLEAN,
        "hosts": array(HOST, 1, unique=True),
    }
)

CONSUMER = closed(
    {
        **META,
        "username": text(1, 256, r"^[a-zA-Z0-9_\-]+$"),
        "group_id": ID,
        "plugins": OBJECT,
        "labels": LABELS,
        "desc": DESC,
    },
    required=["username"],
)

CREDENTIAL = closed(
    {**META, "plugins": {"type": "object", "maxProperties": 1}, "labels": LABELS, "name": NAME, "desc": DESC},
    required=["id"],
)

SSL = closed(
    {
        **META,
        "type": one_of("server", "client"),
        "cert": CERT,
        "key": KEY,
        "certs": array(CERT),
        "keys": array(KEY),
        "sni": HOST,
        "snis": array(HOST, 1),
        "status": STATUS,
        "labels": LABELS,
        "desc": DESC,
        "ssl_protocols": array({"enum": ["TLSv1.1", "TLSv1.2", "TLSv1.3"]}, most=3, unique=True),
        "client": {
            "type": "object",
            "properties": {
                "ca": CERT,
                "depth": whole(0),
                "skip_mtls_uri_regex": array(STRING, 1, unique=True),
            },
            "required": ["ca"],
        },
    },
    **{
        "if": {"properties": {"type": one_of("server")}},
        "then": {"oneOf": any_required(["sni", "key", "cert"], ["snis", "key", "cert"])},
        "else": {"required": ["key", "cert"]},
    },
)

STREAM_ROUTE = closed(
    {
        **META,
        "name": NAME,
        "desc": DESC,
        "labels": LABELS,
        "remote_addr": ADDRESS,
        "server_addr": ADDRESS,
        "server_port": whole(1, 65535),
        "sni": HOST,
        "upstream": UPSTREAM,
        "upstream_id": ID,
        "service_id": ID,
        "plugins": OBJECT,
        "protocol": {
            "type": "object",
            "properties": {"name": STRING, "superior_id": ID, "conf": OBJECT, "logger": ARRAY},
            "required": ["name"],
        },
    }
)

PLUGIN_CONFIG = closed(
    {**META, "name": STRING, "desc": DESC, "labels": LABELS, "plugins": OBJECT}, required=["id", "plugins"]
)
CONSUMER_GROUP = closed(
    {**META, "name": NAME, "desc": DESC, "labels": LABELS, "plugins": OBJECT}, required=["id", "plugins"]
)
GLOBAL_RULE = closed({**META, "plugins": OBJECT}, required=["id", "plugins"])
PROTO = closed(
    {**META, "name": NAME, "desc": DESC, "labels": LABELS, "content": text(1, 1048576)}, required=["content"]
)

SECRETS: dict[str, Schema] = {
    "vault": {
        "type": "object",
        "properties": {
            "uri": text(pattern="^[^\\/]+:\\/\\/([\\da-zA-Z.-]+|\\[[\\da-fA-F:]+\\])(:\\d+)?"),
            "prefix": STRING,
            "token": STRING,
            "namespace": STRING,
        },
        "required": ["uri", "prefix", "token"],
    },
    "aws": {
        "type": "object",
        "properties": {
            "access_key_id": STRING,
            "secret_access_key": STRING,
            "session_token": STRING,
            "region": STRING,
            "endpoint_url": STRING,
        },
        "required": ["access_key_id", "secret_access_key"],
    },
    "gcp": {
        "type": "object",
        "properties": {"auth_config": OBJECT, "auth_file": STRING, "ssl_verify": BOOLEAN},
        "oneOf": any_required(["auth_config"], ["auth_file"]),
    },
}

MAIN: dict[str, Schema] = {
    "route": ROUTE,
    "service": SERVICE,
    "upstream": UPSTREAM,
    "consumer": CONSUMER,
    "credential": CREDENTIAL,
    "ssl": SSL,
    "stream_route": STREAM_ROUTE,
    "plugin_config": PLUGIN_CONFIG,
    "consumer_group": CONSUMER_GROUP,
    "global_rule": GLOBAL_RULE,
    "proto": PROTO,
}
