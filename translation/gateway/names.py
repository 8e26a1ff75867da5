"""Names of the records of Gateway API objects.

Each begins with the kind. Kinds begin with a capital letter and namespaces cannot, so no other object has such a name.
Names of objects and listeners contain no underscore, so different objects give different names.
"""

from __future__ import annotations

from apisix_ingress.model.assessment import ListenerKey
from apisix_ingress.model.keys import ObjectKey

_ROUTES = ("HTTPRoute", "GRPCRoute")
_LISTENER = 5
"""Parts of the name of a route's record before those of its listener."""


def record_prefix(key: ObjectKey) -> str:
    """Return the common prefix of the names of an object's records."""
    return f"{key.kind}_{key.namespace}_{key.name}_"


def listener_name(listener: ListenerKey) -> str:
    """Return the name of the records of a listener; the Gateway also owns those of its ListenerSets."""
    return f"{record_prefix(listener.owner)}{listener.name}"


def route_name(route: ObjectKey, rule: int | str, match: int, listener: ListenerKey) -> str:
    """Return the name of the record for one match of a route at one listener.

    Args:
        route: The route.
        rule: The rule, or what it matches: then an edit of the rules moves no record to other requests.
        match: Which match of the rule, or which one of the matches of the same requests.
        listener: The listener.
    """
    owner = listener.owner
    at = f"{owner.kind}_{owner.namespace}_{owner.name}_{listener.name}"
    return f"{record_prefix(route)}{rule}_{match}_{at}"


def listener_in(name: str) -> str:
    """Return the listener in the name of the record of a route, as text; empty for other records."""
    parts = name.split("_")
    if len(parts) < _LISTENER + 4 or parts[0] not in _ROUTES:
        return ""
    kind, namespace, owner, listener = parts[_LISTENER : _LISTENER + 4]
    return f"listener {listener} of {ObjectKey(kind, namespace, owner)}"
