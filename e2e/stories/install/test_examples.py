"""A real API server accepts the objects of every file in `examples/`, apart from those in `REJECTED`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cluster.client import KubeApiError, KubeClient, Manifest, load_manifests, wait_until
from e2e.definitions.gateway_kinds import GROUP, KINDS, definition, exists

pytestmark = pytest.mark.usefixtures("gateway_kinds", "extension_kinds")

FOLDER = Path(__file__).parents[3] / "examples"

REJECTED = {
    # The servers of the quick start have loopback addresses, because it runs without a cluster.
    ("quickstart/backends.yaml", f"EndpointSlice {name}-1"): "may not be in the loopback range"
    for name in ("shop-v1", "shop-v2", "blog")
}
"""File and object → part of the message of the API server, for objects that are rejected on purpose."""


@pytest.fixture
def grants_of_both_versions(cluster_api: KubeClient, gateway_kinds: None) -> None:
    """ReferenceGrants are served in the versions of the Gateway API."""
    cluster_api.apply(definition("ReferenceGrant", versions=["v1", "v1beta1"]))
    path = f"/apis/{GROUP}/v1beta1/{KINDS['ReferenceGrant']}"
    wait_until(lambda: exists(cluster_api, path), bool, "ReferenceGrants of v1beta1 to be served")


def rejections(api: KubeClient, namespace: str) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield file and object, and the message, for each object that the API server rejects; nothing is stored."""
    for path in sorted(FOLDER.rglob("*.yaml")):
        for manifest in load_manifests(path):
            try:
                api.apply(moved(manifest, namespace), strict=True, rehearse=True)
            except KubeApiError as error:
                name = f"{manifest['kind']} {manifest['metadata']['name']}"
                yield (str(path.relative_to(FOLDER)), name), str(error)


def moved(manifest: Manifest, namespace: str) -> Manifest:
    """Return a manifest in a namespace that exists."""
    metadata = manifest["metadata"]
    return manifest if "namespace" not in metadata else {**manifest, "metadata": {**metadata, "namespace": namespace}}


@pytest.mark.usefixtures("grants_of_both_versions")
def test_the_api_server_accepts_every_example(cluster_api: KubeClient, namespace: str) -> None:
    got = dict(rejections(cluster_api, namespace))
    unexpected = [f"{key[0]}: {message}" for key, message in got.items() if REJECTED.get(key, "\0") not in message]
    assert not unexpected, "\n".join(unexpected)
    assert got.keys() == REJECTED.keys(), "remove objects from REJECTED that are accepted"
