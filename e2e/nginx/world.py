"""The cluster of a case: its objects as the API server would store them, and the generated records."""

from __future__ import annotations

import re
import shutil
import ssl
import tempfile
import uuid
import weakref
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from apisix_ingress.diagnostics.collect.offline import settle, stored
from apisix_ingress.model.json import FrozenJson
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.objects import CustomObject
from e2e.nginx.client import tls_context
from e2e.nginx.corpus import Case
from translation.core.options import Options
from translation.nginx.ingress import DIFFERS
from translation.nginx.native.model import Note, Target
from translation.nginx.native.write import native_manifests
from translation.nginx.options import NginxOptions
from translation.nginx.parsing import values_of
from translation.nginx.tables.config_map import Config
from translation.nginx.tables.findings import judged

Json = dict[str, Any]
_PLACEHOLDER = re.compile(r"\$\{(CERT|KEY|CA):([^}]*)\}")
_CLASS: Json = {
    "kind": "IngressClass",
    "metadata": {"name": "nginx"},
    "spec": {"controller": "k8s.io/ingress-nginx"},
}

_GATEWAY_CLASS: tuple[Json, ...] = (
    {
        "kind": "GatewayClass",
        "metadata": {"name": "apisix"},
        "spec": {"controllerName": "apisix.apache.org/apisix-ingress-controller"},
    },
)


