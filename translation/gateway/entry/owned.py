"""GatewayClasses and Gateways of this controller, which objects lead to them, and which namespaces they select."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from apisix_ingress.model.json import list_in, mapping_in
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import CustomObject, Namespace
from apisix_ingress.state.view import View
from crds import SpecError
from crds.gateway.common import GATEWAY_GROUP, ParentReference
from crds.gateway.gateways import ListenerSetSpec, Namespaces
from translation.core.options import Options
from translation.core.scope import in_scope
from translation.gateway.parsing import spec_of


def is_our_class(obj: CustomObject | None, options: Options) -> bool:
    """Return whether a GatewayClass names this controller."""
    return obj is not None and obj.spec.get("controllerName") == options.ingress_class_controller


def our_gateway(key: ObjectKey, view: View, options: Options) -> CustomObject | None:
    """Return a Gateway with a class of this controller, or None."""
    obj = view.get(CustomObject, key)
    return obj if obj is not None and is_our_gateway(obj, view, options) else None


def is_our_gateway(obj: CustomObject, view: View, options: Options) -> bool:
    """Return whether a Gateway has a class of this controller and is in a watched namespace."""
    name = obj.spec.get("gatewayClassName")
    if not isinstance(name, str) or not in_scope(obj.meta.namespace, view, options):
        return False
    return is_our_class(view.get(CustomObject, ObjectKey("GatewayClass", "", name)), options)


def parent_of(listener_set: CustomObject) -> ObjectKey | None:
    """Return the Gateway that a ListenerSet names as its parent; None if its parent is not a Gateway."""
    try:
        parent = spec_of(listener_set, ListenerSetSpec).parent_ref
    except SpecError:
        return None
    if (parent.group, parent.kind) != (GATEWAY_GROUP, "Gateway"):
        return None
    return ObjectKey("Gateway", parent.namespace or listener_set.meta.namespace, parent.name)


def has_parent_of_ours(obj: CustomObject, view: View, options: Options) -> bool:
    """Return whether a route, which may be one that cannot be read, names a Gateway of ours."""
    return next(gateways_of(obj, view, options), None) is not None


def gateways_of(obj: CustomObject, view: View, options: Options) -> Iterator[ObjectKey]:
    """Yield the Gateways of ours that a route names, itself or by a ListenerSet; the route may be invalid."""
    for each in map(mapping_in, list_in(obj.spec.get("parentRefs"))):
        kind, name = each.get("kind", "Gateway"), each.get("name")
        namespace = each.get("namespace") or obj.meta.namespace
        if isinstance(name, str) and isinstance(kind, str) and isinstance(namespace, str):
            reference = ParentReference.model_construct(
                group=each.get("group", GATEWAY_GROUP), kind=kind, namespace=namespace, name=name
            )
            if (found := gateway_of(obj, reference, view, options)) is not None:
                yield found[0].meta.key


def gateway_of(
    obj: CustomObject, reference: ParentReference, view: View, options: Options
) -> tuple[CustomObject, ObjectKey] | None:
    """Return the Gateway of this controller that a reference leads to, and the object that it names."""
    if reference.group != GATEWAY_GROUP or reference.kind not in ("Gateway", "ListenerSet"):
        return None
    key = ObjectKey(reference.kind, reference.namespace or obj.meta.namespace, reference.name)
    gateway: ObjectKey | None = key
    if key.kind == "ListenerSet":
        found = view.get(CustomObject, key)
        gateway = parent_of(found) if found is not None else None
    ours = our_gateway(gateway, view, options) if gateway is not None else None
    return (ours, key) if ours is not None else None


def allows_namespace(allowed: Namespaces, own: str, other: str, view: View) -> bool:
    """Return whether objects of a namespace may attach.

    Args:
        allowed: The setting of the listener or Gateway.
        own: The namespace of the listener or Gateway.
        other: The namespace of the object to attach.
        view: Provides the labels of namespaces.
    """
    if allowed.from_ == "All":
        return True
    if allowed.from_ == "Same":
        return own == other
    if allowed.from_ == "None" or allowed.selector is None:
        return False
    found = view.get(Namespace, ObjectKey("Namespace", "", other))
    return found is not None and _selects(allowed.selector, found.meta.labels)


def _selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Return whether a label selector in the format of manifests matches."""
    wanted = mapping_in(selector.get("matchLabels"))
    expressions = (mapping_in(each) for each in list_in(selector.get("matchExpressions")))
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _holds(labels.get(str(each.get("key"))), each.get("operator"), list_in(each.get("values")))
        for each in expressions
    )


def _holds(value: str | None, operator: object, values: Iterable[object]) -> bool:
    match operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return False
