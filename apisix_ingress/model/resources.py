"""The kinds that the controller reads: where the API server has them, how they are decoded and indexed.

A new kind adds one entry here; reflectors, stores and the file source are generic over the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from apisix_ingress.model import objects as kube
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.network.host_claims import (
    assigned_hosts,
    assigned_over,
    claimed_hosts,
    lent_hosts,
    names_over,
)
from apisix_ingress.model.network.ip_address import canonical_ip
from apisix_ingress.model.network.route_keys import matcher_values
from apisix_ingress.model.network.tls_hosts import tls_host_values
from apisix_ingress.model.objects import KubeObject

CUSTOM_GROUP = "apisix.apache.org"

SLICES_BY_SERVICE = "service"
"""Index of EndpointSlices: `namespace/service`."""

BY_ADDRESS = "address"
"""Index of Pods and Services: each IP address that they have, in its one spelling."""

DEFAULT_CLASS = "default"
"""Index of IngressClasses: `true` holds those that carry the default-class annotation."""

PLUGIN_INDEX = "plugin"
"""Index of ApisixGlobalRules: the names of the plugins that they enable."""

MATCHER_INDEX = "matcher"
"""Index of Ingresses and ApisixRoutes: the requests that their rules take (model.matchers)."""

TLS_HOST_INDEX = "tls-host"
"""Index of Ingresses and ApisixTlses: the hosts that they have a certificate for (model.tlshosts)."""

HOST_INDEX = "host"
"""Index of Ingresses, ApisixRoutes and ApisixTlses: the hosts that they name (model.hostclaims)."""

UNDER_INDEX = "under"
"""Index of the same kinds: the wildcards over the hosts that they name."""

LENT_INDEX = "lent"
"""Index of the same kinds: `namespace/host` for each host that an object names and lets other namespaces use."""

ASSIGNED_INDEX = "assigned"
"""Index of Namespaces: the hosts that were given to them."""

ASSIGNED_UNDER_INDEX = "assigned-under"
"""Index of Namespaces: the wildcards over the hosts that were given to them."""

OWNERSHIP_INDEXES = frozenset({HOST_INDEX, UNDER_INDEX, LENT_INDEX, ASSIGNED_INDEX, ASSIGNED_UNDER_INDEX})
"""Indexes that only `host_ownership: namespace` asks."""

GRANTS_BY_NAMESPACES = "namespaces"
"""Index of ReferenceGrants: `namespace/namespace of those that may refer to it`."""

DECODE_ERRORS = (ValueError, TypeError, KeyError, AttributeError, IndexError)
"""What a decoder or an index function may raise for an object that can't be what it claims to be."""

