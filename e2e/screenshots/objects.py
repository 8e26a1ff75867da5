"""The objects on the pictures: a small company's routes, some of which are wrong, as users write them."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

Object = dict[str, Any]

APISIX = "apisix.apache.org/v2"
GATEWAY = "gateway.networking.k8s.io/v1"
BACKENDS = {
    "shop": ("storefront", "cart", "checkout", "search"),
    "payments": ("payments", "ledger"),
    "content": ("blog", "docs", "media"),
    "platform": ("auth", "grafana"),
}
"""Namespace → its Services."""


def healthy() -> Iterator[Object]:
    """Yield objects without problems."""
    yield _object("", "networking.k8s.io/v1", "IngressClass", "apisix", {"controller": "apisix.apache.org/ingress"})
    number = 0
    for namespace, names in BACKENDS.items():
        for name in names:
            number += 1
            yield from _backend(namespace, name, number)
    yield from _certificate("shop", "shop-tls", ("shop.example.org", "www.example.org"), days=61)
    yield from _certificate("payments", "api-tls", ("api.example.org",), days=33)
    yield from _certificate("content", "wildcard", ("*.content.example.org",), days=212, issuer="Example Corp CA 2")
    yield from _shop()
    yield from _payments()
    yield from _content()
    yield from _platform()


def broken() -> Iterator[Object]:
    """Yield objects with several kinds of mistakes."""
    yield from _backend("shop", "returns", 40, ready=False)
    yield _route("shop", "returns", ("shop.example.org",), ("/returns/*",), "returns")
    yield _route("shop", "wishlist", ("shop.example.org",), ("/wishlist/*",), "wishlist")
    limited = {"name": "limit-cuont", "enable": True, "config": {"count": 60, "time_window": 60}}
    yield _route("payments", "refunds", ("api.example.org",), ("/v1/refunds*",), "payments", plugins=[limited])
    yield _ingress("content", "press", "press.content.example.org", "/", "blog", {"enable-corss": "true"})
    yield _route("platform", "shop-copy", ("shop.example.org",), ("/cart/*",), "grafana", created="2026-11-20")
    yield from _certificate("platform", "grafana-tls", ("grafana.example.org",), days=6)


def many(count: int) -> Iterator[Object]:
    """Yield routes for that many hosts, all to the same few Services."""
    for number in range(count):
        name = f"tenant-{number:04}"
        yield _route("shop", name, (f"{name}.example.net",), ("/*",), BACKENDS["shop"][number % 4])


def _shop() -> Iterator[Object]:
    host = ("shop.example.org",)
    yield _route("shop", "storefront", (*host, "www.example.org"), ("/*",), "storefront")
    cors = {"name": "cors", "enable": True, "config": {"allow_origins": "https://www.example.org"}}
    yield _route("shop", "cart", host, ("/cart/*",), "cart", plugins=[cors])
    yield _route("shop", "checkout", host, ("/checkout", "/checkout/*"), "checkout")
    limited = {"name": "limit-req", "enable": True, "config": {"rate": 20, "burst": 10, "key": "remote_addr"}}
    yield _route("shop", "search", host, ("/search",), "search", plugins=[limited])


def _payments() -> Iterator[Object]:
    for name in ("payments", "ledger"):
        path = f"/v1/{name}*"
        spec = _rule("payments", ("api.example.org",), (path,), name) | {
            "authentication": {"enable": True, "type": "keyAuth"}
        }
        yield _object("payments", APISIX, "ApisixRoute", name, {"http": [spec]})
    for number, name in enumerate(("mobile-app", "partner", "back-office")):
        parameter = {"keyAuth": {"value": {"key": f"not-a-secret-{number}"}}}
        yield _object("payments", APISIX, "ApisixConsumer", name, {"authParameter": parameter})


def _content() -> Iterator[Object]:
    for name in ("blog", "docs"):
        yield _ingress("content", name, f"{name}.content.example.org", "/", name, {})
    redirect = {"http-to-https": "true", "enable-cors": "true"}
    yield _ingress("content", "media", "media.content.example.org", "/files", "media", redirect)


def _platform() -> Iterator[Object]:
    controller = "apisix.apache.org/apisix-ingress-controller"
    yield _object("", GATEWAY, "GatewayClass", "apisix", {"controllerName": controller})
    listeners = [{"name": "http", "port": 80, "protocol": "HTTP", "allowedRoutes": {"namespaces": {"from": "All"}}}]
    spec = {"gatewayClassName": "apisix", "listeners": listeners}
    yield _object("platform", GATEWAY, "Gateway", "public", spec)
    for name in ("auth", "grafana"):
        backend = {"backendRefs": [{"name": name, "port": 80}]}
        spec = {"parentRefs": [{"name": "public"}], "hostnames": [f"{name}.example.org"], "rules": [backend]}
        yield _object("platform", GATEWAY, "HTTPRoute", name, spec)


def _object(namespace: str, version: str, kind: str, name: str, spec: Mapping[str, Any], created: str = "") -> Object:
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    meta["creationTimestamp"] = f"{created or '2026-03-02'}T10:00:00Z"
    return {"apiVersion": version, "kind": kind, "metadata": meta, "spec": dict(spec)}


def _rule(name: str, hosts: Iterable[str], paths: Iterable[str], service: str) -> Object:
    backends = [{"serviceName": service, "servicePort": 80}]
    return {"name": name, "match": {"hosts": list(hosts), "paths": list(paths)}, "backends": backends}


def _route(
    namespace: str,
    name: str,
    hosts: Iterable[str],
    paths: Iterable[str],
    service: str,
    *,
    plugins: Iterable[Object] = (),
    created: str = "",
) -> Object:
    rule = _rule(name, hosts, paths, service) | ({"plugins": list(plugins)} if plugins else {})
    return _object(namespace, APISIX, "ApisixRoute", name, {"http": [rule]}, created)


def _ingress(namespace: str, name: str, host: str, path: str, service: str, annotations: Mapping[str, str]) -> Object:
    backend = {"service": {"name": service, "port": {"number": 80}}}
    paths = [{"path": path, "pathType": "Prefix", "backend": backend}]
    spec = {"ingressClassName": "apisix", "rules": [{"host": host, "http": {"paths": paths}}]}
    found = _object(namespace, "networking.k8s.io/v1", "Ingress", name, spec)
    found["metadata"]["annotations"] = {f"k8s.apisix.apache.org/{key}": text for key, text in annotations.items()}
    return found


def _backend(namespace: str, name: str, number: int, *, ready: bool = True) -> Iterator[Object]:
    ports = [{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}]
    yield _object(namespace, "v1", "Service", name, {"clusterIP": f"10.96.0.{number}", "ports": ports})
    endpoints = [
        {
            "addresses": [f"10.244.{number}.{pod}"],
            "conditions": {"ready": ready},
            "targetRef": {"kind": "Pod", "namespace": namespace, "name": f"{name}-7d9c6b{number:x}-{pod}"},
        }
        for pod in (11, 12)
    ]
    yield {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": f"{name}-x7k2p",
            "namespace": namespace,
            "labels": {"kubernetes.io/service-name": name},
        },
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
    }


def _certificate(
    namespace: str, name: str, hosts: tuple[str, ...], *, days: int, issuer: str = "Example Issuing CA R3"
) -> Iterator[Object]:
    certificate, key = _pair(hosts, days, issuer)
    data = {"tls.crt": base64.b64encode(certificate).decode(), "tls.key": base64.b64encode(key).decode()}
    meta = {"name": name, "namespace": namespace}
    yield {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": "kubernetes.io/tls", "data": data}
    spec = {"hosts": list(hosts), "secret": {"name": name, "namespace": namespace}}
    yield _object(namespace, APISIX, "ApisixTls", name, spec)


def _pair(hosts: tuple[str, ...], days: int, issuer: str) -> tuple[bytes, bytes]:
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(tz=UTC)
    subject, by = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)]) for text in (hosts[0], issuer))
    names = x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts])
    begins, ends = now - timedelta(days=20), now + timedelta(days=days, minutes=30)
    builder = x509.CertificateBuilder(by, subject, key.public_key(), x509.random_serial_number(), begins, ends)
    certificate = builder.add_extension(names, critical=False).sign(key, hashes.SHA256())
    written = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return certificate.public_bytes(Encoding.PEM), written
