"""From a record back to the object it was made for, by what the record itself says.

For people, and to see which namespace held a host before a restart: one that no longer names it gets nothing.

The names are made in `names`; namespaces and object names hold no underscore, which is what sets their parts apart.
"""

from __future__ import annotations

import re

from apisix_ingress.model.json import FrozenJson
from apisix_ingress.model.keys import ObjectKey, RecordKey, RecordKind
from apisix_ingress.model.names import INGRESS, MANAGED_BY, MANAGED_BY_VALUE, is_cut

_SHORT_ID = re.compile(r"[0-9a-f]{1,8}")
_INGRESS_PARTS = 4


def origin(key: RecordKey, body: FrozenJson) -> ObjectKey | None:
    """Return the object that a record says it is for, or None if it does not say, or is not of this program's making.

    A certificate tells its Secret, an upstream its Service or ApisixUpstream.
    """
    labels = body.get("labels")
    if not isinstance(labels, dict) or labels.get(MANAGED_BY) != MANAGED_BY_VALUE:
        return None
    if key.kind == "ssls":
        return _secret(labels)
    name = body.get("name")
    return origin_of_name(key.kind, name) if isinstance(name, str) else None


def origin_of_name(kind: RecordKind, name: str) -> ObjectKey | None:
    """Return the object that the name of a record tells, or None if it tells none."""
    parts = [] if is_cut(name) else name.split("_")
    if len(parts) < 2 or not all(parts[:2]):
        return None
    match kind:
        case "routes":
            return _of_route(parts)
        case "upstreams":
            return ObjectKey("Service" if len(parts) > 2 else "ApisixUpstream", parts[0], parts[1])
        case "stream_routes":
            return ObjectKey("ApisixRoute", parts[0], parts[1])
        case "plugin_configs":
            return ObjectKey("ApisixPluginConfig", parts[0], parts[1])
    return None


def namespace_of_name(kind: RecordKind, name: str) -> str:
    """Return the namespace that the name of a record tells, even if the rest is cut; empty if it tells none.

    A cut name that begins as those of Ingresses do counts as one of an Ingress.
    """
    if not is_cut(name):
        owner = origin_of_name(kind, name)
        return owner.namespace if owner else ""
    first, second, *_ = (*name.split("_"), "")
    return second if kind == "routes" and first == INGRESS else first


def _of_route(parts: list[str]) -> ObjectKey | None:
    # A route of an ApisixRoute in a namespace "ing" may look the same; people can tell it from its body.
    if len(parts) == _INGRESS_PARTS and parts[0] == INGRESS and _SHORT_ID.fullmatch(parts[3]):
        return ObjectKey("Ingress", parts[1], parts[2])
    return ObjectKey("ApisixRoute", parts[0], parts[1]) if len(parts) > 2 else None


def _secret(labels: FrozenJson) -> ObjectKey | None:
    namespace, name = labels.get("meta_secret_namespace"), labels.get("meta_secret_name")
    return ObjectKey("Secret", str(namespace), str(name)) if namespace and name else None