IndexFunction = Callable[[Any], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind of object.

    Attributes:
        kind: As in manifests.
        group: API group, empty for the core group.
        version: API version.
        plural: Path segment and RBAC resource.
        decode: Raw JSON → trimmed object; raises ValueError, TypeError or KeyError.
        other_versions: API versions that have the same shape, for API servers that don't have `version`.
        namespaced: Whether objects live in a namespace.
        optional: The kind may be missing at the API server (a CRD that is not installed yet).
        indexes: Index name → function that returns the values under which an object is found.
        ranked: Names of those indexes that know who is oldest.
        only: The one object of the kind that is read; None: all of them.
    """

    kind: str
    group: str
    version: str
    plural: str
    decode: Callable[[JsonObject], KubeObject]
    other_versions: tuple[str, ...] = ()
    namespaced: bool = True
    optional: bool = False
    indexes: Mapping[str, IndexFunction] = field(default_factory=dict)
    ranked: frozenset[str] = frozenset()
    only: ObjectKey | None = None

    @property
    def api_version(self) -> str:
        """`apiVersion` as in manifests."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def base_path(self) -> str:
        """URL path of the API group version, e.g. `/apis/apisix.apache.org/v2`."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the URL path of the collection, an object or a subresource of it."""
        scope = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        parts = [f"{self.base_path}{scope}/{self.plural}", *filter(None, (name, subresource))]
        return "/".join(parts)

    def versions(self) -> Iterator[Resource]:
        """Yield the kind in each of its API versions, the preferred one first."""
        for version in (self.version, *self.other_versions):
            yield replace(self, version=version)

    def without(self, indexes: frozenset[str]) -> Resource:
        """Return the kind without some indexes."""
        kept = {name: function for name, function in self.indexes.items() if name not in indexes}
        return replace(self, indexes=kept, ranked=self.ranked - indexes)

    def restricted(self, only: ObjectKey) -> Resource:
        """Return the kind as it is when one object of it is read."""
        return replace(self, only=only)


def _slice_service(item: kube.EndpointSlice) -> Iterable[str]:
    return (f"{item.meta.namespace}/{item.service}",) if item.service else ()


def _addresses(item: kube.Pod | kube.Service) -> Iterable[str]:
    return map(canonical_ip, item.addresses)


def _grant_namespaces(item: kube.ReferenceGrant) -> Iterable[str]:
    return (f"{item.meta.namespace}/{namespace}" for _, _, namespace in item.sources)


def _default_class(item: kube.IngressClass) -> Iterable[str]:
    return ("true",) if item.is_default else ()


def _enabled_plugins(item: kube.CustomObject) -> Iterable[str]:
    plugins = item.spec.get("plugins")
    for plugin in plugins if isinstance(plugins, list) else ():
        name = plugin.get("name") if isinstance(plugin, dict) else None
        if isinstance(name, str) and plugin.get("enable") is not False:
            yield name


def _custom(
    kind: str, plural: str, *, namespaced: bool = True, indexes: Mapping[str, IndexFunction] | None = None
) -> Resource:
    decode = partial(kube.decode_custom, kind=kind)
    return Resource(
        kind, CUSTOM_GROUP, "v2", plural, decode, namespaced=namespaced, optional=True, indexes=indexes or {}
    )


def _ranked(kind: str, plural: str, indexes: Mapping[str, IndexFunction]) -> Resource:
    return replace(_custom(kind, plural, indexes=indexes), ranked=frozenset(indexes))


_MATCHERS: Mapping[str, IndexFunction] = {MATCHER_INDEX: matcher_values}
_TLS_HOSTS: Mapping[str, IndexFunction] = {TLS_HOST_INDEX: tls_host_values}
_CLAIMS: Mapping[str, IndexFunction] = {HOST_INDEX: claimed_hosts, UNDER_INDEX: names_over, LENT_INDEX: lent_hosts}
_ASSIGNED: Mapping[str, IndexFunction] = {ASSIGNED_INDEX: assigned_hosts, ASSIGNED_UNDER_INDEX: assigned_over}

RESOURCES: Mapping[str, Resource] = {
    resource.kind: resource
    for resource in (
        Resource("Namespace", "", "v1", "namespaces", kube.decode_namespace, namespaced=False, indexes=_ASSIGNED),
        Resource("Service", "", "v1", "services", kube.decode_service, indexes={BY_ADDRESS: _addresses}),
        Resource("Endpoints", "", "v1", "endpoints", kube.decode_endpoints),
        Resource(
            "EndpointSlice",
            "discovery.k8s.io",
            "v1",
            "endpointslices",
            kube.decode_endpoint_slice,
            indexes={SLICES_BY_SERVICE: _slice_service},
        ),
        Resource("Pod", "", "v1", "pods", kube.decode_pod, indexes={BY_ADDRESS: _addresses}),
        Resource("Secret", "", "v1", "secrets", kube.decode_secret),
        Resource("ConfigMap", "", "v1", "configmaps", kube.decode_config_map),
        Resource(
            "IngressClass",
            "networking.k8s.io",
            "v1",
            "ingressclasses",
            kube.decode_ingress_class,
            namespaced=False,
            indexes={DEFAULT_CLASS: _default_class},
        ),
        Resource(
            "ReferenceGrant",
            "gateway.networking.k8s.io",
            "v1beta1",
            "referencegrants",
            kube.decode_reference_grant,
            other_versions=("v1",),
            optional=True,
            indexes={GRANTS_BY_NAMESPACES: _grant_namespaces},
        ),
        Resource(
            "Ingress",
            "networking.k8s.io",
            "v1",
            "ingresses",
            partial(kube.decode_custom, kind="Ingress"),
            indexes={**_MATCHERS, **_TLS_HOSTS, **_CLAIMS},
            ranked=frozenset({**_MATCHERS, **_TLS_HOSTS, **_CLAIMS}),
        ),
        _ranked("ApisixRoute", "apisixroutes", {**_MATCHERS, **_CLAIMS}),
        _custom("ApisixUpstream", "apisixupstreams"),
        _custom("ApisixPluginConfig", "apisixpluginconfigs"),
        _ranked("ApisixTls", "apisixtlses", {**_TLS_HOSTS, **_CLAIMS}),
        _custom("ApisixConsumer", "apisixconsumers"),
        _custom("ApisixGlobalRule", "apisixglobalrules", indexes={PLUGIN_INDEX: _enabled_plugins}),
        _custom("ApisixClusterConfig", "apisixclusterconfigs", namespaced=False),
    )
}
"""Kind → resource, in the order in which reflectors start."""
