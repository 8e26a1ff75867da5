"""Pure functions for the list of conditions in a status."""

from __future__ import annotations

from apisix_ingress.kube.status.text_limits import bounded_message
from apisix_ingress.model.condition import Condition
from apisix_ingress.model.json import FrozenJson, JsonObject


def listed(status: FrozenJson) -> list[JsonObject]:
    """Return the conditions in a status."""
    found = status.get("conditions")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def of_type(status: FrozenJson, type: str) -> JsonObject | None:
    """Return the condition of a type, or None."""
    return next((each for each in listed(status) if each.get("type") == type), None)


def rendered(condition: Condition) -> JsonObject:
    """Return a condition as the API server stores it, without its transition time."""
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": bounded_message(condition.message),
        "observedGeneration": condition.generation,
    }


def differing(stored: JsonObject, wanted: JsonObject) -> frozenset[str]:
    """Return the fields in which a stored condition differs from the desired one."""
    return frozenset(name for name, value in wanted.items() if stored.get(name) != value)


def is_newer(stored: JsonObject, condition: Condition) -> bool:
    """Return whether a stored condition is of a later generation than the desired one."""
    observed = stored.get("observedGeneration")
    return isinstance(observed, int) and observed > condition.generation


def merged(status: FrozenJson, wanted: JsonObject, moment: str) -> list[JsonObject]:
    """Return the list with one condition replaced; the transition time changes only with the status."""
    known, stored = listed(status), of_type(status, wanted["type"])
    kept = stored is not None and stored.get("status") == wanted["status"] and stored.get("lastTransitionTime")
    entry = {**wanted, "lastTransitionTime": kept or moment}
    return [*known, entry] if stored is None else [entry if each is stored else each for each in known]


def has_changed(before: FrozenJson, after: FrozenJson, type: str) -> bool:
    """Return whether the condition of a type changed in more than its generation and transition time."""
    old, new = of_type(before, type), of_type(after, type)
    return old is None or not differing(old, new or {}) <= {"observedGeneration", "lastTransitionTime"}
