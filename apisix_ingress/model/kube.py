"""Trimmed, frozen Kubernetes objects: what translations read of them, and the decoders from raw JSON.

A change of a field that is not kept here is no change: the store stays silent. `resource_version` and `status` are
kept for writers and never compared. A decoder raises `ValueError`, `TypeError` or `KeyError` for an object that
cannot be what it claims to be; the reflector reports it and goes on.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.model.keys import ObjectKey

_EMPTY: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Meta:
    """The metadata that decisions are made from."""

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


class KubeObject(Protocol):
    """What a store needs of an object."""

    @property
    def meta(self) -> Meta:
        """Metadata with the key."""


@dataclass(frozen=True, slots=True)
class CustomObject:
    """An object whose spec stays raw JSON until it is translated: custom resources and Ingress."""

    meta: Meta
    spec: FrozenJson
    status: FrozenJson = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ServicePort:
    """A port of a Service."""

    port: int
    name: str = ""
    protocol: str = "TCP"
    app_protocol: str = ""


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
    """A Pod: its labels choose subsets."""

    meta: Meta


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
    """A Namespace: its labels decide whether it is watched."""

    meta: Meta


@dataclass(frozen=True, slots=True)
class IngressClass:
    """An IngressClass."""

    meta: Meta
    controller: str = ""
    is_default: bool = False


def decode_meta(raw: JsonObject, kind: str, *, labels: bool = False, annotations: bool = False) -> Meta:
    """Return the trimmed metadata; labels and annotations only for kinds whose translations read them."""
    meta = raw["metadata"]
    return Meta(
        kind=kind,
        namespace=meta.get("namespace") or "",
        name=meta["name"],
        uid=meta.get("uid") or "",
        generation=meta.get("generation") or 0,
        created=meta.get("creationTimestamp") or "",
        labels=(meta.get("labels") or _EMPTY) if labels else _EMPTY,
        annotations=(meta.get("annotations") or _EMPTY) if annotations else _EMPTY,
        resource_version=meta.get("resourceVersion") or "",
    )


def decode_custom(raw: JsonObject, kind: str) -> CustomObject:
    """Decode a custom resource or an Ingress; its spec is checked by its translation."""
    spec, status = raw.get("spec"), raw.get("status")
    return CustomObject(
        meta=decode_meta(raw, kind, labels=True, annotations=True),
        spec=spec if isinstance(spec, dict) else {},
        status=status if isinstance(status, dict) else {},
    )


def decode_service(raw: JsonObject) -> Service:
    """Decode a Service."""
    spec = raw.get("spec") or {}
    balancer = ((raw.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    return Service(
        meta=decode_meta(raw, "Service"),
        type=spec.get("type") or "ClusterIP",
        cluster_ip=spec.get("clusterIP") or "",
        external_name=spec.get("externalName") or "",
        external_ips=tuple(spec.get("externalIPs") or ()),
        ip_families=tuple(spec.get("ipFamilies") or ()),
        publish_not_ready=bool(spec.get("publishNotReadyAddresses")),
        ports=tuple(
            ServicePort(
                port=int(port["port"]),
                name=port.get("name") or "",
                protocol=port.get("protocol") or "TCP",
                app_protocol=port.get("appProtocol") or "",
            )
            for port in spec.get("ports") or ()
        ),
        load_balancer=tuple((item.get("ip") or "", item.get("hostname") or "") for item in balancer),
    )


def decode_endpoints(raw: JsonObject) -> Endpoints:
    """Decode an Endpoints object, not-ready addresses included."""
    return Endpoints(
        meta=decode_meta(raw, "Endpoints"),
        subsets=tuple(
            EndpointSubset(
                endpoints=(
                    *_addresses(subset.get("addresses") or (), ready=True),
                    *_addresses(subset.get("notReadyAddresses") or (), ready=False),
                ),
                ports=_endpoint_ports(subset.get("ports") or ()),
            )
            for subset in raw.get("subsets") or ()
        ),
    )


def _addresses(addresses: Iterable[JsonObject], *, ready: bool) -> Iterable[Endpoint]:
    for address in addresses:
        yield Endpoint((address["ip"],), pod=_pod_name(address), ready=ready, serving=ready)


def _pod_name(address: JsonObject) -> str:
    target = address.get("targetRef") or {}
    return target.get("name") or "" if target.get("kind") == "Pod" else ""


def _endpoint_ports(ports: Iterable[JsonObject]) -> tuple[EndpointPort, ...]:
    return tuple(
        EndpointPort(int(port["port"]), name=port.get("name") or "", protocol=port.get("protocol") or "TCP")
        for port in ports
        if port.get("port") is not None
    )


def decode_endpoint_slice(raw: JsonObject) -> EndpointSlice:
    """Decode an EndpointSlice. A missing `ready` means ready, a missing `serving` means as ready (API reference)."""
    meta = raw["metadata"]
    return EndpointSlice(
        meta=decode_meta(raw, "EndpointSlice"),
        service=(meta.get("labels") or {}).get("kubernetes.io/service-name") or "",
        address_type=raw.get("addressType") or "",
        endpoints=tuple(_slice_endpoint(endpoint) for endpoint in raw.get("endpoints") or ()),
        ports=_endpoint_ports(raw.get("ports") or ()),
    )


def _slice_endpoint(endpoint: JsonObject) -> Endpoint:
    conditions = endpoint.get("conditions") or {}
    ready = conditions.get("ready") is not False
    serving = conditions.get("serving")
    return Endpoint(
        tuple(endpoint.get("addresses") or ()),
        pod=_pod_name(endpoint),
        ready=ready,
        serving=ready if serving is None else bool(serving),
        terminating=bool(conditions.get("terminating")),
    )


def decode_pod(raw: JsonObject) -> Pod:
    """Decode a Pod."""
    return Pod(decode_meta(raw, "Pod", labels=True))


def decode_secret(raw: JsonObject) -> Secret:
    """Decode a Secret; `stringData` counts in files as it would once applied."""
    meta = decode_meta(raw, "Secret")
    try:
        data = {key: base64.b64decode(value or "", validate=True) for key, value in (raw.get("data") or {}).items()}
    except binascii.Error as error:
        raise ValueError("data holds a value that is not base64") from error
    data.update({key: str(value).encode() for key, value in (raw.get("stringData") or {}).items()})
    return Secret(meta, type=raw.get("type") or "Opaque", data=data)


def decode_config_map(raw: JsonObject) -> ConfigMap:
    """Decode a ConfigMap; binary data is not read."""
    return ConfigMap(decode_meta(raw, "ConfigMap"), data=raw.get("data") or {})


def decode_namespace(raw: JsonObject) -> Namespace:
    """Decode a Namespace."""
    return Namespace(decode_meta(raw, "Namespace", labels=True))


def decode_ingress_class(raw: JsonObject) -> IngressClass:
    """Decode an IngressClass."""
    annotations = raw["metadata"].get("annotations") or {}
    return IngressClass(
        decode_meta(raw, "IngressClass"),
        controller=(raw.get("spec") or {}).get("controller") or "",
        is_default=annotations.get("ingressclass.kubernetes.io/is-default-class") == "true",
    )
