"""Users of a simulation: they create, change, break and delete objects, driven by a seed. They check nothing.

There are few names, so that objects are recreated under the same name. In namespace `core` nothing changes; in `evil`
a user forges names whose records would have the ids of records of `core`.
"""

from __future__ import annotations

import base64
import datetime
import random
from collections.abc import Callable
from functools import cache
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.fakes.kube.apiserver import Manifest
from tests.forging import forge
from tests.simulation.checking.trace import Trace
from tests.simulation.servers.apiserver import SERVED, SimApiServer

CORE = "core"
NAMESPACES = ("alpha", "beta")
"""`beta` gets and loses its label."""
EVIL = "evil"
FORGED_SERVICE = forge(f"{CORE}_web_80", f"{EVIL}_", "_80").removeprefix(f"{EVIL}_").removesuffix("_80")
FORGED_CONFIG = forge(f"{CORE}_p", f"{EVIL}_").removeprefix(f"{EVIL}_")
FORGED_RULE = forge(f"{CORE}_r0_rule", f"{EVIL}_a_").removeprefix(f"{EVIL}_a_")
SELECTOR = "watched=yes"
SERVICES, ROUTES, INGRESSES = ("web", "api"), ("r0", "r1", "r2"), ("i0", "i1")
CUSTOM, APISIX = "apisix.apache.org/v2", "apisix"
PASSWORDS = ("canary-password-0", "canary-password-1")


