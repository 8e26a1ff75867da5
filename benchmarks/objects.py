"""Objects for the benchmarks: one Service, EndpointSlice and ApisixRoute a route, in fifty namespaces."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from e2e.cluster.client import KubeClient

Manifest = dict[str, Any]
NAMESPACES = 50


def namespace_of(number: int) -> str:
    """Return the namespace of a route."""
    return f"bench-{number % NAMESPACES}"


def addresses_of(number: int, version: int = 0) -> list[str]:
    """Return the two endpoint addresses of a route; another version has another second one."""
    first = f"10.{100 + number // 60000}.{number // 240 % 250}.{number % 240 + 1}"
    return [first, f"10.200.{version // 250}.{version % 250 + 1}"]


def manifests(number: int) -> Iterator[Manifest]:
    """Yield the objects of one route."""
    meta = {"name": f"r{number}", "namespace": namespace_of(number)}
    yield {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"ports": [{"name": "http", "port": 80}]}}
    yield slice_manifest(number)
    match = {"hosts": [f"h{number}.example.org"], "paths": [f"/bench-{number}/*"]}
    rule = {"name": "rule", "match": match, "backends": [{"serviceName": meta["name"], "servicePort": 80}]}
    yield {"apiVersion": "apisix.apache.org/v2", "kind": "ApisixRoute", "metadata": meta, "spec": {"http": [rule]}}


def slice_manifest(number: int, version: int = 0) -> Manifest:
    """Return the EndpointSlice of a route."""
    name = f"r{number}"
    endpoints = [{"addresses": [address], "conditions": {"ready": True}} for address in addresses_of(number, version)]
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": name,
            "namespace": namespace_of(number),
            "labels": {
                "kubernetes.io/service-name": name,
                "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
            },
        },
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        "endpoints": endpoints,
    }


def seed(api: KubeClient, first: int, last: int) -> None:
    """Create the objects of the routes first … last - 1."""
    if first == 0:
        for number in range(NAMESPACES):
            api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"bench-{number}"}})

    def create(number: int) -> None:
        for manifest in manifests(number):
            api.create(manifest)

    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(create, range(first, last)):
            pass
