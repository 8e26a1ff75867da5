"""`status.loadBalancer.ingress` of an Ingress: what it holds, and who wrote it. Pure; `status` writes it."""

from __future__ import annotations

from collections.abc import Sequence

from apisix_ingress.model.json import FrozenJson, JsonObject


def shown(status: FrozenJson) -> list[JsonObject]:
    """Return the addresses that a status has."""
    balancer = status.get("loadBalancer")
    found = balancer.get("ingress") if isinstance(balancer, dict) else None
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def are_equal(some: Sequence[JsonObject], others: Sequence[JsonObject]) -> bool:
    """Say whether two lists hold the same addresses; as in the 1.8 line the order is nobody's business."""
    return ranked(some) == ranked(others)


def ranked(addresses: Sequence[JsonObject]) -> list[tuple[str, str, str]]:
    """Return addresses in an order that is always the same, as values to compare."""
    return sorted(map(_rank, addresses))


def is_set_by(manager: str, item: JsonObject) -> bool:
    """Say whether a field manager, and no other, wrote the addresses in a raw Ingress, by what the API server keeps."""
    entries = (item.get("metadata") or {}).get("managedFields") or ()
    writers = {entry.get("manager") for entry in entries if "f:ingress" in _field(entry, "f:status", "f:loadBalancer")}
    return writers == {manager}


def _field(entry: JsonObject, *names: str) -> JsonObject:
    found: JsonObject = entry.get("fieldsV1") or {}
    for name in names:
        found = found.get(name) or {}
    return found


def _rank(address: JsonObject) -> tuple[str, str, str]:
    return str(address.get("hostname") or ""), str(address.get("ip") or ""), repr(address.get("ports") or "")
