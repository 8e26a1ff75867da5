"""Which Ingresses are served as by ingress-nginx: those of its class, in watched namespaces."""

from __future__ import annotations

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import CustomObject, IngressClass
from apisix_ingress.state.view import View
from translation.core.options import Options
from translation.core.scope import CLASS_ANNOTATION, class_is_ours, class_of, in_scope, written_class
from translation.nginx.options import CONTROLLER, INGRESS_CLASS, NginxOptions


def class_is_nginx(obj: CustomObject, view: View, options: NginxOptions) -> bool:
    """Return whether the class of an Ingress is one that ingress-nginx serves."""
    annotated = obj.meta.annotations.get(CLASS_ANNOTATION)
    if annotated:
        return annotated == options.ingress_class
    name = class_of(obj)
    if not name:
        return options.watch_without_class
    found = view.get(IngressClass, ObjectKey("IngressClass", "", name))
    return found is not None and found.controller == options.controller_class


def is_served(item: CustomObject, view: View, options: Options, nginx: NginxOptions) -> bool:
    """Return whether an Ingress is for ingress-nginx and in a watched namespace; Ingresses of our own class are not."""
    if item.meta.kind != "Ingress":
        return False
    if not class_is_nginx(item, view, nginx) or not in_scope(item.meta.namespace, view, options):
        return False
    return not class_is_ours(item, view, options)


def why_not_as_nginx(obj: CustomObject, view: View, options: Options) -> str | None:
    """Return why an Ingress for ingress-nginx is not served; empty if it is, None if it is not for ingress-nginx."""
    if obj.meta.kind != "Ingress":
        return None
    if options.nginx is not None and class_is_nginx(obj, view, options.nginx):
        return ""
    name = written_class(obj)
    found = view.get(IngressClass, ObjectKey("IngressClass", "", name))
    if (found.controller != CONTROLLER) if found else (name != INGRESS_CLASS):
        return None
    if options.nginx is None:
        return f"ingress class {name} belongs to ingress-nginx: set ingress_nginx.enabled to true to serve it"
    if found is None and CLASS_ANNOTATION not in obj.meta.annotations:
        return f"IngressClass {name} does not exist: create it with spec.controller {options.nginx.controller_class}"
    return None