class Users:
    """The users who change objects at the API server."""

    def __init__(self, server: SimApiServer, rng: random.Random, trace: Trace) -> None:
        self._server = server
        self._rng = rng
        self._trace = trace
        self._born = 0
        self._next: Callable[[], None] | None = None

    def begin(self) -> None:
        """Create the initial objects: namespace `core` with one of each kind, and some others."""
        for name in (CORE, EVIL, *NAMESPACES):
            self._put("Namespace", "", name, labels={"watched": "yes"})
        self._put("IngressClass", "", APISIX, spec={"controller": "apisix.apache.org/apisix-ingress-controller"})
        self._service(CORE, "web")
        self._slice(CORE, "web", ["10.9.9.9"])
        self._plugin_config(CORE, count=9)
        self._route(CORE, "r0", ["web"], config=True)
        self._ingress(CORE, "i0", "web")
        self._tls(CORE, 0)
        self._consumer(CORE, PASSWORDS[0])
        self._global_rule(CORE, "prometheus", {"prefer_name": True})
        for _ in range(self._rng.randint(0, 25)):
            self.act()

    def act(self) -> None:
        """Do one thing."""
        if self._next is not None:
            then, self._next = self._next, None
            then()
            return
        weighted: tuple[tuple[int, Callable[[str], None]], ...] = (
            (6, self._edit_route),
            (4, self._flicker),
            (4, self._edit_slice),
            (2, self._flap),
            (3, self._edit_service),
            (3, self._edit_ingress),
            (2, self._edit_upstream),
            (2, self._edit_plugin_config),
            (3, self._edit_tls),
            (2, self._edit_consumer),
            (2, self._edit_global_rule),
            (1, self._label),
            (4, self._forge),
        )
        action = self._rng.choices([each for _, each in weighted], [weight for weight, _ in weighted])[0]
        action(self._rng.choice(NAMESPACES))

    def flicker(self) -> None:
        """Create something; the next action deletes it."""
        self._flicker(self._rng.choice(NAMESPACES))

    def serve(self, namespace: str) -> None:
        """Create routes to all Services of a namespace."""
        self._put("Namespace", "", namespace, labels={"watched": "yes"})
        for number, service in enumerate(SERVICES):
            self._service(namespace, service)
            self._slice(namespace, service, ["10.0.0.1"])
            self._route(namespace, f"r{number}", [service])

    def move(self, namespace: str, service: str, address: str) -> None:
        """Give a Service another endpoint."""
        self._slice(namespace, service, [address])

    # What users do.

    def _edit_route(self, namespace: str) -> None:
        rng, name = self._rng, self._rng.choice(ROUTES)
        luck = rng.random()
        if luck < 0.25:
            self._remove("ApisixRoute", namespace, name)
        elif luck < 0.32:
            self._put("ApisixRoute", namespace, name, spec={"http": "no list"})
        elif luck < 0.38:
            self._route(namespace, name, ["web"], plugins=[_plugin("limit-count", {"count": 0, "time_window": 60})])
        elif luck < 0.42:
            self._route(namespace, name, ["web"], class_="another")
        else:
            services = rng.sample(SERVICES, rng.randint(1, 2))
            self._route(namespace, name, services, config=rng.random() < 0.4)

    def _flicker(self, namespace: str) -> None:
        """Create or recreate an object, and delete it again."""
        name = self._rng.choice(ROUTES)
        if self._rng.random() < 0.5:
            self._route(namespace, name, ["web"])
            self._next = lambda: self._remove("ApisixRoute", namespace, name)
        else:
            self._consumer(namespace, self._rng.choice(PASSWORDS))
            self._next = lambda: self._remove("ApisixConsumer", namespace, "c")

    def _edit_slice(self, namespace: str) -> None:
        service = self._rng.choice(SERVICES)
        if self._rng.random() < 0.15:
            self._remove("EndpointSlice", namespace, f"{service}-1")
        else:
            count = self._rng.randint(0, 3)
            self._slice(namespace, service, [f"10.0.0.{self._rng.randint(1, 9)}" for _ in range(count)])

    def _flap(self, namespace: str) -> None:
        service = self._rng.choice(SERVICES)
        for number in range(self._rng.randint(2, 8)):
            self._slice(namespace, service, [f"10.1.0.{number}"])

    def _edit_service(self, namespace: str) -> None:
        service = self._rng.choice(SERVICES)
        if self._rng.random() < 0.3:
            self._remove("Service", namespace, service)
        else:
            self._service(namespace, service)
            self._slice(namespace, service, [f"10.0.1.{self._rng.randint(1, 9)}"])

    def _edit_ingress(self, namespace: str) -> None:
        name = self._rng.choice(INGRESSES)
        if self._rng.random() < 0.3:
            self._remove("Ingress", namespace, name)
        else:
            self._ingress(namespace, name, self._rng.choice(SERVICES))

    def _edit_upstream(self, namespace: str) -> None:
        service = self._rng.choice(SERVICES)
        if self._rng.random() < 0.3:
            self._remove("ApisixUpstream", namespace, service)
        else:
            self._put("ApisixUpstream", namespace, service, spec={"retries": self._rng.randint(1, 5)})

    def _edit_plugin_config(self, namespace: str) -> None:
        if self._rng.random() < 0.3:
            self._remove("ApisixPluginConfig", namespace, "p")
        else:
            self._plugin_config(namespace, count=self._rng.choice([0, 1, 2, 3, 4]))

    def _edit_tls(self, namespace: str) -> None:
        luck = self._rng.random()
        if luck < 0.2:
            self._remove("ApisixTls", namespace, "t")
        elif luck < 0.3:
            self._remove("Secret", namespace, "cert")
        else:
            self._tls(namespace, self._rng.randint(0, 2))

    def _edit_consumer(self, namespace: str) -> None:
        if self._rng.random() < 0.3:
            self._remove("ApisixConsumer", namespace, "c")
        else:
            self._consumer(namespace, self._rng.choice(PASSWORDS))

    def _edit_global_rule(self, namespace: str) -> None:
        plugin = {"alpha": "cors", "beta": "gzip"}[namespace]
        if self._rng.random() < 0.3:
            self._remove("ApisixGlobalRule", namespace, "g")
        else:
            field = {"cors": "max_age", "gzip": "comp_level"}[plugin]
            self._global_rule(namespace, plugin, {field: self._rng.randint(1, 5)})

    def _forge(self, _: str) -> None:
        """Create or delete one of the objects with forged names, or all of them."""
        port = {"name": "http", "port": 80, "targetPort": 8080}
        config = self._rng.random() < 0.5
        backend = {"serviceName": FORGED_SERVICE, "servicePort": 80, "weight": 1}
        rule: Manifest = {"name": FORGED_RULE, "match": {"hosts": ["evil.example.org"], "paths": ["/"]}}
        rule |= {"backends": [backend]} | ({"plugin_config_name": FORGED_CONFIG} if config else {})
        limit = {"plugins": [_plugin("limit-count", {"count": self._rng.randint(1, 4), "time_window": 60})]}
        service = {"clusterIP": "10.96.0.1", "ports": [port]}
        objects: list[tuple[str, str, Manifest]] = [
            ("Service", FORGED_SERVICE, service),
            ("ApisixPluginConfig", FORGED_CONFIG, limit),
            ("ApisixRoute", "a", {"http": [rule]}),
        ]
        for kind, name, spec in objects if self._rng.random() < 0.3 else [self._rng.choice(objects)]:
            if self._rng.random() < 0.4:
                self._remove(kind, EVIL, name)
            else:
                self._put(kind, EVIL, name, spec=spec)

    def _label(self, _: str) -> None:
        self._put("Namespace", "", "beta", labels={"watched": self._rng.choice(["yes", "no"])})

    # Manifests.

    def _service(self, namespace: str, name: str) -> None:
        port = {"name": "http", "port": 80, "targetPort": 8080}
        self._put("Service", namespace, name, spec={"clusterIP": "10.96.0.1", "ports": [port]})

    def _slice(self, namespace: str, service: str, addresses: list[str]) -> None:
        endpoints = [{"addresses": [address], "conditions": {"ready": True}} for address in dict.fromkeys(addresses)]
        labels = {"kubernetes.io/service-name": service}
        ports = [{"name": "http", "port": 8080}]
        fields: Manifest = {"addressType": "IPv4", "ports": ports, "endpoints": endpoints}
        self._put("EndpointSlice", namespace, f"{service}-1", labels=labels, **fields)

    def _route(
        self,
        namespace: str,
        name: str,
        services: list[str],
        *,
        config: bool = False,
        plugins: list[Manifest] | None = None,
        class_: str = "",
    ) -> None:
        rule: Manifest = {
            "name": "rule",
            "match": {"hosts": [f"{name}.{namespace}.example.org"], "paths": [f"/{self._rng.randint(0, 9)}"]},
            "backends": [{"serviceName": service, "servicePort": 80, "weight": 1} for service in services],
        }
        rule |= {"plugin_config_name": "p"} if config else {}
        rule |= {"plugins": plugins} if plugins else {}
        self._put(
            "ApisixRoute", namespace, name, spec={"http": [rule]} | ({"ingressClassName": class_} if class_ else {})
        )

    def _ingress(self, namespace: str, name: str, service: str) -> None:
        backend = {"service": {"name": service, "port": {"number": 80}}}
        path = {"path": f"/{self._rng.randint(0, 3)}", "pathType": "Exact", "backend": backend}
        rule = {"host": f"{name}.{namespace}.example.org", "http": {"paths": [path]}}
        self._put("Ingress", namespace, name, spec={"ingressClassName": APISIX, "rules": [rule]})

    def _plugin_config(self, namespace: str, *, count: int) -> None:
        plugins = [_plugin("limit-count", {"count": count, "time_window": 60})]
        self._put("ApisixPluginConfig", namespace, "p", spec={"plugins": plugins})

    def _tls(self, namespace: str, number: int) -> None:
        certificate, key = pair(number)
        self._put(
            "Secret", namespace, "cert", data={"tls.crt": _encoded(certificate), "tls.key": _encoded(key)}, type="tls"
        )
        secret = {"name": "cert", "namespace": namespace}
        self._put("ApisixTls", namespace, "t", spec={"hosts": [f"{namespace}.example.org"], "secret": secret})

    def _consumer(self, namespace: str, password: str) -> None:
        self._put("ApisixConsumer", namespace, "c", spec={"authParameter": {"keyAuth": {"value": {"key": password}}}})

    def _global_rule(self, namespace: str, plugin: str, config: Manifest) -> None:
        self._put("ApisixGlobalRule", namespace, "g", spec={"plugins": [_plugin(plugin, config)]})

    # At the API server.

    def _put(
        self, kind: str, namespace: str, name: str, *, labels: dict[str, str] | None = None, **fields: Any
    ) -> None:
        served = SERVED[kind]
        before = self._server.get(served.plural, name, namespace)
        self._born += 1
        minute, second = divmod(self._born, 60)
        created = f"2025-12-31T00:{minute:02}:{second:02}Z"
        meta: Manifest = {"name": name, "creationTimestamp": created}
        meta |= {"namespace": namespace} if namespace else {}
        meta |= {"labels": labels} if labels else {}
        self._trace.note("users", f"{'change' if before else 'create'} {kind} {namespace}/{name} {_brief(fields)}")
        self._server.put({"apiVersion": served.api_version, "kind": kind, "metadata": meta, **fields}, status=False)

    def _remove(self, kind: str, namespace: str, name: str) -> None:
        if self._server.get(SERVED[kind].plural, name, namespace) is not None:
            self._trace.note("users", f"delete {kind} {namespace}/{name}")
            self._server.remove(SERVED[kind].plural, name, namespace)


@cache
def pair(number: int) -> tuple[bytes, bytes]:
    """Return a certificate and its private key, the same ones always."""
    key = Ed25519PrivateKey.from_private_bytes(bytes([number + 1]) * 32)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"simulated {number}")])
    begin, end = datetime.datetime(2020, 1, 1), datetime.datetime(2060, 1, 1)
    builder = x509.CertificateBuilder(name, name, key.public_key(), number + 1, begin, end)
    names = x509.SubjectAlternativeName([x509.DNSName("*.example.org")])
    certificate = builder.add_extension(names, critical=False).sign(key, None)
    return certificate.public_bytes(serialization.Encoding.PEM), key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _plugin(name: str, config: Manifest) -> Manifest:
    return {"name": name, "enable": True, "config": config}


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _brief(fields: Manifest) -> str:
    """Return the description of an object in the trace, without Secret data."""
    return "" if "data" in fields else str(fields)[:300]
