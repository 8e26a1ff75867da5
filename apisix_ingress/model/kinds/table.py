"""The table of kinds. A new kind adds one row here; everything that differs between kinds elsewhere is looked up in it.

Reflectors, stores, providers, metrics, permissions, the webhook, CRDs and commands are generic over the table.
docs/how-to/add-a-kind.md explains a row by an example.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from apisix_ingress.model import decoders
from apisix_ingress.model.kinds import indexes as by
from apisix_ingress.model.kinds.extensions import EXTENSION_ROWS
from apisix_ingress.model.kinds.gateway_api import GATEWAY_GROUP, GATEWAY_ROWS
from apisix_ingress.model.kinds.indexes import IndexFunction
from apisix_ingress.model.kinds.resource import Resource
from apisix_ingress.model.network.host_claims import (
    assigned_hosts,
    assigned_over,
    claimed_hosts,
    lent_hosts,
    names_over,
)
from apisix_ingress.model.network.route_keys import matcher_values
from apisix_ingress.model.network.tls_hosts import tls_host_values

CUSTOM_GROUP = "apisix.apache.org"

DECODE_ERRORS = (ValueError, TypeError, KeyError, AttributeError, IndexError)
"""Errors that a decoder or index function may raise for an invalid object."""

_MATCHERS: Mapping[str, IndexFunction] = {by.MATCHER_INDEX: matcher_values}
_TLS_HOSTS: Mapping[str, IndexFunction] = {by.TLS_HOST_INDEX: tls_host_values}
_CLAIMS: Mapping[str, IndexFunction] = {
    by.HOST_INDEX: claimed_hosts,
    by.UNDER_INDEX: names_over,
    by.LENT_INDEX: lent_hosts,
}
_NGINX: Mapping[str, IndexFunction] = {
    by.NGINX_HOST_INDEX: by.nginx_hosts,
    by.NGINX_SERVICE_INDEX: by.nginx_services,
    by.NGINX_CANARY_INDEX: by.nginx_canaries,
    by.NGINX_AFFINITY_INDEX: by.nginx_affinities,
}
_ASSIGNED: Mapping[str, IndexFunction] = {
    by.ASSIGNED_INDEX: assigned_hosts,
    by.ASSIGNED_UNDER_INDEX: assigned_over,
}


def _custom(kind: str, plural: str, **rest: Any) -> Resource:
    """Return the row of a kind with a CRD of this project."""
    decode = partial(decoders.decode_custom, kind=kind)
    return Resource(kind, CUSTOM_GROUP, "v2", plural, decode, optional=True, status="conditions", **rest)


_ROWS = (
    Resource(
        "Namespace",
        "",
        "v1",
        "namespaces",
        decoders.decode_namespace,
        namespaced=False,
        never_empty=True,
        indexes=_ASSIGNED,
        short="ns",
        provider="providers.namespace:NamespaceProvider",
        label="namespace",
    ),
    Resource(
        "Service",
        "",
        "v1",
        "services",
        decoders.decode_service,
        never_empty=True,
        indexes={by.BY_ADDRESS: by.addresses},
        short="svc",
        provider="providers.endpoints:EndpointsProvider",
        label="service",
        reconcile_label="endpoints",
        record_names={"upstreams": "_.*"},
    ),
    Resource(
        "Endpoints",
        "",
        "v1",
        "endpoints",
        decoders.decode_endpoints,
        never_empty=True,
        urgent=True,
        short="ep",
        label="endpoints",
    ),
    Resource(
        "EndpointSlice",
        "discovery.k8s.io",
        "v1",
        "endpointslices",
        decoders.decode_endpoint_slice,
        removed={"discovery.k8s.io/v1beta1": "1.25"},
        never_empty=True,
        urgent=True,
        indexes={by.SLICES_BY_SERVICE: by.slice_service},
        label="endpointSlice",
    ),
    Resource(
        "Pod",
        "",
        "v1",
        "pods",
        decoders.decode_pod,
        urgent=True,
        indexes={by.BY_ADDRESS: by.addresses},
        short="po",
        provider="providers.pod:PodProvider",
        label="pod",
    ),
    Resource("Secret", "", "v1", "secrets", decoders.decode_secret, label="secret"),
    Resource(
        "ConfigMap",
        "",
        "v1",
        "configmaps",
        decoders.decode_config_map,
        short="cm",
        provider="providers.plugin_metadata:PluginMetadataProvider",
        label="configMap",
    ),
    Resource(
        "IngressClass",
        "networking.k8s.io",
        "v1",
        "ingressclasses",
        decoders.decode_ingress_class,
        removed={"networking.k8s.io/v1beta1": "1.22"},
        namespaced=False,
        indexes={by.DEFAULT_CLASS: by.default_class, by.BY_PROXY: by.class_proxy},
        label="ingressClass",
    ),
    Resource(
        "ReferenceGrant",
        GATEWAY_GROUP,
        "v1beta1",
        "referencegrants",
        decoders.decode_reference_grant,
        other_versions=("v1",),
        optional=True,
        indexes={by.GRANTS_BY_NAMESPACES: by.grant_namespaces},
        label="referenceGrant",
    ),
    Resource(
        "Ingress",
        "networking.k8s.io",
        "v1",
        "ingresses",
        partial(decoders.decode_custom, kind="Ingress"),
        removed={"networking.k8s.io/v1beta1": "1.22", "extensions/v1beta1": "1.22"},
        indexes={**_MATCHERS, **_TLS_HOSTS, **_CLAIMS, **_NGINX},
        ranked=frozenset({**_MATCHERS, **_TLS_HOSTS, **_CLAIMS, **dict.fromkeys(_NGINX)}),
        short="ing",
        translator="translation.ingress:translate_ingress",
        expires=True,
        provider="providers.ingress:IngressProvider",
        label="ingress",
        status="addresses",
        addressed=True,
        record_prefix="ing",
        record_names={"routes": "_[0-9a-f]{1,8}"},
        unnamed="translation.ingress_tls:unnamed_records",
        annotated=True,
        lint="apisix_ingress.lint.rules:ingress_problems",
    ),
    _custom(
        "ApisixRoute",
        "apisixroutes",
        addressed=True,
        short="ar",
        description="Routes requests and connections to Services, through plugins.",
        indexes={**_MATCHERS, **_CLAIMS},
        ranked=frozenset({**_MATCHERS, **_CLAIMS}),
        spec="crds.v2.route:ApisixRouteSpec",
        translator="translation.route:translate_route",
        provider="providers.route:RouteProvider",
        label="route",
        record_names={"routes": "_.*", "stream_routes": "(_.*)?"},
        unnamed="translation.route:unnamed_records",
        lint="apisix_ingress.lint.rules:route_problems",
    ),
    _custom(
        "ApisixUpstream",
        "apisixupstreams",
        short="au",
        description="Settings for the Service of the same name, or a set of external nodes.",
        spec="crds.v2.upstream:ApisixUpstreamSpec",
        spec_required=True,
        translator="translation.upstream:translate_upstream",
        provider="providers.upstream:UpstreamProvider",
        label="upstream",
        record_names={"upstreams": ""},
        webhook="apisix_ingress.webhook.checks.deprecations:upstream_notes",
    ),
    _custom(
        "ApisixPluginConfig",
        "apisixpluginconfigs",
        short="apc",
        description="A set of plugins that routes refer to by name.",
        spec="crds.v2.plugin_config:ApisixPluginConfigSpec",
        translator="translation.plugin_config:translate_plugin_config",
        provider="providers.plugin_config:PluginConfigProvider",
        label="PluginConfig",
        record_names={"plugin_configs": "(_.*)?"},
    ),
    _custom(
        "ApisixTls",
        "apisixtlses",
        addressed=True,
        short="atls",
        description="A certificate for some host names.",
        indexes={**_TLS_HOSTS, **_CLAIMS},
        ranked=frozenset({**_TLS_HOSTS, **_CLAIMS}),
        spec="crds.v2.tls:ApisixTlsSpec",
        spec_required=True,
        translator="translation.tls:translate_tls",
        expires=True,
        provider="providers.tls:TlsProvider",
        label="TLS",
        unnamed="translation.tls:unnamed_records",
    ),
    _custom(
        "ApisixConsumer",
        "apisixconsumers",
        short="ac",
        description="A consumer: credentials of a client, and plugins for its requests.",
        spec="crds.v2.consumer:ApisixConsumerSpec",
        translator="translation.consumer:translate_consumer",
        provider="providers.consumer:ConsumerProvider",
        label="consumer",
        webhook="apisix_ingress.webhook.checks.deprecations:consumer_notes",
    ),
    _custom(
        "ApisixConsumerGroup",
        "apisixconsumergroups",
        short="acg",
        description="Plugins for the requests of all consumers that refer to the group.",
        spec="crds.v2.plugin_config:ApisixConsumerGroupSpec",
        translator="translation.plugin_config:translate_plugin_config",
        provider="providers.consumer_group:ConsumerGroupProvider",
        label="consumerGroup",
        record_names={"consumer_groups": ""},
    ),
    _custom(
        "ApisixProto",
        "apisixprotos",
        short="ap",
        description="A Protobuf definition for the plugin grpc-transcode.",
        spec="crds.v2.proto:ApisixProtoSpec",
        translator="translation.proto:translate_proto",
        provider="providers.proto:ProtoProvider",
        label="proto",
        record_names={"protos": ""},
    ),
    _custom(
        "ApisixGlobalRule",
        "apisixglobalrules",
        short="agr",
        description="Plugins that run for every request.",
        indexes={by.PLUGIN_INDEX: by.enabled_plugins},
        spec="crds.v2.global_rule:ApisixGlobalRuleSpec",
        translator="translation.global_rule:translate_global_rule",
        provider="providers.global_rule:GlobalRuleProvider",
        label="GlobalRule",
    ),
    _custom(
        "ApisixClusterConfig",
        "apisixclusterconfigs",
        namespaced=False,
        short="acc",
        description="Settings of the gateway cluster of the same name.",
        spec="crds.v2.cluster_config:ApisixClusterConfigSpec",
        translator="translation.cluster_config:translate_cluster_config",
        provider="providers.cluster_config:ClusterConfigProvider",
        label="clusterConfig",
        webhook="apisix_ingress.webhook.checks.cluster_names:cluster_name_notes",
    ),
    _custom(
        "ApisixSecretManager",
        "apisixsecretmanagers",
        namespaced=False,
        short="asm",
        description="A secret manager that gateways read `$secret://` references from.",
        spec="crds.v2.secret_manager:ApisixSecretManagerSpec",
        translator="translation.secret_manager:translate_secret_manager",
        provider="providers.secret_manager:SecretManagerProvider",
        label="secretManager",
    ),
    *GATEWAY_ROWS,
    *EXTENSION_ROWS,
)

RESOURCES: Mapping[str, Resource] = {resource.kind: resource for resource in _ROWS}
"""Kind → its row, in the order in which reflectors start and providers are run."""


PREFIXES = frozenset(row.record_prefix for row in RESOURCES.values()) - {""}
"""Prefixes of record names in place of a namespace. Only `ing` may also be a namespace."""


def kinds_with(index: str) -> tuple[str, ...]:
    """Return the kinds whose stores have an index."""
    return tuple(kind for kind, resource in RESOURCES.items() if index in resource.indexes)


def kinds_of_records(record_kind: str) -> tuple[str, ...]:
    """Return the kinds that own records of a kind whose names identify the owner."""
    return tuple(kind for kind, resource in RESOURCES.items() if record_kind in resource.record_names)


def has_status(kind: str) -> bool:
    """Return whether this controller writes to the status of a kind.

    Also true for owners that are not Kubernetes objects: their provider decides what they report.
    """
    return kind not in RESOURCES or bool(RESOURCES[kind].status)


def has_condition(kind: str) -> bool:
    """Return whether this controller writes a condition to the status of a kind."""
    return RESOURCES[kind].status == "conditions"