class Certificates:
    """Authorities by name, and the certificates that they signed; subjects have only a common name."""

    def __init__(self) -> None:
        self._pairs: dict[str, tuple[x509.Certificate, ec.EllipticCurvePrivateKey]] = {}
        self._folder = tempfile.mkdtemp(prefix="apisix-ingress-certificates-")
        weakref.finalize(self, shutil.rmtree, self._folder)

    def filled(self, text: str) -> str:
        """Return a text with its placeholders filled in."""
        return _PLACEHOLDER.sub(self._fill, text)

    def files(self, spec: str) -> tuple[str, str]:
        """Return the files of a certificate and its key."""
        chain, key = (Path(self._folder, f"{abs(hash(spec))}.{kind}") for kind in ("crt", "key"))
        chain.write_text(self.filled(f"${{CERT:{spec}}}"))
        key.write_text(self.filled(f"${{KEY:{spec}}}"))
        return str(chain), str(key)

    def context(self, spec: str) -> ssl.SSLContext:
        """Return a client's TLS context, with a certificate unless `spec` is empty."""
        return tls_context(self.files(spec) if spec else None)

    def server_context(self, spec: str) -> ssl.SSLContext:
        """Return the TLS context of a server."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.files(spec))
        return context

    def _fill(self, found: re.Match[str]) -> str:
        what, spec = found[1], found[2]
        certificate, key = self._pair(f"@{spec}" if what == "CA" else spec)
        if what == "KEY":
            encoding = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            return key.private_bytes(*encoding).decode()
        return certificate.public_bytes(serialization.Encoding.PEM).decode()

    def _pair(self, spec: str) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
        if spec not in self._pairs:
            self._pairs[spec] = self._made(spec)
        return self._pairs[spec]

    def _made(self, spec: str) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
        hosts, _, authority = spec.partition("@")
        key = ec.generate_private_key(ec.SECP256R1())
        issuer, signer = (_name(authority), self._pair(f"@{authority}")[1]) if hosts else (_name(authority), key)
        names = hosts.split(",") if hosts else []
        builder = (
            x509.CertificateBuilder()
            .subject_name(_name(names[0] if names else authority))
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
            .not_valid_after(datetime(2100, 1, 1, tzinfo=UTC))
            .add_extension(x509.BasicConstraints(ca=not hosts, path_length=None), critical=True)
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(each) for each in names]), False)
        return builder.sign(signer, hashes.SHA256()), key


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text or "none")])


class Cluster:
    """The objects of a case, which steps change.

    Args:
        case: The case.
        certificates: Fill placeholders in Secrets.
        addresses: Backend → address of its pod.
        virtual: `namespace/service` → cluster address.
        target: The kind of manifests that `migrate --write` makes of the Ingresses; None: they are served unchanged.
        lean: Whether `ingress_nginx.fidelity` is `lean`.
    """

    def __init__(
        self,
        case: Case,
        certificates: Certificates,
        addresses: Mapping[str, str],
        virtual: Mapping[str, str],
        target: Target | None = None,
        *,
        lean: bool = False,
    ) -> None:
        self._target = target
        self._lean = lean
        self.notes: tuple[Note, ...] = ()
        self._case = case
        self._certificates = certificates
        self._addresses = addresses
        self._virtual = virtual
        self._age = 0
        self._starting = True
        self._objects: dict[tuple[str, str, str], Json] = {}
        self.services: dict[str, list[str]] = {
            name: list(each) for name, each in case.about.get("services", {}).items()
        }
        self.apply([_CLASS, *case.objects])
        config = case.about.get("config")
        self.apply(
            [{"kind": "ConfigMap", "metadata": {"name": "nginx", "namespace": "ingress-nginx"}, "data": config or {}}]
        )
        self._starting = False

    def apply(self, objects: Iterable[Json]) -> None:
        """Create or update objects."""
        for item in objects:
            meta = dict(item["metadata"])
            key = (item["kind"], meta.get("namespace", ""), meta["name"])
            before = self._objects.get(key)
            if before is None and (self._case.about.get("ordered") or not self._starting):
                self._age += 1
            meta["creationTimestamp"] = (
                before["metadata"]["creationTimestamp"]
                if before
                else f"2026-01-01T00:{self._age // 60:02}:{self._age % 60:02}Z"
            )
            meta.setdefault("uid", str(uuid.uuid5(uuid.NAMESPACE_URL, "/".join(key))))
            self._objects[key] = {**item, "metadata": meta}

    def delete(self, kind: str, name: str) -> None:
        """Delete an object."""
        for key in [key for key in self._objects if key[0] == kind and key[2] == name]:
            del self._objects[key]

    def records(self) -> dict[RecordKey, FrozenJson]:
        """Return the records that the objects generate."""
        objects = [self._decoded(item) for item in (*self._objects.values(), *self._slices())]
        known = [item for item in objects if item is not None]
        if self._target:
            found = settle([*known, *self._native(known, self._target)], Options(gateway_api=True))
        else:
            found = settle(known, self.options)
        self.outcome = found
        return found.bodies()

    def _native(self, objects: list[Any], target: Target) -> list[Any]:
        """Return the manifests that replace the Ingresses."""
        options = self.options
        assert options.nginx is not None
        items = [item for item in objects if isinstance(item, CustomObject) and item.meta.kind == "Ingress"]
        found = native_manifests(items, stored(objects, options).view(), options, options.nginx, target)
        self.notes = found.notes
        written = [*_GATEWAY_CLASS, *(item for each in found.hosts.values() for item in each), *found.shared]
        return [RESOURCES[item["kind"]].decode(item) for item in written]

    def verdicts(self) -> list[str]:
        """Return the differences in the verdict tables: a line for each annotation and key without an exact verdict."""
        found = [
            f"{finding.annotation}: {finding.verdict.level}: {finding.verdict.reason}"
            for item in self._case.every_ingress
            for finding in judged(values_of(item["metadata"].get("annotations") or {}, NginxOptions().prefix))
            if finding.verdict.level in ("approximate", "refused")
        ]
        config = Config(self._case.about.get("config") or {})
        found += [f"{each.path}: {each.effect}: {each.reason}" for each in self.notes]
        found += [problem.message for _, problem in self.outcome.problems if problem.code == DIFFERS]
        return found + [f"{key}: {each.level}" for key, each in config.verdicts() if each.level != "exact"]

    @property
    def options(self) -> Options:
        """The options of the controller, from the flags of the case."""
        flags = self._case.flags
        backend = flags.get("default-backend-service", "")
        namespace, _, name = backend.partition("/")
        return Options(
            nginx=NginxOptions(
                config_map=ObjectKey("ConfigMap", "ingress-nginx", "nginx"),
                default_backend=ObjectKey("Service", namespace, name) if name else None,
                lean=self._lean,
                disable_catch_all=flags.get("disable-catch-all") == "true",
                watch_without_class=flags.get("watch-ingress-without-class") == "true",
            )
        )

    def _decoded(self, item: Json) -> Any:
        resource = RESOURCES.get(item["kind"])
        if resource is None:
            return None
        if item["kind"] == "Secret":
            item = {
                **item,
                "stringData": {
                    key: self._certificates.filled(str(text)) for key, text in (item.get("stringData") or {}).items()
                },
            }
        if item["kind"] == "Service":
            name = f"{item['metadata'].get('namespace', '')}/{item['metadata']['name']}"
            spec = dict(item["spec"])
            if name in self._virtual and spec.get("clusterIP") != "None" and spec.get("type") != "ExternalName":
                spec["clusterIP"] = self._virtual[name]
            item = {**item, "spec": spec}
        return resource.decode(item)

    def _slices(self) -> Iterable[Json]:
        for name, backends in self.services.items():
            namespace, _, service = name.partition("/")
            owner: Json = self._objects.get(("Service", namespace, service), {})
            if not owner:
                continue
            ports = [
                {"name": port.get("name", ""), "port": _number(port), "protocol": "TCP"}
                for port in owner["spec"].get("ports", [])
            ]
            yield {
                "kind": "EndpointSlice",
                "metadata": {
                    "name": service,
                    "namespace": namespace,
                    "labels": {"kubernetes.io/service-name": service},
                },
                "addressType": "IPv4",
                "ports": ports,
                "endpoints": [self._endpoint(each) for each in backends],
            }

    def _endpoint(self, text: str) -> Json:
        name, _, condition = text.partition("!")
        ready = not condition
        conditions = {"ready": ready, "serving": condition != "notready", "terminating": condition == "terminating"}
        return {"addresses": [self._addresses[name]], "conditions": conditions}


def _number(port: Json) -> int:
    target = port.get("targetPort", port["port"])
    return target if isinstance(target, int) else 8080
