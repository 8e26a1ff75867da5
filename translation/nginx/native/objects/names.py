"""Names of manifests, and their common fields."""

from __future__ import annotations

from apisix_ingress.model.json import JsonObject
from translation.nginx.options import CATCH_ALL

_GATEWAY = "gateway.networking.k8s.io/v1"
_NATIVE = "apisix.apache.org/v2"


def object_name(host: str) -> str:
    """Return the name of the objects of a host."""
    return "any-host" if host == CATCH_ALL else host.replace("*", "wildcard")


def manifest(kind: str, namespace: str, name: str, spec: JsonObject, **metadata: JsonObject) -> JsonObject:
    """Return an object."""
    return {
        "apiVersion": _NATIVE if kind.startswith("Apisix") else _GATEWAY,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": spec,
    }
