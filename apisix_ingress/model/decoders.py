"""Decodes Kubernetes objects from raw JSON into `objects`.

A decoder raises `ValueError`, `TypeError` or `KeyError` for an object that is invalid; the reflector reports it and
continues.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import (
    ASSIGNED_HOSTS,
    ConfigMap,
    CustomObject,
    Endpoint,
    EndpointPort,
    Endpoints,
    EndpointSlice,
    EndpointSubset,
    IngressClass,
    Meta,
    Namespace,
    Pod,
    ReferenceGrant,
    Secret,
    Service,
    ServicePort,
)

_EMPTY: Mapping[str, str] = {}


def decode_meta(raw: JsonObject, kind: str, *, labels: bool = False, annotations: bool = False) -> Meta:
    """Return the trimmed metadata; labels and annotations only for kinds whose translations read them."""
    meta = _mapping(raw, "metadata")
    if not (name := _text(meta, "name", "metadata.")):
        raise ValueError("metadata.name is missing")
    generation = meta.get("generation") or 0
    if not isinstance(generation, int):
        raise TypeError("metadata.generation must be a number")
    return Meta(
        kind=kind,
        namespace=_text(meta, "namespace", "metadata."),
        name=name,
        uid=_text(meta, "uid", "metadata."),
        generation=generation,
        created=_text(meta, "creationTimestamp", "metadata."),
        labels=_strings(meta, "labels") if labels else _EMPTY,
        annotations=_strings(meta, "annotations") if annotations else _EMPTY,
        resource_version=_text(meta, "resourceVersion", "metadata."),
    )


def _mapping(parent: JsonObject, name: str) -> JsonObject:
    value = parent.get(name)
    if value is None:
        return {}
    if isinstance(value, dict):
        return value
    raise TypeError(f"{name} must be a mapping")


def _strings(parent: JsonObject, name: str) -> Mapping[str, str]:
    values = _mapping(parent, name)
    for key, value in values.items():
        if not isinstance(value, str):
            raise TypeError(f"{name}[{key}] must be a string: put its value in quotes")
    return values


def _list(parent: JsonObject, name: str, item: type = dict) -> Sequence[Any]:
    value = parent.get(name)
    if value is None:
        return ()
    # A loop: a generator would double the cost for these few items.
    for each in (items := value if isinstance(value, list) else [None]):
        if not isinstance(each, item):
            raise TypeError(f"{name} must be a list of {'mappings' if item is dict else 'strings'}")
    return items


def _text(parent: JsonObject, name: str, where: str = "") -> str:
    value = parent.get(name)
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    raise TypeError(f"{where}{name} must be a string")


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
    spec = _mapping(raw, "spec")
    balancer = _list(_mapping(_mapping(raw, "status"), "loadBalancer"), "ingress")
    return Service(
        meta=decode_meta(raw, "Service"),
        type=_text(spec, "type") or "ClusterIP",
        cluster_ip=_text(spec, "clusterIP"),
        cluster_ips=tuple(_list(spec, "clusterIPs", str)),
        external_name=_text(spec, "externalName"),
        external_ips=tuple(_list(spec, "externalIPs", str)),
        ip_families=tuple(_list(spec, "ipFamilies", str)),
        publish_not_ready=bool(spec.get("publishNotReadyAddresses")),
        ports=tuple(
            ServicePort(
                port=int(port["port"]),
                name=_text(port, "name"),
                protocol=_text(port, "protocol") or "TCP",
                app_protocol=_text(port, "appProtocol"),
                target=port["targetPort"] if isinstance(port.get("targetPort"), int | str) else 0,
            )
            for port in _list(spec, "ports")
        ),
        load_balancer=tuple((_text(item, "ip"), _text(item, "hostname")) for item in balancer),
    )


def decode_endpoints(raw: JsonObject) -> Endpoints:
    """Decode an Endpoints object, not-ready addresses included."""
    return Endpoints(
        meta=decode_meta(raw, "Endpoints"),
        subsets=tuple(
            EndpointSubset(
                endpoints=(
                    *_addresses(_list(subset, "addresses"), ready=True),
                    *_addresses(_list(subset, "notReadyAddresses"), ready=False),
                ),
                ports=_endpoint_ports(_list(subset, "ports")),
            )
            for subset in _list(raw, "subsets")
        ),
    )


def _addresses(addresses: Iterable[JsonObject], *, ready: bool) -> Iterable[Endpoint]:
    for address in addresses:
        yield Endpoint((address["ip"],), pod=_pod_name(address), ready=ready, serving=ready)


def _pod_name(address: JsonObject) -> str:
    target = _mapping(address, "targetRef")
    return _text(target, "name") if target.get("kind") == "Pod" else ""


def _endpoint_ports(ports: Iterable[JsonObject]) -> tuple[EndpointPort, ...]:
    return tuple(
        EndpointPort(int(port["port"]), name=_text(port, "name"), protocol=_text(port, "protocol") or "TCP")
        for port in ports
        if port.get("port") is not None
    )


def decode_endpoint_slice(raw: JsonObject) -> EndpointSlice:
    """Decode an EndpointSlice. A missing `ready` means ready, a missing `serving` means as ready (API reference)."""
    return EndpointSlice(
        meta=decode_meta(raw, "EndpointSlice"),
        service=_strings(_mapping(raw, "metadata"), "labels").get("kubernetes.io/service-name", ""),
        address_type=_text(raw, "addressType"),
        endpoints=tuple(_slice_endpoint(endpoint) for endpoint in _list(raw, "endpoints")),
        ports=_endpoint_ports(_list(raw, "ports")),
    )


def _slice_endpoint(endpoint: JsonObject) -> Endpoint:
    conditions = _mapping(endpoint, "conditions")
    ready = conditions.get("ready") is not False
    serving = conditions.get("serving")
    return Endpoint(
        tuple(_list(endpoint, "addresses", str)),
        pod=_pod_name(endpoint),
        ready=ready,
        serving=ready if serving is None else bool(serving),
        terminating=bool(conditions.get("terminating")),
    )


def decode_pod(raw: JsonObject) -> Pod:
    """Decode a Pod. Addresses of a terminated Pod are dropped: other Pods may have them by now."""
    status = _mapping(raw, "status")
    if _text(status, "phase") in ("Succeeded", "Failed"):
        return Pod(decode_meta(raw, "Pod", labels=True))
    addresses = [_text(item, "ip") for item in _list(status, "podIPs")] or [_text(status, "podIP")]
    return Pod(decode_meta(raw, "Pod", labels=True), tuple(address for address in addresses if address))


def decode_secret(raw: JsonObject) -> Secret:
    """Decode a Secret; `stringData` in files is merged as the API server would."""
    meta = decode_meta(raw, "Secret")
    try:
        data = {key: base64.b64decode(value or "", validate=True) for key, value in _mapping(raw, "data").items()}
    except binascii.Error as error:
        raise ValueError("data holds a value that is not base64") from error
    data.update({key: str(value).encode() for key, value in _mapping(raw, "stringData").items()})
    return Secret(meta, type=_text(raw, "type") or "Opaque", data=data)


def decode_config_map(raw: JsonObject) -> ConfigMap:
    """Decode a ConfigMap; binary data is not read."""
    return ConfigMap(decode_meta(raw, "ConfigMap"), data=_strings(raw, "data"))


def decode_namespace(raw: JsonObject) -> Namespace:
    """Decode a Namespace."""
    meta = decode_meta(raw, "Namespace", labels=True, annotations=True)
    # Other annotations change often, and each change would queue every object of the namespace.
    assigned = meta.annotations.get(ASSIGNED_HOSTS)
    return Namespace(replace(meta, annotations={ASSIGNED_HOSTS: assigned} if assigned else _EMPTY))


def decode_reference_grant(raw: JsonObject) -> ReferenceGrant:
    """Decode a ReferenceGrant."""
    spec = _mapping(raw, "spec")
    return ReferenceGrant(
        decode_meta(raw, "ReferenceGrant"),
        sources=tuple(
            (_text(item, "group"), _text(item, "kind"), _text(item, "namespace")) for item in _list(spec, "from")
        ),
        targets=tuple((_text(item, "group"), _text(item, "kind"), _text(item, "name")) for item in _list(spec, "to")),
    )


def decode_ingress_class(raw: JsonObject) -> IngressClass:
    """Decode an IngressClass."""
    annotations = _strings(_mapping(raw, "metadata"), "annotations")
    return IngressClass(
        decode_meta(raw, "IngressClass"),
        controller=_text(_mapping(raw, "spec"), "controller"),
        is_default=annotations.get("ingressclass.kubernetes.io/is-default-class") == "true",
        proxy=_proxy_of_class(_mapping(_mapping(raw, "spec"), "parameters"), annotations),
    )


_APISIX = "apisix.apache.org"


def _proxy_of_class(parameters: JsonObject, annotations: Mapping[str, str]) -> ObjectKey | None:
    """Return the GatewayProxy in the parameters of an IngressClass; its namespace is chosen as 2.x does."""
    if (_text(parameters, "apiGroup"), _text(parameters, "kind")) != (_APISIX, "GatewayProxy"):
        return None
    namespace = annotations.get(f"{_APISIX}/parameters-namespace") or _text(parameters, "namespace")
    return ObjectKey("GatewayProxy", namespace or "default", _text(parameters, "name"))
