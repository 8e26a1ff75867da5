"""Grants: whether a namespace permits references from other namespaces (ReferenceGrant of the Gateway API)."""

from __future__ import annotations

from typing import NamedTuple

from apisix_ingress.model.keys import IndexKey, ObjectKey
from apisix_ingress.model.kinds.indexes import GRANTS_BY_NAMESPACES
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.objects import ReferenceGrant
from apisix_ingress.state.view import View


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


def _allows(grant: ReferenceGrant, reference: Reference) -> bool:
    source = (RESOURCES[reference.kind].group, reference.kind, reference.namespace)
    group, (kind, _, name) = RESOURCES[reference.target.kind].group, reference.target
    targets = ((group, kind, name), (group, kind, ""))
    return source in grant.sources and any(target in grant.targets for target in targets)
