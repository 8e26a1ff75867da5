"""How much a route lets through: which of its plugins guard it.

The order of writes follows from it, so that a path is never open before its protection exists. A plugin that is in
neither list may guard a route: open routes wait for it, and it waits for routes with a guard.
"""

from __future__ import annotations

from apisix_ingress.model.exposure import Exposure
from apisix_ingress.model.json import FrozenJson, mapping_in
from translation.nginx.functions.attached import FIELD

BACKENDS = frozenset({"upstream_id", "upstream", "service_id", "script", "script_id"})
"""The fields by which a route reaches a backend."""
_ANSWERS = frozenset({"fault-injection", "redirect"})

GUARDS = frozenset({
    "acl", "ai-aliyun-content-moderation", "ai-lakera-guard", "ai-prompt-guard", "ai-rate-limiting", "authz-casbin",
    "authz-casdoor", "authz-keycloak", "basic-auth", "cas-auth", "chaitin-waf",
    "consumer-restriction", "csrf", "data-mask", "dingtalk-auth", "fault-injection", "feishu-auth", "forward-auth",
    "graphql-limit-count", "hmac-auth", "ip-restriction", "jwe-decrypt", "jwt-auth", "key-auth", "ldap-auth",
    "ldap-auth-advanced", "limit-conn", "limit-count", "limit-count-advanced", "limit-req", "multi-auth",
    "oas-validator", "opa", "openid-connect", "referer-restriction", "request-validation", "saml-auth",
    "ua-restriction", "uri-blocker", "wolf-rbac", "workflow"
})  # fmt: skip
"""Plugins that may reject a request because of who sends it, how often, or what it contains."""

OPENS = frozenset({
    "attach-consumer-label", "body-transformer", "brotli", "clickhouse-logger", "client-control", "cors", "datadog",
    "echo",
    "elasticsearch-logger", "error-log-logger", "example-plugin", "file-logger", "google-cloud-logging",
    "grpc-transcode", "grpc-web", "gzip", "http-logger", "kafka-logger", "lago", "loggly", "loki-logger",
    "node-status", "opentelemetry", "prometheus", "proxy-buffering", "proxy-cache", "proxy-control", "proxy-mirror",
    "proxy-rewrite", "real-ip", "redirect", "request-id", "response-rewrite", "rocketmq-logger", "server-info",
    "skywalking", "skywalking-logger", "sls-logger", "splunk-hec-logging", "syslog", "tcp-logger",
    "tencent-cloud-cls", "traffic-label", "traffic-split", "udp-logger", "zipkin"
})  # fmt: skip
"""Plugins that reject no request."""

_FUNCTIONS = ("serverless-pre-function", "serverless-post-function")
_HOST = "client-control"
_GUARDING = frozenset({"basic", "external", "https", "limits", "waived"})
"""Values of the functions of `translation.nginx` that guard a path, or redirect it to https."""


def exposure(body: FrozenJson, config: FrozenJson | None = None) -> Exposure:
    """Return how much a route lets through.

    Args:
        body: The route.
        config: The plugin config that it refers to; None if it refers to none, or to an unknown one.
    """
    plugins = mapping_in(body.get("plugins"))
    if not plugins and "plugin_config_id" not in body:
        return Exposure.REFUSES if BACKENDS.isdisjoint(body) else Exposure.OPEN
    if not _ANSWERS.isdisjoint(plugins) and BACKENDS.isdisjoint(body):
        return Exposure.REFUSES
    found = {**mapping_in(config.get("plugins")), **plugins} if config else plugins
    functions = (found[name] for name in (*_FUNCTIONS, _HOST) if name in found)
    if not GUARDS.isdisjoint(found) or any(map(_is_guarding_function, functions)):
        return Exposure.GUARDED
    if "plugin_config_id" in body and config is None:
        return Exposure.UNKNOWN
    others = found.keys() - OPENS
    is_open = all(name in _FUNCTIONS and FIELD in mapping_in(found[name]) for name in others)
    return Exposure.OPEN if is_open else Exposure.UNKNOWN


def _is_guarding_function(plugin: object) -> bool:
    return not _GUARDING.isdisjoint(mapping_in(mapping_in(plugin).get(FIELD)))
