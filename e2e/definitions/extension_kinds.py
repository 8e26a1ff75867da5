"""The kinds of 2.x that extend the Gateway API, with the parts that the stories need."""

from collections.abc import Iterator

import pytest

from e2e.cluster.client import KubeApiError, KubeClient, Manifest, wait_until
from e2e.definitions.gateway_kinds import definition, remove_definitions

GROUP, VERSION = "apisix.apache.org", "v1alpha1"
KINDS = {
    "HTTPRoutePolicy": "httproutepolicies",
    "L4RoutePolicy": "l4routepolicies",
    "BackendTrafficPolicy": "backendtrafficpolicies",
    "PluginConfig": "pluginconfigs",
    "Consumer": "consumers",
    "GatewayProxy": "gatewayproxies",
}
"""Kind → plural."""


def install(api: KubeClient) -> None:
    """Install the CRDs, and return once the API server serves them."""
    api.apply([definition(kind, plural, GROUP, VERSION) for kind, plural in KINDS.items()])
    wait_until(lambda: served(api), lambda found: found >= set(KINDS.values()), "the kinds of 2.x to be served")


def served(api: KubeClient) -> set[str]:
    """Return the plurals that the API server serves."""
    try:
        found = api.request("GET", f"/apis/{GROUP}/{VERSION}")
    except KubeApiError as error:
        if error.status != 404:
            raise
        return set()
    return {each["name"] for each in found["resources"]}


def remove(api: KubeClient) -> None:
    """Remove the CRDs, with their objects, and return once the API server does not serve them."""
    remove_definitions(api, [f"{plural}.{GROUP}" for plural in KINDS.values()])
    wait_until(lambda: served(api) & set(KINDS.values()), lambda found: not found, "the kinds of 2.x not to be served")


@pytest.fixture
def extension_kinds(cluster_api: KubeClient) -> Iterator[None]:
    """The kinds are served during a test."""
    install(cluster_api)
    yield
    remove(cluster_api)


def make(kind: str, name: str, **spec: object) -> Manifest:
    """Return an object."""
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind, "metadata": {"name": name}, "spec": spec}
