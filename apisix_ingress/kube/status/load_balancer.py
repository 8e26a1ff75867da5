"""Pure functions for `status.loadBalancer.ingress` of an Ingress: its addresses, and who wrote them."""

from __future__ import annotations

from collections.abc import Sequence

from apisix_ingress.model.json import FrozenJson, JsonObject


def shown(status: FrozenJson) -> list[JsonObject]:
    """Return the addresses in a status."""
    balancer = status.get("loadBalancer")
    found = balancer.get("ingress") if isinstance(balancer, dict) else None
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def are_equal(some: Sequence[JsonObject], others: Sequence[JsonObject]) -> bool:
    """Return whether two lists contain the same addresses in any order, as in 1.8."""
    return ranked(some) == ranked(others)


def ranked(addresses: Sequence[JsonObject]) -> list[tuple[str, str, str]]:
    """Return addresses as sorted values that can be compared."""
    return sorted(map(_rank, addresses))


def is_set_by(manager: str, item: JsonObject) -> bool:
    """Return whether a field manager, and no other, owns the addresses of a raw Ingress, by its managedFields."""
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
