"""The objects of a benchmark, how they are changed, and what the gateway should have then.

One route is one Service with an EndpointSlice and Endpoints of two addresses (two Services with two backends), and an
ApisixRoute, an Ingress or an HTTPRoute. Nothing here does I/O.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

Manifest = dict[str, Any]
Kind = Literal["ApisixRoute", "Ingress", "HTTPRoute"]
GATEWAY = "bench"
"""The Gateway of HTTPRoutes, in namespace `default`."""

_VERSIONS: dict[Kind, str] = {
    "ApisixRoute": "apisix.apache.org/v2",
    "Ingress": "networking.k8s.io/v1",
    "HTTPRoute": "gateway.networking.k8s.io/v1",
}
PORT = 8080


@dataclass(frozen=True, slots=True)
class Shape:
    """The number of objects of each kind, and how they refer to each other."""

    size: int
    kind: Kind = "ApisixRoute"
    namespaces: int = 50
    backends: int = 1
    hosts: int = 1
    ingress_class: str = "apisix"

    @property
    def name(self) -> str:
        """A name for files and tables."""
        hosts = f"-h{self.hosts}" if self.hosts > 1 else ""
        class_ = f"-{self.ingress_class}" if self.ingress_class != "apisix" else ""
        return f"{self.kind.lower()}-{self.size}-ns{self.namespaces}-b{self.backends}{hosts}{class_}"


class Patch(NamedTuple):
    """A change of one object."""

    kind: str
    namespace: str
    name: str
    body: Manifest


class World:
    """The current objects, at first in their first version."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self._versions = [0] * shape.size
        self._paths = [f"/bench-{number}" for number in range(shape.size)]

    def namespace(self, number: int) -> str:
        """Return the namespace of a route."""
        return f"bench-{number % self.shape.namespaces}"

    def objects(self, number: int) -> Iterator[Manifest]:
        """Yield the objects of a route, without its namespace."""
        for backend in range(self.shape.backends):
            meta = {"name": f"s{number}-{backend}", "namespace": self.namespace(number)}
            yield {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"ports": [_service_port()]}}
            yield self._slice(number, backend)
            # The controller manager would create a second slice from it.
            labels = {"endpointslice.kubernetes.io/skip-mirror": "true"}
            subsets = self._subsets(number, backend)
            yield {"apiVersion": "v1", "kind": "Endpoints", "metadata": {**meta, "labels": labels}, "subsets": subsets}
        yield self._route(number)

    def expected(self, number: int) -> Manifest:
        """Return what the gateway should have for a route, in the format of the counting gateway."""
        nodes = [
            f"{each}:{PORT}" for backend in range(self.shape.backends) for each in self._addresses(number, backend)
        ]
        return {"key": str(number), "path": self._paths[number], "nodes": nodes}

    def change_endpoints(self, number: int) -> list[Patch]:
        """Change the endpoints of a route."""
        self._versions[number] += 1
        patches = []
        for backend in range(self.shape.backends):
            where = (self.namespace(number), f"s{number}-{backend}")
            patches.append(Patch("EndpointSlice", *where, {"endpoints": self._endpoints(number, backend)}))
            patches.append(Patch("v1/Endpoints", *where, {"subsets": self._subsets(number, backend)}))
        return patches

    def edit(self, number: int, tag: str) -> tuple[Manifest, Patch]:
        """Change the path of a route; return the expectation that the old one is gone, and the change."""
        gone = {"key": f"gone-{number}", "path": self._paths[number], "absent": True}
        self._paths[number] = f"/bench-{number}-{tag}"
        return gone, Patch(self.shape.kind, self.namespace(number), f"r{number}", {"spec": self._rules(number)})

    def _route(self, number: int) -> Manifest:
        meta = {"name": f"r{number}", "namespace": self.namespace(number)}
        if self.shape.kind == "HTTPRoute":
            parent = {"parentRefs": [{"name": GATEWAY, "namespace": "default"}], "hostnames": [self._host(number)]}
        else:
            parent = {"ingressClassName": self.shape.ingress_class}
        spec = {**parent, **self._rules(number)}
        return {"apiVersion": _VERSIONS[self.shape.kind], "kind": self.shape.kind, "metadata": meta, "spec": spec}

    def _host(self, number: int) -> str:
        return f"bench-{number % self.shape.hosts}.example.org" if self.shape.hosts > 1 else "bench.example.org"

    def _rules(self, number: int) -> Manifest:
        path, services = self._paths[number], [f"s{number}-{backend}" for backend in range(self.shape.backends)]
        weight = {"weight": 50} if self.shape.backends > 1 else {}
        match self.shape.kind:
            case "Ingress":
                backend = {"service": {"name": services[0], "port": {"number": 80}}}
                paths = [{"path": path, "pathType": "Exact", "backend": backend}]
                return {"rules": [{"host": self._host(number), "http": {"paths": paths}}]}
            case "HTTPRoute":
                references = [{"name": service, "port": 80, **weight} for service in services]
                return {"rules": [{"matches": [{"path": {"type": "Exact", "value": path}}], "backendRefs": references}]}
            case _:
                backends = [{"serviceName": service, "servicePort": 80, **weight} for service in services]
                match = {"hosts": [self._host(number)], "paths": [path]}
                return {"http": [{"name": "rule", "match": match, "backends": backends}]}

    def _slice(self, number: int, backend: int) -> Manifest:
        name = f"s{number}-{backend}"
        labels = {
            "kubernetes.io/service-name": name,
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        }
        return {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": name, "namespace": self.namespace(number), "labels": labels},
            "addressType": "IPv4",
            "ports": [{"name": "http", "port": PORT, "protocol": "TCP"}],
            "endpoints": self._endpoints(number, backend),
        }

    def _endpoints(self, number: int, backend: int) -> list[Manifest]:
        conditions = {"ready": True, "serving": True, "terminating": False}
        return [{"addresses": [address], "conditions": conditions} for address in self._addresses(number, backend)]

    def _subsets(self, number: int, backend: int) -> list[Manifest]:
        addresses = [{"ip": address} for address in self._addresses(number, backend)]
        return [{"addresses": addresses, "ports": [{"name": "http", "port": PORT, "protocol": "TCP"}]}]

    def _addresses(self, number: int, backend: int) -> list[str]:
        """Return two addresses that no other backend has; another version has two others."""
        first = 1 + (self._versions[number] * 4 + backend * 2) % 240
        return [f"10.{first + each}.{number // 250}.{number % 250 + 1}" for each in range(2)]


def _service_port() -> Manifest:
    return {"name": "http", "port": 80, "targetPort": PORT, "protocol": "TCP"}
