"""Ownership: whether an object is ours, by its class and by the labels of its namespace.

The class rules are those of the 1.8 line (v1-behaviour.md §2.8, §6.2), widened by IngressClass objects: one whose
`spec.controller` is ours counts as ours by any name, and its default-class annotation is honoured.
"""

from __future__ import annotations

from apisix_ingress.model.keys import IndexKey, ObjectKey
from apisix_ingress.model.objects import CustomObject, IngressClass, KubeObject, Namespace
from apisix_ingress.model.resources import DEFAULT_CLASS
from apisix_ingress.state.view import View
from translation.core.options import ANY_CLASS, Options

CLASS_ANNOTATION = "kubernetes.io/ingress.class"
INGRESS_CLASS_OF_ANY = "apisix"
"""The class of an Ingress that is ours when every class of custom resources is."""


def is_ours(obj: KubeObject, view: View, options: Options) -> bool:
    """Say whether an object is ours to translate; a withdrawn one is handled by its provider."""
    return in_scope(obj.meta.namespace, view, options) and class_is_ours(obj, view, options)


def why_left_out(obj: CustomObject, view: View, options: Options) -> str:
    """Return why an object is not ours, for people; empty if it is."""
    if not in_scope(obj.meta.namespace, view, options):
        return "its namespace is not selected"
    if class_is_ours(obj, view, options):
        return ""
    name = written_class(obj)
    return f"its class ({name}) is not ours" if name else "it has no class"


def written_class(obj: CustomObject) -> str:
    """Return the class as the author of an object wrote it; only an Ingress may have it in an annotation."""
    annotated = obj.meta.annotations.get(CLASS_ANNOTATION) if obj.meta.kind == "Ingress" else None
    return annotated or class_of(obj)


def in_scope(namespace: str, view: View, options: Options) -> bool:
    """Say whether a namespace is watched; cluster-scoped objects have none and always are."""
    selector = options.namespace_selector
    if not namespace or not selector.requirements:
        return True
    found = view.get(Namespace, ObjectKey("Namespace", "", namespace))
    return found is not None and selector.matches(found.meta.labels)


def class_is_ours(obj: KubeObject, view: View, options: Options) -> bool:
    """Say whether the class of an object is ours. Objects of kinds without a class always are."""
    if not isinstance(obj, CustomObject):
        return True
    if obj.meta.kind == "Ingress":
        return _ingress_is_ours(obj, view, options)
    if options.ingress_class == ANY_CLASS:
        return True
    if not options.ingress_class:
        return False
    name = class_of(obj)
    return not name or _name_is_ours(name, options.ingress_class, view, options)


def _ingress_is_ours(obj: CustomObject, view: View, options: Options) -> bool:
    name = obj.meta.annotations.get(CLASS_ANNOTATION) or class_of(obj)
    if not name:
        defaults = view.find(IngressClass, IndexKey("IngressClass", DEFAULT_CLASS, "true"))
        return any(found.controller == options.ingress_class_controller for found in defaults)
    ours = INGRESS_CLASS_OF_ANY if options.ingress_class == ANY_CLASS else options.ingress_class
    return _name_is_ours(name, ours, view, options)


def class_of(obj: CustomObject) -> str:
    """Return the class that the spec of an object names; empty if it names none."""
    name = obj.spec.get("ingressClassName")
    return name if isinstance(name, str) else ""


def _name_is_ours(name: str, ours: str, view: View, options: Options) -> bool:
    if name == ours:
        return True
    found = view.get(IngressClass, ObjectKey("IngressClass", "", name))
    return found is not None and found.controller == options.ingress_class_controller
