"""An installation for tenants who do not trust each other: a controller, a gateway, and two tenants for each attack."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from e2e.cluster.client import KubeClient, Manifest
from e2e.cluster.echo import EchoServers
from e2e.conftest import OWN
from e2e.controller import Controller
from e2e.definitions.gateway_kinds import CONTROLLER, make
from e2e.devgateway.process import DevGateway
from e2e.gateways import RemoteGateway
from e2e.traffic import RequestLoop, Traffic
from e2e.workload import PodFactory

NGINX = "nginx.ingress.kubernetes.io"
MULTI_TENANT = "multi-tenant"
MARK = "e2e-attack"


@dataclass(frozen=True)
class Installation:
    """A controller with the preset, and its gateway.

    Attributes:
        runs_lua: Whether the gateway runs Lua and mirrors requests. The development gateway does neither: attacks
            that depend on them check the records there, and the traffic with a real gateway.
    """

    api: KubeClient
    gateway: DevGateway | RemoteGateway
    controller: Controller
    mark: str
    runs_lua: bool

    @property
    def traffic(self) -> Traffic:
        """Requests through the gateway."""
        return Traffic(self.gateway.proxy_url, self.gateway.tls_address)

    def routes(self, host: str) -> list[Mapping[str, Any]]:
        """Return the routes of a host, the highest priority first."""
        found = [each for each in self.gateway.records("routes").values() if host in hosts(each)]
        return sorted(found, key=lambda each: -each.get("priority", 0))

    def timeline(self, requests: RequestLoop) -> str:
        """Return when the status of requests changed, between the writes to the gateway; the writes that it knows."""
        answers = [(at, f"request: {answer.status}") for at, answer in requests.answers]
        changes = [new for old, new in pairwise([(0.0, ""), *answers]) if old[1] != new[1]]
        log = self.gateway.write_log() if isinstance(self.gateway, DevGateway) else []
        writes = [(each["monotonic"], f"{each['method']} {each['path']}: {each['status']}") for each in log]
        first = answers[0][0]
        found = sorted(each for each in changes + writes if each[0] >= first)
        return "\n".join(f"{at - first:9.4f} s {what}" for at, what in found)


def hosts(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the hosts of a route."""
    return (*record.get("hosts", ()), *([record["host"]] if "host" in record else []))


@dataclass(frozen=True)
class Tenants:
    """Two namespaces with a Pod and a Service each, `web` and `evil`, and hosts that only this attack uses."""

    installation: Installation
    victim: PodFactory
    evil: PodFactory
    domain: str

    @property
    def traffic(self) -> Traffic:
        """Requests through the gateway."""
        return self.installation.traffic

    def apply(self, source: Manifest | list[Manifest]) -> list[Manifest]:
        """Apply manifests in the namespace of the victim."""
        return self.installation.api.apply(source, namespace=self.victim.namespace)

    def attack(self, source: Manifest | list[Manifest]) -> list[Manifest]:
        """Apply manifests in the namespace of the hostile tenant."""
        return self.installation.api.apply(source, namespace=self.evil.namespace)

    def ingress(
        self, name: str, host: str, *paths: str, service: str = "web", kind: str = "Prefix", **annotations: str
    ) -> Manifest:
        """Return an Ingress of ingress-nginx; underscores in names of annotations become dashes."""
        backend = {"service": {"name": service, "port": {"number": 80}}}
        every = [{"path": path, "pathType": kind, "backend": backend} for path in paths or ("/",)]
        given = {f"{NGINX}/{key.replace('_', '-')}": text for key, text in annotations.items()}
        return {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "metadata": {"name": name, "annotations": given},
            "spec": {
                "ingressClassName": f"nginx-{self.installation.mark}",
                "rules": [{"host": host, "http": {"paths": every}}],
            },
        }

    def events(self, name: str) -> list[tuple[str, str]]:
        """Return type and message of the Events about an object of the hostile tenant."""
        found = self.installation.api.events(name, namespace=self.evil.namespace)
        return [(each["type"], each["message"]) for each in found]

    def settled(self) -> None:
        """Have an object of each tenant served: what they applied before has been translated, a namespace in order."""
        name = f"settled-{secrets.token_hex(3)}"
        theirs, mine = (f"{name}.{kind}.{self.domain}" for kind in ("evil", "web"))
        self.attack(self.ingress(name, theirs, service="evil"))
        self.apply(self.ingress(name, mine))
        self.traffic.until(lambda answer: answer.pod == "evil", theirs)
        self.traffic.until(lambda answer: answer.pod == "web", mine)


