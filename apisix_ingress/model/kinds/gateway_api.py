"""The rows of the table of kinds for the Gateway API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from apisix_ingress.model import decoders
from apisix_ingress.model import objects as kube
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.kinds import indexes as by
from apisix_ingress.model.kinds.extensions import EXTENSION_ROWS
from apisix_ingress.model.kinds.indexes import IndexFunction
from apisix_ingress.model.kinds.resource import Resource
from apisix_ingress.model.network.gateway_matches import match_values
from apisix_ingress.model.network.host_claims import claimed_hosts, lent_hosts, names_over
from apisix_ingress.model.network.route_keys import matcher_values

GATEWAY_GROUP = "gateway.networking.k8s.io"

CA_BUNDLE = "CaBundle"
"""Internal kind of ConfigMaps that may hold CA certificates for Gateways."""

CA_KEY = "ca.crt"
"""Key of a ConfigMap or Secret that holds CA certificates."""

_BACKENDS: Mapping[str, IndexFunction] = {by.BY_BACKEND: by.backend_services}


def _matches(item: kube.CustomObject) -> Iterable[str]:
    """Return the values of the index of matchers: for other routes of Gateways, and for those of other kinds."""
    return (*match_values(item), *matcher_values(item))


_MATCHES: Mapping[str, IndexFunction] = {by.MATCHER_INDEX: _matches, **_BACKENDS}
_CLAIMS: Mapping[str, IndexFunction] = {
    by.HOST_INDEX: claimed_hosts,
    by.UNDER_INDEX: names_over,
    by.LENT_INDEX: lent_hosts,
}


def _row(kind: str, plural: str, label: str, provider: str, **rest: Any) -> Resource:
    return Resource(
        kind,
        GATEWAY_GROUP,
        "v1",
        plural,
        partial(decoders.decode_custom, kind=kind),
        optional=True,
        may_be_forbidden=True,
        status="document",
        label=label,
        provider=f"providers.gateway.{provider}",
        **rest,
    )


def _ca_bundle(raw: JsonObject) -> kube.ConfigMap:
    """Decode only the CA certificates of a ConfigMap."""
    found = decoders.decode_config_map(raw)
    data = {key: text for key, text in found.data.items() if key == CA_KEY}
    return kube.ConfigMap(replace(found.meta, kind=CA_BUNDLE), data=data)


GATEWAY_ROWS = (
    Resource(
        CA_BUNDLE,
        "",
        "v1",
        "configmaps",
        _ca_bundle,
        optional=True,
        needs="Gateway",
        may_be_forbidden=True,
        label="caBundle",
    ),
    _row(
        "BackendTLSPolicy",
        "backendtlspolicies",
        "backendTlsPolicy",
        "backend_tls_policy:BackendTlsPolicyProvider",
        other_versions=("v1alpha3",),
        indexes={by.BY_TARGET: by.target_services},
        short="btlspolicy",
    ),
    _row(
        "GatewayClass",
        "gatewayclasses",
        "gatewayClass",
        "gateway_class:GatewayClassProvider",
        other_versions=("v1beta1",),
        namespaced=False,
        indexes={by.BY_PROXY: by.gateway_proxy},
        short="gc",
    ),
    _row(
        "Gateway",
        "gateways",
        "gateway",
        "gateway:GatewayProvider",
        other_versions=("v1beta1",),
        indexes={by.EVERY: by.every, by.BY_FRONTEND: by.frontends, by.BY_PROXY: by.gateway_proxy, **_CLAIMS},
        ranked=frozenset(_CLAIMS),
        short="gtw",
    ),
    _row(
        "ListenerSet",
        "listenersets",
        "listenerSet",
        "listener_set:ListenerSetProvider",
        indexes={by.BY_PARENT: by.parent_gateway, **_CLAIMS},
        ranked=frozenset(_CLAIMS),
        short="lset",
    ),
    _row(
        "HTTPRoute",
        "httproutes",
        "httpRoute",
        "http_route:HttpRouteProvider",
        other_versions=("v1beta1",),
        lint="apisix_ingress.lint.matches:wildcard_problems",
        indexes={**_MATCHES, **_CLAIMS},
        ranked=frozenset({**_MATCHES, **_CLAIMS}),
    ),
    _row(
        "GRPCRoute",
        "grpcroutes",
        "grpcRoute",
        "grpc_route:GrpcRouteProvider",
        indexes={**_MATCHES, **_CLAIMS},
        ranked=frozenset({**_MATCHES, **_CLAIMS}),
    ),
    _row(
        "TLSRoute",
        "tlsroutes",
        "tlsRoute",
        "tls_route:TlsRouteProvider",
        other_versions=("v1alpha3", "v1alpha2"),
        indexes={**_BACKENDS, **_CLAIMS},
        ranked=frozenset({**_BACKENDS, **_CLAIMS}),
    ),
    _row(
        "TCPRoute",
        "tcproutes",
        "tcpRoute",
        "tcp_route:TcpRouteProvider",
        other_versions=("v1alpha2",),
        indexes=_BACKENDS,
        ranked=frozenset(_BACKENDS),
    ),
    _row("UDPRoute", "udproutes", "udpRoute", "udp_route:UdpRouteProvider", other_versions=("v1alpha2",)),
)
"""Kinds that only the Gateway API uses. ReferenceGrants are used by other kinds too."""

GATEWAY_KINDS = frozenset(row.kind for row in (*GATEWAY_ROWS, *EXTENSION_ROWS))
"""Kinds that are read with the Gateway API."""
