"""The kinds of the Gateway API, with the parts that the stories need: the API server does not validate their fields."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import pytest

from e2e.cluster.client import KubeApiError, KubeClient, Manifest, wait_until

GROUP = "gateway.networking.k8s.io"

KINDS = {
    "GatewayClass": "gatewayclasses",
    "Gateway": "gateways",
    "ListenerSet": "listenersets",
    "HTTPRoute": "httproutes",
    "GRPCRoute": "grpcroutes",
    "TLSRoute": "tlsroutes",
    "TCPRoute": "tcproutes",
    "UDPRoute": "udproutes",
    "BackendTLSPolicy": "backendtlspolicies",
    "ReferenceGrant": "referencegrants",
}
"""Kind → plural."""

ANYTHING: Manifest = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
"""The schema of an object with any fields."""

CONTROLLER = "apisix.apache.org/apisix-ingress-controller"


def definition(
    kind: str, plural: str = "", group: str = GROUP, versions: Sequence[str] = ("v1",), schema: Manifest = ANYTHING
) -> Manifest:
    """Return the CRD of a kind, by default one of the Gateway API; the first version is stored."""
    plural = plural or KINDS[kind]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, as much of it as the stories need"},
        },
        "spec": {
            "group": group,
            "scope": "Cluster" if kind == "GatewayClass" else "Namespaced",
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": version == versions[0],
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
                for version in versions
            ],
        },
    }


def install(api: KubeClient, kinds: Sequence[str] = tuple(KINDS)) -> None:
    """Install the CRDs of some kinds, and return once the API server serves them."""
    api.apply([definition(kind) for kind in kinds])
    for kind in kinds:
        wait_until(partial(is_served, api, kind), bool, f"{kind} to be served")


def is_served(api: KubeClient, kind: str) -> bool:
    """Return whether the API server serves a kind."""
    return exists(api, f"/apis/{GROUP}/v1/{KINDS[kind]}")


def exists(api: KubeClient, path: str) -> bool:
    """Return whether the API server has something at a path."""
    try:
        api.request("GET", path)
    except KubeApiError as error:
        if error.status != 404:
            raise
        return False
    return True


def remove(api: KubeClient, kinds: Sequence[str] = tuple(KINDS)) -> None:
    """Remove the CRDs of some kinds, with their objects, and return once the API server does not serve them."""
    remove_definitions(api, [f"{KINDS[kind]}.{GROUP}" for kind in kinds])
    for kind in kinds:
        wait_until(partial(is_served, api, kind), lambda found: not found, f"{kind} not to be served")


def remove_definitions(api: KubeClient, names: Sequence[str]) -> None:
    """Remove CRDs, with their objects, and return once they are gone."""
    for name in names:
        api.delete("CustomResourceDefinition", name)
    for name in names:
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
        wait_until(partial(exists, api, path), lambda found: not found, f"the definition {name} to go")


@contextmanager
def served(api: KubeClient, kinds: Sequence[str] = tuple(KINDS)) -> Iterator[None]:
    """Serve some kinds."""
    install(api, kinds)
    yield
    remove(api, kinds)


@pytest.fixture(scope="module")
def gateway_kinds(cluster_api: KubeClient) -> Iterator[None]:
    """The kinds are served during a module."""
    with served(cluster_api):
        yield


@pytest.fixture(scope="module")
def reference_grants(cluster_api: KubeClient) -> Iterator[None]:
    """ReferenceGrants are served during a module."""
    with served(cluster_api, ["ReferenceGrant"]):
        yield


def make(kind: str, name: str, **spec: object) -> Manifest:
    """Return an object."""
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def gateway(name: str = "gw", *listeners: Manifest) -> Manifest:
    """Return a Gateway, by default with one listener for HTTP that takes routes of every namespace."""
    every = {"name": "http", "port": 80, "protocol": "HTTP", "allowedRoutes": {"namespaces": {"from": "All"}}}
    return make("Gateway", name, gatewayClassName="apisix", listeners=list(listeners) or [every])


def http_route(host: str, *backends: Manifest, name: str = "web", **rule: object) -> Manifest:
    """Return an HTTPRoute, by default to the Service `web`."""
    rules = [{"backendRefs": list(backends) or [{"name": "web", "port": 80}], **rule}]
    return make("HTTPRoute", name, parentRefs=[{"name": "gw"}], hostnames=[host], rules=rules)