def install(
    api: KubeClient, kubeconfig: Path, folder: Path, gateway: DevGateway | RemoteGateway, **settings: Any
) -> Controller:
    """Return a controller with the preset, which has not been started, and create its class."""
    mark = folder.name
    spec = {"controller": f"k8s.io/{mark}"}
    api.apply(
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "IngressClass",
            "metadata": {"name": f"nginx-{mark}"},
            "spec": spec,
        }
    )
    return Controller(
        folder,
        kubeconfig=kubeconfig,
        gateways={"default": gateway},
        preset=MULTI_TENANT,
        kubernetes={"namespace_selector": f"{MARK}={mark}", "election": {"name": f"lease-{mark}"}},
        ingress_nginx={"enabled": True, "controller_class": f"k8s.io/{mark}"},
        gateway_api={"loopback": gateway.proxy_url, "experimental": True},
        **settings,
    )


@pytest.fixture(scope="session")
def installation(
    request: pytest.FixtureRequest, cluster_api: KubeClient, kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    """The installation that attacks share. Its gateway is the one of `--admin-url`, otherwise a development gateway."""
    mark = secrets.token_hex(3)
    with ExitStack() as stack:
        remote = bool(request.config.getoption("--admin-url"))
        gateway = (
            request.getfixturevalue("gateway")
            if remote
            else stack.enter_context(DevGateway(admin_key=secrets.token_hex(16)))
        )
        folder = tmp_path_factory.mktemp(mark, numbered=False)
        controller = stack.enter_context(install(cluster_api, kubeconfig, folder, gateway))
        yield Installation(cluster_api, gateway, controller, mark, runs_lua=remote)


@pytest.fixture
def own(cluster_api: KubeClient, kubeconfig: Path, tmp_path: Path) -> Iterator[Installation]:
    """An installation for one attack that would stop the controller, so that others are not affected."""
    mark = secrets.token_hex(3)
    with ExitStack() as stack:
        gateway = stack.enter_context(DevGateway(admin_key=secrets.token_hex(16)))
        controller = stack.enter_context(install(cluster_api, kubeconfig, tmp_path / mark, gateway))
        yield Installation(cluster_api, gateway, controller, mark, runs_lua=False)


@pytest.fixture
def tenants_of_own(own: Installation, echo_servers: EchoServers) -> Iterator[Tenants]:
    """Two tenants of a separate installation."""
    with ExitStack() as stack:
        yield two_tenants(stack, own, echo_servers)


@pytest.fixture
def tenants(installation: Installation, echo_servers: EchoServers) -> Iterator[Tenants]:
    """Two tenants of the installation, for one attack."""
    with ExitStack() as stack:
        yield two_tenants(stack, installation, echo_servers)


def two_tenants(stack: ExitStack, installation: Installation, servers: EchoServers) -> Tenants:
    """Create two tenants, each with a Pod and a Service."""
    api = installation.api
    labels = OWN | {MARK: installation.mark}
    found = []
    for name, prefix in (("web", "victim"), ("evil", "evil")):
        namespace = stack.enter_context(api.namespace(prefix, labels=labels))
        pods = stack.enter_context(PodFactory(api, namespace, servers))
        pods.create(name)
        pods.service(name, {"app": name})
        found.append(pods)
    victim, evil = found
    victim.wait_published("web", 1)
    evil.wait_published("evil", 1)
    return Tenants(installation, victim, evil, f"{victim.namespace}.test")


def gateway_class() -> Manifest:
    """Return the GatewayClass of this project."""
    return make("GatewayClass", "apisix", controllerName=CONTROLLER)
