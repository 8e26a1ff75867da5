"""The kinds of 2.x that extend the Gateway API, with most of the fields that the CRDs of 2.2 require."""

from collections.abc import Iterator

import pytest

from e2e.cluster.client import KubeApiError, KubeClient, Manifest, wait_until
from e2e.definitions.gateway_kinds import ANYTHING, definition, remove_definitions

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


def _object(*required: str, **properties: Manifest) -> Manifest:
    """Return the schema of an object that may also have other fields."""
    return {**ANYTHING, **({"required": list(required)} if required else {}), "properties": properties}


def _list(item: Manifest) -> Manifest:
    return {"type": "array", "items": item}


_TARGETS = _list(_object("group", "kind", "name"))
_PLUGINS = _list(_object("name"))
_AUTH = _object("type", "adminKey")
_CREDENTIAL = _object("type", secretRef=_object("name"))

SPECS = {
    "HTTPRoutePolicy": _object("targetRefs", targetRefs=_TARGETS),
    "L4RoutePolicy": _object("targetRefs", targetRefs=_TARGETS, plugins=_PLUGINS),
    "BackendTrafficPolicy": _object(
        "targetRefs", targetRefs=_TARGETS, loadbalancer=_object("type"), healthCheck=_object("active")
    ),
    "PluginConfig": _object("plugins", plugins=_PLUGINS),
    "Consumer": _object(gatewayRef=_object("name"), credentials=_list(_CREDENTIAL), plugins=_PLUGINS),
    "GatewayProxy": _object(
        "provider", provider=_object("type", "controlPlane", controlPlane=_object("auth", auth=_AUTH))
    ),
}
"""Kind → schema of its spec. Two rules of GatewayProxy are conditions on `type` in 2.2, which has only one value."""


def install(api: KubeClient) -> None:
    """Install the CRDs, and return once the API server serves them."""
    api.apply([definition(kind, plural, GROUP, [VERSION], _object(spec=SPECS[kind])) for kind, plural in KINDS.items()])
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
