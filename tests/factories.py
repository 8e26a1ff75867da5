"""Small factories of values for tests. Each call returns a new value; no fakes and no fixtures here."""

from collections.abc import Iterable, Mapping
from typing import Any

from apisix_ingress.model.keys import ObjectKey, RecordKey, RecordKind
from apisix_ingress.model.names import short_id
from apisix_ingress.model.objects import (
    CustomObject,
    Endpoint,
    EndpointPort,
    EndpointSlice,
    IngressClass,
    Meta,
    Namespace,
    Pod,
    Secret,
    Service,
    ServicePort,
)
from apisix_ingress.model.records import Record
from apisix_ingress.state.claims import Claimant, UpstreamClaim

CREATED = "2026-01-01T00:00:00Z"

COLLIDING = ("default_web_aa27ngri", "default_web_rule", "default_web_xbuywtyh", "default_web_zabob3a1")
"""Names with the same CRC-32 (849e9177), in lexical order."""


def make_key(name: str = "web", *, kind: str = "ApisixRoute", namespace: str = "default") -> ObjectKey:
    return ObjectKey(kind, namespace, name)


def make_meta(kind: str, name: str, *, namespace: str = "default", **fields: Any) -> Meta:
    """Return metadata; `fields` are those of `Meta`."""
    return Meta(kind, namespace, name, **{"created": CREATED, "generation": 1, **fields})


def make_service(
    name: str = "web", *, namespace: str = "default", ports: Iterable[ServicePort] = (ServicePort(80),), **fields: Any
) -> Service:
    """Return a Service; `fields` are those of `Service`."""
    return Service(make_meta("Service", name, namespace=namespace), ports=tuple(ports), **fields)


def make_endpoint(*addresses: str, **fields: Any) -> Endpoint:
    """Return a backend; `fields` are those of `Endpoint`."""
    return Endpoint(addresses or ("10.0.0.1",), **fields)


def make_slice(
    name: str = "web-1",
    *,
    service: str = "web",
    namespace: str = "default",
    endpoints: Iterable[Endpoint] = (Endpoint(("10.0.0.1",)),),
    ports: Iterable[EndpointPort] = (EndpointPort(8080),),
    address_type: str = "IPv4",
) -> EndpointSlice:
    meta = make_meta("EndpointSlice", name, namespace=namespace)
    return EndpointSlice(meta, service, address_type, tuple(endpoints), tuple(ports))


def make_pod(name: str = "web-0", *, namespace: str = "default", labels: Mapping[str, str] | None = None) -> Pod:
    return Pod(make_meta("Pod", name, namespace=namespace, labels=labels or {}))


def make_secret(
    name: str = "cert", *, namespace: str = "default", data: Mapping[str, bytes] | None = None, **fields: Any
) -> Secret:
    """Return a Secret; `fields` are those of `Meta`."""
    return Secret(make_meta("Secret", name, namespace=namespace, **fields), data=data or {})


def make_namespace(name: str = "default", *, labels: Mapping[str, str] | None = None) -> Namespace:
    return Namespace(make_meta("Namespace", name, namespace="", labels=labels or {}))


def make_ingress_class(name: str = "apisix", *, controller: str = "", is_default: bool = False) -> IngressClass:
    return IngressClass(make_meta("IngressClass", name, namespace=""), controller, is_default)


def make_custom(
    name: str = "web",
    *,
    kind: str = "ApisixRoute",
    namespace: str = "default",
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **fields: Any,
) -> CustomObject:
    """Return a custom resource or an Ingress; `fields` are those of `Meta`."""
    return CustomObject(make_meta(kind, name, namespace=namespace, **fields), spec or {}, status or {})


def make_record(
    name: str = "default_web_rule",
    *,
    kind: RecordKind = "routes",
    id: str | None = None,
    body: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Record:
    """Return a record with the short id of its name by default; `fields` are those of `Record`."""
    key = RecordKey(kind, short_id(name) if id is None else id)
    return Record(key, name, {"id": key.id, "name": name, **(body or {})}, **fields)


def make_claimant(name: str = "web", *, created: str = CREATED, kind: str = "ApisixRoute") -> Claimant:
    return Claimant(created, make_key(name, kind=kind))


def make_claim(service: str = "web", *, port: int = 80, **fields: Any) -> UpstreamClaim:
    """Return a claim on a Service; `fields` are those of `UpstreamClaim`."""
    return UpstreamClaim(make_key(service, kind="Service"), port, **fields)
