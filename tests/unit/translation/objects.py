"""Small factories of raw objects, and the view that a translation has of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.claims import Claimant, UpstreamClaim
from apisix_ingress.state.holds import Hold
from apisix_ingress.state.world import World
from translation.core.options import Options
from translation.core.outcome import KeepLast, Outcome, Published, records_of

OPTIONS = Options()


def make(
    kind: str,
    name: str = "web",
    *,
    namespace: str = "default",
    spec: Mapping[str, Any] | None = None,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    **fields: Any,
) -> JsonObject:
    meta = {"name": name, "namespace": namespace, "annotations": annotations or {}, "labels": labels or {}}
    return {"kind": kind, "metadata": meta, **({"spec": spec} if spec is not None else {}), **fields}


def service(name: str = "web", *, ports: Sequence[JsonObject] = ({"port": 80},), **spec: Any) -> JsonObject:
    namespace = spec.pop("namespace", "default")
    return make("Service", name, namespace=namespace, spec={"clusterIP": "10.0.0.1", "ports": list(ports), **spec})


def slice_of(
    endpoints: Iterable[JsonObject | str], *, name: str = "web-1", port: int = 8080, port_name: str = "", **fields: Any
) -> JsonObject:
    """Return an EndpointSlice of the Service `web`; a string is a ready address."""
    found = [{"addresses": [item]} if isinstance(item, str) else item for item in endpoints]
    ports = [{"name": port_name, "port": port}]
    labels = {"kubernetes.io/service-name": "web"}
    return make("EndpointSlice", name, labels=labels, **{"addressType": "IPv4", **fields}, endpoints=found, ports=ports)


def upstream(name: str = "web", **spec: Any) -> JsonObject:
    return make("ApisixUpstream", name, spec=spec)


def route(*rules: JsonObject, **spec: Any) -> JsonObject:
    return make("ApisixRoute", "route", spec={**({"http": list(rules)} if rules else {}), **spec})


def rule(name: str = "rule", *, match: Mapping[str, Any] | None = None, **fields: Any) -> JsonObject:
    backends = [{"serviceName": "web", "servicePort": 80}]
    return {"name": name, "match": {"paths": ["/*"], **(match or {})}, "backends": backends, **fields}


def secret(name: str = "secret", *, namespace: str = "default", **data: str) -> JsonObject:
    """Return a Secret; `__` in a keyword becomes a dot in the key."""
    values = {key.replace("__", "."): value for key, value in data.items()}
    return make("Secret", name, namespace=namespace, stringData=values)


def ingress(*rules: JsonObject, annotations: Mapping[str, str] | None = None, **spec: Any) -> JsonObject:
    spec = {"ingressClassName": "apisix", **({"rules": list(rules)} if rules else {}), **spec}
    return make("Ingress", "ing", spec=spec, annotations=annotations)


def ingress_rule(path: str = "/", kind: str = "Prefix", *, host: str = "a.example.com", port: Any = 80) -> JsonObject:
    wanted = {"number": port} if isinstance(port, int) else {"name": port}
    backend = {"service": {"name": "web", "port": wanted}}
    return {"host": host, "http": {"paths": [{"path": path, "pathType": kind, "backend": backend}]}}


def world(*objects: JsonObject) -> World:
    found = World(RESOURCES.values())
    fill(found, objects)
    return found


def fill(found: World, objects: Iterable[JsonObject]) -> None:
    """Put objects into the stores of a world."""
    for raw in objects:
        found.stores[raw["kind"]].set(RESOURCES[raw["kind"]].decode(raw))


def get(found: World, kind: str, name: str, namespace: str = "default") -> CustomObject:
    item = found.stores[kind].get(ObjectKey(kind, namespace, name))
    assert isinstance(item, CustomObject)
    return item


def claim(found: World, owner: str, *claims: UpstreamClaim, created: str = "") -> None:
    found.claims.replace(Claimant(created, ObjectKey("Ingress", "default", owner)), claims)


@dataclass(frozen=True)
class Pem:
    """A self-signed pair as text."""

    certificate: str
    key: str
    locked_key: str


@cache
def pem(serial: int = 1, *, names: tuple[str, ...] = ("a.example.com",), rsa_bits: int = 0) -> Pem:
    key = rsa.generate_private_key(65537, rsa_bits) if rsa_bits else ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([])
    now = datetime(2020, 1, 1, tzinfo=UTC)
    builder = x509.CertificateBuilder(subject, subject, key.public_key(), serial, now, now + timedelta(days=1))
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), False)
    certificate = builder.sign(key, hashes.SHA256())
    form, pkcs8 = Encoding.PEM, PrivateFormat.PKCS8
    return Pem(
        certificate.public_bytes(form).decode(),
        key.private_bytes(form, pkcs8, NoEncryption()).decode(),
        key.private_bytes(form, pkcs8, BestAvailableEncryption(b"x")).decode(),
    )


def reported(outcome: Outcome) -> list[str]:
    """Return the problems in short: severity, code and path."""
    return [f"{item.severity} {item.code} {item.path}".rstrip() for item in outcome.problems]


def protected_by(outcome: Outcome) -> tuple[Hold, ...]:
    """Return the records in gateways that an outcome protects, or would protect if a policy rejected it."""
    return outcome.protected if isinstance(outcome, Published | KeepLast) else ()


def bodies(outcome: Outcome) -> list[JsonObject]:
    """Return the bodies of the records without the fields that every record has."""
    common = ("id", "name", "desc", "labels")
    return [{key: value for key, value in record.body.items() if key not in common} for record in records_of(outcome)]
