"""Native manifests for Ingresses of ingress-nginx, and the records generated from these."""

from __future__ import annotations

from typing import Any

from apisix_ingress.diagnostics.collect.offline import Outcome, settle, stored
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.objects import CustomObject
from tests.unit.translation.nginx.objects import CLASS, OPTIONS, SERVICE
from translation.core.options import Options
from translation.nginx.native.model import Target
from translation.nginx.native.write import Manifests, native_manifests

GATEWAY_CLASS = {
    "kind": "GatewayClass",
    "metadata": {"name": "apisix"},
    "spec": {"controllerName": "apisix.apache.org/apisix-ingress-controller"},
}


def written(target: Target, *objects: dict[str, Any]) -> Manifests:
    """Return the manifests of Ingresses."""
    assert OPTIONS.nginx is not None
    decoded = [RESOURCES[item["kind"]].decode(item) for item in (CLASS, SERVICE, *objects)]
    items = [item for item in decoded if isinstance(item, CustomObject) and item.meta.kind == "Ingress"]
    return native_manifests(items, stored(decoded, OPTIONS).view(), OPTIONS, OPTIONS.nginx, target)


def served(found: Manifests, *objects: dict[str, Any]) -> Outcome:
    """Return the records of manifests and other objects, without the provider of ingress-nginx."""
    native = [*(item for each in found.hosts.values() for item in each), *found.shared]
    every = (GATEWAY_CLASS, SERVICE, *objects, *native)
    return settle((RESOURCES[item["kind"]].decode(item) for item in every), Options())


def kinds(found: Manifests) -> list[str]:
    """Return the kinds of all objects, each once."""
    every = [*(item for each in found.hosts.values() for item in each), *found.shared]
    return sorted({item["kind"] for item in every})


def notes(found: Manifests, effect: str) -> list[str]:
    """Return the reasons of notes with an effect."""
    return [each.reason for each in found.notes if each.effect == effect]
