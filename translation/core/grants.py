"""Grants: whether a namespace permits references from other namespaces (ReferenceGrant of the Gateway API)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from apisix_ingress.model.json import FrozenJson
from apisix_ingress.model.keys import IndexKey, ObjectKey
from apisix_ingress.model.kinds.indexes import GRANTS_BY_NAMESPACES
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.objects import CustomObject, ReferenceGrant
from apisix_ingress.state.holds import Hold
from apisix_ingress.state.view import View

MOST_NAMESPACES = 100
"""Maximum number of other namespaces in an invalid object whose grants are read."""

_SERVICES = "k8s.apisix.apache.org/svc-namespace"


class Reference(NamedTuple):
    """A reference from one namespace to another: the kind and namespace of the referring object, and the target."""

    kind: str
    namespace: str
    target: ObjectKey


class Destination(NamedTuple):
    """A host that an object uses as a destination: the kind and namespace of the object, and the host."""

    kind: str
    namespace: str
    host: str


def is_granted(reference: Reference, view: View) -> bool:
    """Return whether a grant in the target's namespace permits a reference.

    It reads the grants between the two namespaces, so that a new or removed grant causes a new translation.
    """
    value = f"{reference.target.namespace}/{reference.namespace}"
    found = view.find(ReferenceGrant, IndexKey("ReferenceGrant", GRANTS_BY_NAMESPACES, value))
    return any(_allows(grant, reference) for grant in found)


def within_grants(holds: Iterable[Hold], obj: CustomObject, view: View) -> tuple[Hold, ...]:
    """Return the holds of an invalid object, restricted to records that it may still refer to.

    Records of a previous process stay only if they were generated from objects of the same namespace, or of a namespace
    that the object still names and that permits its references. What the object refers to is otherwise unknown.
    """
    own = obj.meta.namespace
    allowed = frozenset({f"{own}/"}.union(*(_granted(obj, each, view) for each in _namespaces(obj) if each != own)))
    return tuple(hold._replace(sources=allowed) for hold in holds)


def _granted(obj: CustomObject, namespace: str, view: View) -> Iterator[str]:
    """Yield the objects of a namespace to which an object may refer: namespace/name, without a name for all."""
    source = (RESOURCES[obj.meta.kind].group, obj.meta.kind, obj.meta.namespace)
    value = f"{namespace}/{obj.meta.namespace}"
    for grant in view.find(ReferenceGrant, IndexKey("ReferenceGrant", GRANTS_BY_NAMESPACES, value)):
        if source in grant.sources:
            yield from (f"{namespace}/{name}" for _, _, name in grant.targets)


def _namespaces(obj: CustomObject) -> Iterable[str]:
    """Return the namespaces that an object names, whatever is wrong with it; at most `MOST_NAMESPACES`."""
    annotated = obj.meta.annotations.get(_SERVICES, "")
    return islice(dict.fromkeys(filter(None, (annotated, *_named(obj.spec)))), MOST_NAMESPACES)


def _named(spec: FrozenJson) -> Iterator[str]:
    todo: list[object] = [spec]
    while todo:
        item = todo.pop()
        if isinstance(item, list):
            todo += item
        elif isinstance(item, dict):
            todo += item.values()
            found = (value for key, value in item.items() if key.lower().endswith("namespace"))
            yield from (value for value in found if isinstance(value, str))


def _allows(grant: ReferenceGrant, reference: Reference) -> bool:
    source = (RESOURCES[reference.kind].group, reference.kind, reference.namespace)
    group, (kind, _, name) = RESOURCES[reference.target.kind].group, reference.target
    targets = ((group, kind, name), (group, kind, ""))
    return source in grant.sources and any(target in grant.targets for target in targets)
