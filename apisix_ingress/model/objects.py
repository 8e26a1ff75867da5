"""Trimmed, frozen Kubernetes objects: the fields that translations read. `decoders` creates them from raw JSON.

A change of a field that is not kept here is ignored: the store reports no change. `resource_version` and `status`
are kept for writers and never compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from apisix_ingress.model.json import FrozenJson
from apisix_ingress.model.keys import ObjectKey

Age: TypeAlias = tuple[str, str, str, str]
"""creationTimestamp, namespace, name, kind: a total order that does not depend on the order of events."""

ASSIGNED_HOSTS = "apisix.apache.org/hosts"
"""Annotation of a Namespace: the hosts that belong to it, separated by commas."""

_YET_TO_COME = "~"
"""Larger than every timestamp."""
_UNTOLD = "which is older is not known"


def why_first(winner: Age, other: Age) -> str:
    """Return why one object wins over another: by age, or if ages are equal or unknown (manifests), by name."""
    if winner[0] != other[0]:
        return "is older"
    return f"comes first by namespace and name ({'neither is older' if winner[0] != _YET_TO_COME else _UNTOLD})"


@dataclass(frozen=True, slots=True)
class Meta:
    """The metadata that the controller uses."""

    kind: str
    namespace: str
    name: str
    uid: str = ""
    generation: int = 0
    created: str = ""
    """creationTimestamp, RFC 3339 in UTC: sorts as text."""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    resource_version: str = field(default="", compare=False)

    @property
    def key(self) -> ObjectKey:
        """The reconcile key."""
        return ObjectKey(self.kind, self.namespace, self.name)

    @property
    def age(self) -> Age:
        """Sort key, the oldest first; an object that is not created yet is the youngest."""
        return (self.created or _YET_TO_COME, self.namespace, self.name, self.kind)


class KubeObject(Protocol):
    """The interface that a store needs."""

    @property
    def meta(self) -> Meta:
        """Metadata with the key."""


UNREAD = "(not read)"
"""The field that replaces a spec that cannot be read; its value is the reason."""


@dataclass(frozen=True, slots=True)
class Unread:
    """Marks an object whose current spec cannot be read.

    Attributes:
        reason: Why it cannot be read.
        generation: The last readable generation, which `spec` is from; 0 if there is no such generation.
    """

    reason: str
    generation: int


@dataclass(frozen=True, slots=True)
class CustomObject:
    """An object whose spec stays raw JSON until it is translated: custom resources and Ingress."""

    meta: Meta
    spec: FrozenJson
    status: FrozenJson = field(default_factory=dict, compare=False, repr=False)
    unread: Unread | None = None


@dataclass(frozen=True, slots=True)
class ServicePort:
    """A port of a Service."""

    port: int
    name: str = ""
    protocol: str = "TCP"
    app_protocol: str = ""
    target: int | str = 0
    """The port of Pods, by number or name; 0: the same as `port`."""


@dataclass(frozen=True, slots=True)
class Service:
    """A Service."""

    meta: Meta
    type: str = "ClusterIP"
    cluster_ip: str = ""
    external_name: str = ""
    external_ips: tuple[str, ...] = ()
    ip_families: tuple[str, ...] = ()
    publish_not_ready: bool = False
    ports: tuple[ServicePort, ...] = ()
    load_balancer: tuple[tuple[str, str], ...] = ()
    """status.loadBalancer.ingress as (ip, hostname) pairs."""
    cluster_ips: tuple[str, ...] = ()
    """Every cluster address, of each family; `cluster_ip` is the first one."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses that only this Service has. Not `external_ips`, where any user may write any address."""
        every = (*(self.cluster_ips or (self.cluster_ip,)), *(ip for ip, _ in self.load_balancer))
        return tuple(dict.fromkeys(ip for ip in every if ip not in ("", "None")))

    @property
    def headless(self) -> bool:
        """Whether the Service has no cluster address."""
        return self.cluster_ip in ("", "None")


@dataclass(frozen=True, slots=True)
class EndpointPort:
    """A port of an Endpoints subset or an EndpointSlice; its name pairs it with the Service port."""

    port: int
    name: str = ""
    protocol: str = "TCP"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One backend with its addresses. `pod` is the Pod's name in the namespace of the Service, or empty."""

    addresses: tuple[str, ...]
    pod: str = ""
    ready: bool = True
    serving: bool = True
    terminating: bool = False


@dataclass(frozen=True, slots=True)
class EndpointSubset:
    """A subset of an Endpoints object: every address serves every port."""

    endpoints: tuple[Endpoint, ...]
    ports: tuple[EndpointPort, ...]


@dataclass(frozen=True, slots=True)
class Endpoints:
    """An Endpoints object; its name is the Service's."""

    meta: Meta
    subsets: tuple[EndpointSubset, ...] = ()


@dataclass(frozen=True, slots=True)
class EndpointSlice:
    """An EndpointSlice. `service` is the label `kubernetes.io/service-name`."""

    meta: Meta
    service: str
    address_type: str
    endpoints: tuple[Endpoint, ...]
    ports: tuple[EndpointPort, ...]


@dataclass(frozen=True, slots=True)
class Pod:
    """A Pod: its labels select subsets. Its addresses identify it for endpoints without a Pod name."""

    meta: Meta
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Secret:
    """A Secret with decoded values, which never appear in a repr."""

    meta: Meta
    type: str = "Opaque"
    data: Mapping[str, bytes] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class ConfigMap:
    """A ConfigMap."""

    meta: Meta
    data: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Namespace:
    """A Namespace: its labels decide whether it is watched, and one annotation which hosts belong to it."""

    meta: Meta


@dataclass(frozen=True, slots=True)
class ReferenceGrant:
    """A ReferenceGrant: which objects of its namespace other namespaces may refer to."""

    meta: Meta
    sources: tuple[tuple[str, str, str], ...] = ()
    """spec.from as (group, kind, namespace)."""
    targets: tuple[tuple[str, str, str], ...] = ()
    """spec.to as (group, kind, name); the name is empty for every object of the kind."""


@dataclass(frozen=True, slots=True)
class IngressClass:
    """An IngressClass."""

    meta: Meta
    controller: str = ""
    is_default: bool = False
    proxy: ObjectKey | None = None
    """The GatewayProxy in its parameters."""
