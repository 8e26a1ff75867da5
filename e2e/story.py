"""A separate environment for one story: a namespace that the shared controller ignores, a gateway, and controllers.

Also builds the objects that such stories use most, and reads their conditions. The stories contain the assertions.
"""

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from e2e.cluster.client import KubeClient, Manifest
from e2e.cluster.echo import EchoServers
from e2e.conftest import OWN, NewGateway, StartController
from e2e.controller import Controller, Gateway
from e2e.devgateway.process import DevGateway
from e2e.traffic import Traffic
from e2e.workload import PodFactory

WRITES = "apisix_ingress_controller_record_writes_total"
DONE = (200, 201)


def route(
    host: str,
    *,
    name: str = "web",
    service: str = "web",
    path: str = "/*",
    plugins: Mapping[str, Mapping[str, Any]] | None = None,
    **http: Any,
) -> Manifest:
    """Return an ApisixRoute with one rule, from a host to port 80 of a Service; `http` adds fields to the rule."""
    rule: Manifest = {
        "name": "rule",
        "match": {"hosts": [host], "paths": [path]},
        "backends": [{"serviceName": service, "servicePort": 80}],
        **http,
    }
    if plugins:
        rule["plugins"] = [{"name": key, "enable": True, "config": config} for key, config in plugins.items()]
    return {
        "apiVersion": "apisix.apache.org/v2",
        "kind": "ApisixRoute",
        "metadata": {"name": name},
        "spec": {"http": [rule]},
    }


def condition(item: Manifest | None) -> Manifest:
    """Return the condition of an ApisixRoute or similar object, {} if it has none yet."""
    conditions = ((item or {}).get("status") or {}).get("conditions") or []
    return next((each for each in conditions if each["type"] == "ResourcesAvailable"), {})


def says(status: str, *words: str) -> Callable[[Manifest | None], bool]:
    """Return a predicate: the condition for the current generation has this status and contains these strings."""

    def holds(item: Manifest | None) -> bool:
        found = condition(item)
        is_current = item is not None and found.get("observedGeneration") == item["metadata"].get("generation")
        return is_current and found["status"] == status and all(word in found["message"] for word in words)

    return holds


def put_paths(gateway: DevGateway, after: int = 0) -> list[str]:
    """Return the paths of the successful writes, in order."""
    return [line["path"].removeprefix("/apisix/admin") for line in gateway.write_log(after) if line["status"] in DONE]


def through(gateway: DevGateway) -> Traffic:
    """Return a client for requests through a gateway."""
    return Traffic(gateway.proxy_url, gateway.tls_address)


@dataclass
class Stage:
    """The environment of one story. `selector` matches only its namespaces."""

    api: KubeClient
    pods: PodFactory
    gateway: DevGateway
    mark: str
    _start: StartController
    _new_gateway: NewGateway
    _stack: ExitStack
    controllers: list[Controller] = field(default_factory=list)

    @property
    def namespace(self) -> str:
        """The namespace."""
        return self.pods.namespace

    @property
    def host(self) -> str:
        """A host that only this story uses."""
        return f"{self.namespace}.example.org"

    @property
    def selector(self) -> str:
        """The label selector of the namespace."""
        return f"e2e-story={self.mark}"

    @property
    def traffic(self) -> Traffic:
        """Requests through the gateway."""
        return through(self.gateway)

    def start(self, gateways: Mapping[str, Gateway] | None = None, **settings: Any) -> Controller:
        """Start a controller for the namespace; arguments as for `start_controller`."""
        started = self._start(gateways or {"default": self.gateway}, self.selector, **settings)
        self._stack.callback(started.stop)
        self.controllers.append(started)
        return started

    def another_gateway(self, **options: Any) -> DevGateway:
        """Start another gateway; `standalone` chooses its mode."""
        return self._stack.enter_context(self._new_gateway(**options))

    def apply(self, source: Manifest | list[Manifest]) -> list[Manifest]:
        """Apply manifests in the namespace."""
        return self.api.apply(source, namespace=self.namespace)

    def another_namespace(self, prefix: str = "e2e") -> AbstractContextManager[str]:
        """Create a second namespace for the story."""
        return self.api.namespace(prefix, labels=OWN | {"e2e-story": self.mark})

    @contextmanager
    def another_tenant(self, pod: str, servers: EchoServers) -> Iterator[PodFactory]:
        """Create a second namespace for the story, with a pod and a Service of the same name."""
        with self.another_namespace() as namespace, PodFactory(self.api, namespace, servers) as pods:
            pods.create(pod)
            pods.service(pod, {"app": pod})
            yield pods

    def serve(self, name: str = "web") -> None:
        """Create a pod and a Service that selects it; return when the pod's address is published.

        Otherwise a controller may first write an upstream without nodes, and write it again when the nodes are known.
        """
        self.pods.create(name)
        self.pods.service(name, {"app": name})
        self.pods.wait_published(name, 1)

    def wait_route(self, until: Callable[[Manifest | None], bool], what: str, name: str = "web") -> Manifest:
        """Wait until a predicate holds for an ApisixRoute."""
        return self.api.wait("ApisixRoute", name, until, what, namespace=self.namespace)


@pytest.fixture
def stage(
    cluster_api: KubeClient, echo_servers: EchoServers, start_controller: StartController, new_gateway: NewGateway
) -> Iterator[Stage]:
    """A namespace, pods and a gateway; its controllers are stopped before the gateway."""
    mark = secrets.token_hex(3)
    with ExitStack() as stack:
        namespace = stack.enter_context(cluster_api.namespace(labels=OWN | {"e2e-story": mark}))
        pods = stack.enter_context(PodFactory(cluster_api, namespace, echo_servers))
        gateway = stack.enter_context(new_gateway())
        yield Stage(cluster_api, pods, gateway, mark, start_controller, new_gateway, stack)


@pytest.fixture
def tenant(stage: Stage) -> Iterator[str]:
    """A second namespace of the story, whose objects refer to those of the first."""
    with stage.another_namespace() as name:
        yield name
