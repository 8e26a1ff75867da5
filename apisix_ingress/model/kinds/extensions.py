"""The rows of the table of kinds for `apisix.apache.org/v1alpha1`: the kinds that 2.x adds to the Gateway API.

This project does not ship their CRDs (docs/decisions, "Kinds of 2.x").
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from apisix_ingress.model import decoders
from apisix_ingress.model.kinds import indexes as by
from apisix_ingress.model.kinds.indexes import IndexFunction
from apisix_ingress.model.kinds.resource import Resource

EXTENSION_GROUP = "apisix.apache.org"

_TARGETS: Mapping[str, IndexFunction] = {by.BY_TARGET: by.policy_targets}


def _row(kind: str, plural: str, label: str, **rest: Any) -> Resource:
    decode = partial(decoders.decode_custom, kind=kind)
    return Resource(
        kind, EXTENSION_GROUP, "v1alpha1", plural, decode, optional=True, may_be_forbidden=True, label=label, **rest
    )


def _policy(kind: str, plural: str, label: str, provider: str) -> Resource:
    return _row(
        kind,
        plural,
        label,
        provider=f"providers.extensions.{provider}",
        indexes=_TARGETS,
        ranked=frozenset(_TARGETS),
        status="document",
    )


EXTENSION_ROWS = (
    _policy("HTTPRoutePolicy", "httproutepolicies", "httpRoutePolicy", "http_route_policy:HttpRoutePolicyProvider"),
    _policy("L4RoutePolicy", "l4routepolicies", "l4RoutePolicy", "l4_route_policy:L4RoutePolicyProvider"),
    _policy(
        "BackendTrafficPolicy",
        "backendtrafficpolicies",
        "backendTrafficPolicy",
        "backend_traffic_policy:BackendTrafficPolicyProvider",
    ),
    _row(
        "PluginConfig",
        "pluginconfigs",
        "gatewayPluginConfig",
        translator="translation.plugin_config:translate_plugin_config",
        provider="providers.extensions.route_plugins:RoutePluginsProvider",
        record_prefix="PluginConfig",
        record_names={"plugin_configs": ""},
    ),
    _row(
        "Consumer",
        "consumers",
        "gatewayConsumer",
        provider="providers.extensions.gateway_consumer:GatewayConsumerProvider",
        status="document",
    ),
    _row(
        "GatewayProxy",
        "gatewayproxies",
        "gatewayProxy",
        translator="translation.gateway.extensions.gateway_proxy:translate_gateway_proxy",
        provider="providers.extensions.gateway_proxy:GatewayProxyProvider",
        lint="apisix_ingress.lint.rules:proxy_problems",
        record_prefix="GatewayProxy",
        record_names={"global_rules": ""},
    ),
)
