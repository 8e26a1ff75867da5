"""A namespace with pods, served by the shared gateway and controller, and the operations that most stories need.

The stories contain the assertions; stories with their own gateway or controller use `e2e.story`.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from aiohttp import ClientSession, WSServerHandshakeError

from e2e.cluster.client import KubeClient, Manifest, wait_until
from e2e.controller import Controller
from e2e.devgateway.process import DevGateway
from e2e.gateways import RemoteGateway
from e2e.traffic import Response, Traffic
from e2e.workload import Pod, PodFactory

CONDITION = "ResourcesAvailable"
ANNOTATION = "k8s.apisix.apache.org/"


def rule(name: str, match: Mapping[str, Any], service: str = "web", port: int | str = 80, **fields: Any) -> Manifest:
    """Return a rule of an ApisixRoute to one port of a Service; `fields` override its fields."""
    backend = {"serviceName": service, "servicePort": port}
    return {"name": name, "match": dict(match), "backends": [backend], **fields}


def plugin(name: str, config: Mapping[str, Any] | None = None, **fields: Any) -> Manifest:
    """Return an enabled plugin as ApisixRoute and ApisixPluginConfig list it."""
    return {"name": name, "enable": True, **({"config": dict(config)} if config is not None else {}), **fields}


def path(path: str, service: str, port: int | str = 80, kind: str = "Prefix") -> Manifest:
    """Return a path of an Ingress; a string for the port is its name."""
    return {"path": path, "pathType": kind, "backend": backend(service, port)}


def backend(service: str, port: int | str = 80) -> Manifest:
    """Return a backend of an Ingress."""
    return {"service": {"name": service, "port": {"number" if isinstance(port, int) else "name": port}}}


def addresses(upstream: Mapping[str, Any] | None) -> list[tuple[str, int]]:
    """Return the host and port of each node of an upstream record, sorted."""
    return sorted((node["host"], node["port"]) for node in (upstream or {}).get("nodes", ()))


def shares(**requests: int) -> dict[str, object]:
    """Return a number of requests for each Pod, to compare with `Traffic.counts`.

    Each worker process of APISIX balances on its own, so with two of them a Pod may get two requests more or fewer.
    """
    return {pod: pytest.approx(number, abs=2) for pod, number in requests.items()}


@dataclass(frozen=True)
class Scene:
    """The namespace of a story, and clients for its gateway."""

    api: KubeClient
    pods: PodFactory
    gateway: DevGateway | RemoteGateway
    traffic: Traffic

    @property
    def namespace(self) -> str:
        """The namespace."""
        return self.pods.namespace

    @property
    def host(self) -> str:
        """A host that only this story uses."""
        return f"{self.namespace}.example.org"

    # -- objects

    def apply(
        self, kind: str, name: str, *, namespace: str = "", labels: Mapping[str, str] | None = None, **body: Any
    ) -> Manifest:
        """Apply an object of any kind; `body` has its fields other than metadata, usually `spec`."""
        metadata = {"name": name, "namespace": namespace or self.namespace, "labels": dict(labels or {})}
        api_version = self.api.resource(kind).api_version
        return self.api.apply({"apiVersion": api_version, "kind": kind, "metadata": metadata, **body})[0]

    def route(self, name: str, *rules: Manifest) -> Manifest:
        """Apply an ApisixRoute."""
        return self.apply("ApisixRoute", name, spec={"http": list(rules)})

    def ingress(
        self, name: str, *rules: Manifest, annotations: Mapping[str, str] | None = None, **spec: Any
    ) -> Manifest:
        """Apply an Ingress of class `apisix`; annotations are specified without their prefix."""
        metadata = {
            "name": name,
            "namespace": self.namespace,
            "annotations": {f"{ANNOTATION}{key}": value for key, value in (annotations or {}).items()},
        }
        fields = {"ingressClassName": "apisix", **spec}
        fields |= {"rules": list(rules)} if rules else {}
        kept = {key: value for key, value in fields.items() if value is not None}
        manifest = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": kept}
        return self.api.apply(manifest)[0]

    def secret(self, name: str, **data: str) -> Manifest:
        """Apply a Secret with string values."""
        return self.apply("Secret", name, stringData=data)

    def serve(self, *names: str, **pod: Any) -> list[Pod]:
        """Create a pod for each name, and the Service of that name that selects it."""
        made = [self.pods.create(name, **pod) for name in names]
        for name in names:
            self.pods.service(name, {"app": name})
        return made

    def delete(self, kind: str, name: str) -> None:
        """Delete an object."""
        self.api.delete(kind, name, namespace=self.namespace)

    def wait_live(self, name: str) -> Manifest:
        """Wait until an ApisixRoute is synced and every upstream of the namespace has a node; return the object."""
        found = self.wait_synced("ApisixRoute", name)
        wait_until(self._without_nodes, lambda names: not names, "every upstream to have a node")
        return found

    def wait_ingress(self, name: str, routes: int) -> None:
        """Wait until an Ingress has this many routes and every upstream of the namespace has a node."""
        # Routes are written after their upstreams.
        wait_until(lambda: len(self.ingress_routes(name)), lambda got: got == routes, f"{routes} routes of {name}")
        wait_until(self._without_nodes, lambda names: not names, "every upstream to have a node")

    def wait_nodes(self, name: str, want: Sequence[tuple[str, int]]) -> None:
        """Wait until an upstream record has exactly these nodes."""
        self.wait_record("upstreams", name, lambda found: addresses(found) == sorted(want), f"to have {want}")

    def _without_nodes(self) -> list[str]:
        # The condition is True as soon as the records are in sync; endpoints are published shortly after the pods.
        return [name for name in self.names("upstreams") if not (self.record("upstreams", name) or {}).get("nodes")]

    def wait_synced(self, kind: str, name: str) -> Manifest:
        """Wait until the condition says that the gateway has the current generation; return the object."""
        return self._wait_condition(kind, name, "True", "Sync Successfully")

    def wait_aborted(self, kind: str, name: str, *words: str) -> Manifest:
        """Wait until the condition for the current generation is False with these strings; return the object."""
        return self._wait_condition(kind, name, "False", *words)

    def _wait_condition(self, kind: str, name: str, status: str, *words: str) -> Manifest:
        def holds(item: Manifest | None) -> bool:
            conditions = ((item or {}).get("status") or {}).get("conditions") or []
            return any(
                each["type"] == CONDITION
                and each["status"] == status
                and each["observedGeneration"] == (item or {})["metadata"]["generation"]
                and all(word in each["message"] for word in words)
                for each in conditions
            )

        return self.api.wait(kind, name, holds, f"its condition to be {status}", namespace=self.namespace)

    # -- requests

    def send(self, path: str = "/", *, host: str = "", **request: Any) -> Response:
        """Send one request to the story's host, or to another host."""
        return self.traffic.send(host or self.host, path, **request)

    def until_pod(self, pod: str, path: str = "/", *, host: str = "", **request: Any) -> Response:
        """Send requests until this pod responds."""
        return self.traffic.until(lambda answer: answer.pod == pod, host or self.host, path, **request)

    def until_status(self, status: int, path: str = "/", *, host: str = "", **request: Any) -> Response:
        """Send requests until a response has this status."""
        return self.traffic.until_status(status, host or self.host, path, **request)

    # -- records

    def record(self, kind: str, name: str) -> Mapping[str, Any] | None:
        """Return a record by its name without the namespace prefix: `web_80`; for an Ingress see `ingress_routes`."""
        found = self.gateway.records(kind).values()
        return next((each for each in found if each.get("name") == f"{self.namespace}_{name}"), None)

    def names(self, kind: str) -> set[str]:
        """Return the names of the story's records of a kind, without the namespace prefix."""
        begin = f"{self.namespace}_"
        found = (str(each.get("name", "")) for each in self.gateway.records(kind).values())
        return {name.removeprefix(begin) for name in found if name.startswith(begin)}

    def ingress_routes(self, name: str) -> list[Mapping[str, Any]]:
        """Return the route records of an Ingress by path."""
        begin = f"ing_{self.namespace}_{name}_"
        found = [each for each in self.gateway.records("routes").values() if each.get("name", "").startswith(begin)]
        return sorted(found, key=lambda each: (each.get("host", ""), each["uris"]))

    def wait_record(
        self, kind: str, name: str, until: Callable[[Mapping[str, Any] | None], bool], what: str
    ) -> Mapping[str, Any]:
        """Read a record until `until` holds for it (None if it does not exist) and return it, or {}."""
        return wait_until(lambda: self.record(kind, name), until, f"record {kind} {name} {what}") or {}


def websocket(scene: Scene, path: str, text: str) -> str:
    """Send a text over a WebSocket and return the reply; "refused" if the connection is not upgraded."""
    return asyncio.run(_websocket(scene, path, text))


async def _websocket(scene: Scene, path: str, text: str) -> str:
    url, headers = f"{scene.gateway.proxy_url}{path}", {"Host": scene.host}
    async with ClientSession() as session:
        try:
            async with session.ws_connect(url, headers=headers) as socket:
                await socket.send_str(text)
                return await socket.receive_str(timeout=10)
        except WSServerHandshakeError:
            return "refused"


@pytest.fixture
def scene(
    cluster_api: KubeClient,
    controller: Controller,
    gateway: DevGateway | RemoteGateway,
    traffic: Traffic,
    pods: PodFactory,
) -> Scene:
    """A namespace that the shared controller serves."""
    return Scene(cluster_api, pods, gateway, traffic)
