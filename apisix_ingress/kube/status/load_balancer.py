"""Pure functions for `status.loadBalancer.ingress` of an Ingress: its addresses, and who wrote them."""

from __future__ import annotations

from collections.abc import Sequence

from apisix_ingress.model.json import FrozenJson, JsonObject


def shown(status: FrozenJson) -> list[JsonObject]:
    """Return the addresses that a status has."""
    balancer = status.get("loadBalancer")
    found = balancer.get("ingress") if isinstance(balancer, dict) else None
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def are_equal(some: Sequence[JsonObject], others: Sequence[JsonObject]) -> bool:
    """Say whether two lists hold the same addresses; as in the 1.8 line, in any order."""
    return ranked(some) == ranked(others)


def ranked(addresses: Sequence[JsonObject]) -> list[tuple[str, str, str]]:
    """Return addresses as sorted values that can be compared."""
    return sorted(map(_rank, addresses))


def is_set_by(manager: str, item: JsonObject) -> bool:
    """Say whether a field manager, and no other, owns the addresses of a raw Ingress, by its managedFields."""
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
