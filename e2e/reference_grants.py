"""The kind ReferenceGrant of the Gateway API, as much of it as the stories need."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from e2e.cluster.client import KubeClient, Manifest

GROUP = "gateway.networking.k8s.io"

DEFINITION: Manifest = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": f"referencegrants.{GROUP}",
        "annotations": {"api-approved.kubernetes.io": "unapproved, as much of it as the stories need"},
    },
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"kind": "ReferenceGrant", "listKind": "ReferenceGrantList", "plural": "referencegrants"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
"""In the one version that newer releases of the Gateway API have."""


@contextmanager
def served(api: KubeClient) -> Iterator[None]:
    """Serve the kind."""
    api.apply(DEFINITION)
    yield
    api.delete("CustomResourceDefinition", DEFINITION["metadata"]["name"])


@pytest.fixture(scope="module")
def reference_grants(cluster_api: KubeClient) -> Iterator[None]:
    """The kind is served during a module."""
    with served(cluster_api):
        yield
