"""Every plugin of a default APISIX by name, in the order of priority.

A plugin that is not implemented here has a schema of its required properties, which rejects obvious mistakes.
"""

from __future__ import annotations

from e2e.devgateway.schemas.plugin_schemas import RUN, Plugin, all_required, auth_plugin, plugin_schema
from e2e.devgateway.schemas.record_schemas import BOOLEAN, STRING, text, whole


def known(name: str, priority: int, *, required: list[str] | None = None, secret: list[str] | None = None) -> Plugin:
    more = {"required": required} if required else {}
    return Plugin(name, priority, plugin_schema({}, **more), secret=tuple(secret or ()))


_hmac = all_required({"key_id": text(1, 256), "secret_key": text(1, 256)})
_KNOWN: tuple[Plugin, ...] = (
    auth_plugin("hmac-auth", 2530, {"clock_skew": whole(1), "validate_request_body": BOOLEAN}, _hmac, "secret_key"),
    Plugin("wolf-rbac", 2555, plugin_schema({}), auth=True),
    Plugin("multi-auth", 2600, plugin_schema({}, required=["auth_plugins"]), auth=True),
    Plugin(
        "jwe-decrypt",
        2509,
        plugin_schema({}, required=["header", "forward_header"]),
        consumer=all_required({"key": STRING, "secret": STRING}),
        auth=True,
        consumer_secret=("key", "secret"),
    ),
    Plugin("limit-conn", 1003, plugin_schema({}), stream=True, secret=("redis_password",)),
    Plugin("mqtt-proxy", 1000, plugin_schema({}, required=["protocol_level"]), stream=True),
    Plugin("syslog", 401, plugin_schema({}, required=["host", "port"]), stream=True),
    known("ai", 22900),
    known("client-control", 22000),
    known("proxy-buffering", 21991),
    known("proxy-control", 21990),
    known("mocking", 10900),
    known("serverless-pre-function", 10000, required=["functions"]),
    known("batch-requests", 4010),
    known("ua-restriction", 2999),
    known("referer-restriction", 2990),
    known("csrf", 2980, required=["key"], secret=["key"]),
    known("uri-blocker", 2900, required=["block_rules"]),
    known("request-validation", 2800),
    known("cas-auth", 2597, required=["idp_uri", "cas_callback_uri", "logout_uri", "cookie"], secret=["cookie.secret"]),
    known(
        "authz-casdoor",
        2559,
        required=["callback_url", "endpoint_addr", "client_id", "client_secret"],
        secret=["client_secret"],
    ),
    known(
        "dingtalk-auth",
        2430,
        required=["app_key", "app_secret", "secret", "redirect_uri"],
        secret=["app_secret", "secret", "secret_fallbacks"],
    ),
    known(
        "feishu-auth",
        2420,
        required=["app_id", "app_secret", "secret", "auth_redirect_uri", "redirect_uri"],
        secret=["app_secret", "secret", "secret_fallbacks"],
    ),
    known("acl", 2410),
    known("attach-consumer-label", 2399, required=["headers"]),
    known("forward-auth", 2002, required=["uri"]),
    known("opa", 2001, required=["host", "policy"]),
    known("authz-keycloak", 2000, required=["client_id"], secret=["client_secret"]),
    known("data-mask", 1500),
    known("proxy-cache", 1085),
    known("body-transformer", 1080),
    known("ai-request-rewrite", 1073, required=["prompt", "provider", "auth"]),
    known("ai-prompt-guard", 1072),
    known("ai-prompt-template", 1071, required=["templates"]),
    known("ai-prompt-decorator", 1070),
    known(
        "ai-rag",
        1060,
        required=["embeddings_provider", "vector_search_provider"],
        secret=["embeddings_provider.azure_openai.api_key", "vector_search_provider.azure_ai_search.api_key"],
    ),
    known(
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
    known(
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
    known(
        "ai-cache",
        1035,
        secret=["redis_password", "semantic.embedding.openai.api_key", "semantic.embedding.azure_openai.api_key"],
    ),
    known("ai-rate-limiting", 1030, secret=["redis_password", "sentinel_password"]),
    known("ai-lakera-guard", 1028, required=["api_key"], secret=["api_key"]),
    known("proxy-mirror", 1010, required=["host"]),
    known("graphql-proxy-cache", 1009),
    known("workflow", 1006, required=["rules"]),
    known("api-breaker", 1005, required=["break_response_code"]),
    known("graphql-limit-count", 1004, secret=["redis_password", "sentinel_password"]),
    known("gzip", 995),
    known("server-info", 990),
    known("traffic-label", 967, required=["rules"]),
    known("mcp-bridge", 510, required=["command"]),
    known("degraphql", 509, required=["query"]),
    known("kafka-proxy", 508, secret=["sasl.password"]),
    known("grpc-transcode", 506, required=["proto_id", "service", "method"]),
    known("grpc-web", 505),
    known("http-dubbo", 504, required=["service_name", "method"]),
    known("public-api", 501),
    known("prometheus", 500),
    known("datadog", 495),
    known(
        "lago",
        415,
        required=["endpoint_addrs", "token", "event_transaction_id", "event_subscription_id", "event_code"],
        secret=["token"],
    ),
    known("loki-logger", 414, required=["endpoint_addrs"], secret=["headers"]),
    known("elasticsearch-logger", 413, secret=["auth.password", "headers"]),
    known("loggly", 411, required=["customer_token"], secret=["customer_token"]),
    known("http-logger", 410, required=["uri"], secret=["auth_header"]),
    known("splunk-hec-logging", 409, required=["endpoint"], secret=["endpoint.token"]),
    known("skywalking-logger", 408, required=["endpoint_addr"]),
    known("google-cloud-logging", 407, secret=["auth_config.private_key"]),
    known(
        "sls-logger",
        406,
        required=["host", "port", "project", "logstore", "access_key_id", "access_key_secret"],
        secret=["access_key_secret"],
    ),
    known("tcp-logger", 405, required=["host", "port"]),
    known("kafka-logger", 403, secret=["brokers.sasl_config.password"]),
    known("udp-logger", 400, required=["host", "port"]),
    known("file-logger", 399),
    known("clickhouse-logger", 398, secret=["password"]),
    known(
        "tencent-cloud-cls", 397, required=["cls_host", "cls_topic", "secret_id", "secret_key"], secret=["secret_key"]
    ),
    known("example-plugin", 0, required=["i"]),
    known(
        "aws-lambda",
        -1899,
        required=["function_uri"],
        secret=["authorization.apikey", "authorization.iam.accesskey", "authorization.iam.secretkey"],
    ),
    known("azure-functions", -1900, required=["function_uri"], secret=["authorization.apikey"]),
    known("openwhisk", -1901, required=["api_host", "service_token", "namespace", "action"], secret=["service_token"]),
    known("openfunction", -1902, required=["function_uri"], secret=["authorization.service_token"]),
    known("serverless-post-function", -2000, required=["functions"]),
)

PLUGINS: dict[str, Plugin] = {
    plugin.name: plugin for plugin in sorted((*RUN, *_KNOWN), key=lambda plugin: -plugin.priority)
}
HTTP_PLUGINS = {name: plugin for name, plugin in PLUGINS.items() if name != "mqtt-proxy"}
STREAM_PLUGINS = {name: plugin for name, plugin in PLUGINS.items() if plugin.stream}
