"""The plugins this gateway knows: all names of a default APISIX, full schemas for those the data plane runs.

A plugin that is only known has a schema of its required properties: enough to refuse what is plainly wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from e2e.devgateway.schema import (
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
        """Return what `/plugins?all=true` says of it."""
        shown: dict[str, Any] = {"priority": self.priority, "version": 0.1, "schema": self.schema}
        if self.auth:
            shown["type"] = "auth"
        if self.consumer is not None:
            shown["consumer_schema"] = self.consumer
        return shown


def _schema(properties: Schema, **more: object) -> Schema:
    return {"type": "object", "properties": {**properties, "_meta": META}, **more}


def _known(name: str, priority: int, *, required: list[str] | None = None, secret: list[str] | None = None) -> Plugin:
    more = {"required": required} if required else {}
    return Plugin(name, priority, _schema({}, **more), secret=tuple(secret or ()))


def _auth(name: str, priority: int, properties: Schema, consumer: Schema, secret: str) -> Plugin:
    common = {"hide_credentials": BOOLEAN, "realm": REALM, "anonymous_consumer": text(1)}
    schema = _schema({**common, **properties})
    return Plugin(name, priority, schema, consumer=consumer, auth=True, consumer_secret=(secret,))


def _required(properties: Schema) -> Schema:
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
    _auth("basic-auth", 2520, {}, _required({"username": STRING, "password": STRING}), "password"),
    _auth("key-auth", 2500, {"header": STRING, "query": STRING}, _required({"key": STRING}), "key"),
    _auth(
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
        _schema(
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
        _schema({"source": text(1), "trusted_addresses": _ADDRESSES, "recursive": BOOLEAN}, required=["source"]),
    ),
    Plugin(
        "consumer-restriction",
        2400,
        _schema(
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
        _schema(
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
        _schema(
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
        _schema(
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
        _schema(
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
        _schema(
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
        _schema(
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
        _schema(
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
        _schema(
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
        _schema(
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
        _schema(
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

_hmac = _required({"key_id": text(1, 256), "secret_key": text(1, 256)})
_KNOWN: tuple[Plugin, ...] = (
    _auth("hmac-auth", 2530, {"clock_skew": whole(1), "validate_request_body": BOOLEAN}, _hmac, "secret_key"),
    Plugin("wolf-rbac", 2555, _schema({}), auth=True),
    Plugin("multi-auth", 2600, _schema({}, required=["auth_plugins"]), auth=True),
    Plugin(
        "jwe-decrypt",
        2509,
        _schema({}, required=["header", "forward_header"]),
        consumer=_required({"key": STRING, "secret": STRING}),
        auth=True,
        consumer_secret=("key", "secret"),
    ),
    Plugin("limit-conn", 1003, _schema({}), stream=True, secret=("redis_password",)),
    Plugin("mqtt-proxy", 1000, _schema({}, required=["protocol_level"]), stream=True),
    Plugin("syslog", 401, _schema({}, required=["host", "port"]), stream=True),
    _known("ai", 22900),
    _known("client-control", 22000),
    _known("proxy-buffering", 21991),
    _known("proxy-control", 21990),
    _known("mocking", 10900),
    _known("serverless-pre-function", 10000, required=["functions"]),
    _known("batch-requests", 4010),
    _known("ua-restriction", 2999),
    _known("referer-restriction", 2990),
    _known("csrf", 2980, required=["key"], secret=["key"]),
    _known("uri-blocker", 2900, required=["block_rules"]),
    _known("request-validation", 2800),
    _known(
        "cas-auth", 2597, required=["idp_uri", "cas_callback_uri", "logout_uri", "cookie"], secret=["cookie.secret"]
    ),
    _known(
        "authz-casdoor",
        2559,
        required=["callback_url", "endpoint_addr", "client_id", "client_secret"],
        secret=["client_secret"],
    ),
    _known(
        "dingtalk-auth",
        2430,
        required=["app_key", "app_secret", "secret", "redirect_uri"],
        secret=["app_secret", "secret", "secret_fallbacks"],
    ),
    _known(
        "feishu-auth",
        2420,
        required=["app_id", "app_secret", "secret", "auth_redirect_uri", "redirect_uri"],
        secret=["app_secret", "secret", "secret_fallbacks"],
    ),
    _known("acl", 2410),
    _known("attach-consumer-label", 2399, required=["headers"]),
    _known("forward-auth", 2002, required=["uri"]),
    _known("opa", 2001, required=["host", "policy"]),
    _known("authz-keycloak", 2000, required=["client_id"], secret=["client_secret"]),
    _known("data-mask", 1500),
    _known("proxy-cache", 1085),
    _known("body-transformer", 1080),
    _known("ai-request-rewrite", 1073, required=["prompt", "provider", "auth"]),
    _known("ai-prompt-guard", 1072),
    _known("ai-prompt-template", 1071, required=["templates"]),
    _known("ai-prompt-decorator", 1070),
    _known(
        "ai-rag",
        1060,
        required=["embeddings_provider", "vector_search_provider"],
        secret=["embeddings_provider.azure_openai.api_key", "vector_search_provider.azure_ai_search.api_key"],
    ),
    _known(
        "ai-proxy-multi",
        1041,
        required=["instances"],
        secret=[
            "instances.auth.header",
            "instances.auth.query",
            "instances.auth.gcp.service_account_json",
            "instances.auth.aws.secret_access_key",
            "instances.auth.aws.session_token",
            "semantic_opts.embeddings.auth.header",
            "semantic_opts.embeddings.auth.query",
        ],
    ),
    _known(
        "ai-proxy",
        1040,
        required=["provider", "auth"],
        secret=[
            "auth.header",
            "auth.query",
            "auth.gcp.service_account_json",
            "auth.aws.secret_access_key",
            "auth.aws.session_token",
        ],
    ),
    _known(
        "ai-cache",
        1035,
        secret=["redis_password", "semantic.embedding.openai.api_key", "semantic.embedding.azure_openai.api_key"],
    ),
    _known("ai-rate-limiting", 1030, secret=["redis_password", "sentinel_password"]),
    _known("ai-lakera-guard", 1028, required=["api_key"], secret=["api_key"]),
    _known("proxy-mirror", 1010, required=["host"]),
    _known("graphql-proxy-cache", 1009),
    _known("workflow", 1006, required=["rules"]),
    _known("api-breaker", 1005, required=["break_response_code"]),
    _known("graphql-limit-count", 1004, secret=["redis_password", "sentinel_password"]),
    _known("gzip", 995),
    _known("server-info", 990),
    _known("traffic-label", 967, required=["rules"]),
    _known("mcp-bridge", 510, required=["command"]),
    _known("degraphql", 509, required=["query"]),
    _known("kafka-proxy", 508, secret=["sasl.password"]),
    _known("grpc-transcode", 506, required=["proto_id", "service", "method"]),
    _known("grpc-web", 505),
    _known("http-dubbo", 504, required=["service_name", "method"]),
    _known("public-api", 501),
    _known("prometheus", 500),
    _known("datadog", 495),
    _known(
        "lago",
        415,
        required=["endpoint_addrs", "token", "event_transaction_id", "event_subscription_id", "event_code"],
        secret=["token"],
    ),
    _known("loki-logger", 414, required=["endpoint_addrs"], secret=["headers"]),
    _known("elasticsearch-logger", 413, secret=["auth.password", "headers"]),
    _known("loggly", 411, required=["customer_token"], secret=["customer_token"]),
    _known("http-logger", 410, required=["uri"], secret=["auth_header"]),
    _known("splunk-hec-logging", 409, required=["endpoint"], secret=["endpoint.token"]),
    _known("skywalking-logger", 408, required=["endpoint_addr"]),
    _known("google-cloud-logging", 407, secret=["auth_config.private_key"]),
    _known(
        "sls-logger",
        406,
        required=["host", "port", "project", "logstore", "access_key_id", "access_key_secret"],
        secret=["access_key_secret"],
    ),
    _known("tcp-logger", 405, required=["host", "port"]),
    _known("kafka-logger", 403, secret=["brokers.sasl_config.password"]),
    _known("udp-logger", 400, required=["host", "port"]),
    _known("file-logger", 399),
    _known("clickhouse-logger", 398, secret=["password"]),
    _known(
        "tencent-cloud-cls", 397, required=["cls_host", "cls_topic", "secret_id", "secret_key"], secret=["secret_key"]
    ),
    _known("example-plugin", 0, required=["i"]),
    _known(
        "aws-lambda",
        -1899,
        required=["function_uri"],
        secret=["authorization.apikey", "authorization.iam.accesskey", "authorization.iam.secretkey"],
    ),
    _known("azure-functions", -1900, required=["function_uri"], secret=["authorization.apikey"]),
    _known("openwhisk", -1901, required=["api_host", "service_token", "namespace", "action"], secret=["service_token"]),
    _known("openfunction", -1902, required=["function_uri"], secret=["authorization.service_token"]),
    _known("serverless-post-function", -2000, required=["functions"]),
)

PLUGINS: dict[str, Plugin] = {
    plugin.name: plugin for plugin in sorted((*RUN, *_KNOWN), key=lambda plugin: -plugin.priority)
}
HTTP_PLUGINS = {name: plugin for name, plugin in PLUGINS.items() if name != "mqtt-proxy"}
STREAM_PLUGINS = {name: plugin for name, plugin in PLUGINS.items() if plugin.stream}
