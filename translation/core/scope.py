"""Scope: whether this controller serves an object, by its class and by the labels of its namespace.

The class rules are those of 1.8 (v1-behaviour.md §2.8, §6.2), extended by IngressClass objects: a class whose
`spec.controller` matches is served under any name, and its default-class annotation is honoured.
"""

from __future__ import annotations

from apisix_ingress.model.keys import IndexKey, ObjectKey
from apisix_ingress.model.kinds.indexes import DEFAULT_CLASS
from apisix_ingress.model.objects import CustomObject, IngressClass, KubeObject, Namespace
from apisix_ingress.state.view import View
from translation.core.options import ANY_CLASS, Options

CLASS_ANNOTATION = "kubernetes.io/ingress.class"
INGRESS_CLASS_OF_ANY = "apisix"
"""The class of Ingresses to serve when custom resources of every class are served."""


def is_ours(obj: KubeObject, view: View, options: Options) -> bool:
    """Return whether this controller translates an object; the provider handles a withdrawn one."""
    return in_scope(obj.meta.namespace, view, options) and class_is_ours(obj, view, options)


def written_class(obj: CustomObject) -> str:
    """Return the class as the author of an object wrote it; only an Ingress may have it in an annotation."""
    annotated = obj.meta.annotations.get(CLASS_ANNOTATION) if obj.meta.kind == "Ingress" else None
    return annotated or class_of(obj)


def in_scope(namespace: str, view: View, options: Options) -> bool:
    """Return whether a namespace is selected; cluster-scoped objects always are."""
    selector = options.namespace_selector
    if not namespace or not selector.requirements:
        return True
    found = view.get(Namespace, ObjectKey("Namespace", "", namespace))
    return found is not None and selector.matches(found.meta.labels)


def class_is_ours(obj: KubeObject, view: View, options: Options) -> bool:
    """Return whether this controller serves the class of an object. Kinds without a class are always served."""
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
    """Return the class in the spec of an object; empty if it has none."""
    name = obj.spec.get("ingressClassName")
    return name if isinstance(name, str) else ""


def _name_is_ours(name: str, ours: str, view: View, options: Options) -> bool:
    if name == ours:
        return True
    found = view.get(IngressClass, ObjectKey("IngressClass", "", name))
    return found is not None and found.controller == options.ingress_class_controller
