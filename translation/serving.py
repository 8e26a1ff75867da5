"""Why an object is not served, and how the kinds of the Gateway API are translated: for commands and the webhook.

Providers import the same functions themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.gateway_api import GATEWAY_KINDS
from apisix_ingress.model.objects import CustomObject, IngressClass
from apisix_ingress.state.view import View
from translation.core.options import Options
from translation.core.outcome import Outcome
from translation.core.scope import CLASS_ANNOTATION, class_is_ours, in_scope, written_class
from translation.gateway.entry.gateway import translate_gateway
from translation.gateway.entry.owned import has_parent_of_ours, is_our_gateway
from translation.gateway.extensions import backend_traffic_policy, http_route_policy, l4_route_policy
from translation.gateway.extensions.gateway_consumer import is_consumer_of_ours, translate_gateway_consumer
from translation.gateway.routes.http import translate_http_route
from translation.gateway.routes.streams import translate_stream_route
from translation.nginx.classes import why_not_as_nginx


class _Kind(NamedTuple):
    """How a kind is served: its translation, whether an object is served, and else why not, for messages."""

    translate: Callable[[CustomObject, View, Options], Outcome]
    is_served: Callable[[CustomObject, View, Options], bool]
    otherwise: str


_NO_PARENT = "none of its parentRefs refers to a Gateway of this controller"
_NO_TARGET = "it applies to no object of this controller"
_HTTP = _Kind(translate_http_route, has_parent_of_ours, _NO_PARENT)
_STREAM = _Kind(translate_stream_route, has_parent_of_ours, _NO_PARENT)
_KINDS: Mapping[str, _Kind] = {
    "Gateway": _Kind(
        translate_gateway, is_our_gateway, "its GatewayClass does not exist or belongs to another controller"
    ),
    "HTTPRoute": _HTTP,
    "GRPCRoute": _HTTP,
    "TLSRoute": _STREAM,
    "TCPRoute": _STREAM,
    "UDPRoute": _STREAM,
    "HTTPRoutePolicy": _Kind(
        http_route_policy.translate_http_route_policy, http_route_policy.is_policy_of_ours, _NO_TARGET
    ),
    "L4RoutePolicy": _Kind(l4_route_policy.translate_l4_route_policy, l4_route_policy.is_policy_of_ours, _NO_TARGET),
    "BackendTrafficPolicy": _Kind(
        backend_traffic_policy.translate_backend_traffic_policy,
        backend_traffic_policy.is_policy_of_ours,
        "its Services do not exist",
    ),
    "Consumer": _Kind(
        translate_gateway_consumer,
        is_consumer_of_ours,
        "its gatewayRef does not refer to a Gateway of this controller",
    ),
}

JUDGED = frozenset(_KINDS)
"""The kinds whose objects are served under a condition."""


def why_left_out(obj: CustomObject, view: View, options: Options) -> str:
    """Return the reason why an object is not served, for messages; empty if it is."""
    if not in_scope(obj.meta.namespace, view, options):
        return "its namespace is not selected"
    if obj.meta.kind in GATEWAY_KINDS:
        kind = _KINDS.get(obj.meta.kind)
        return "" if kind is None or kind.is_served(obj, view, options) else kind.otherwise
    if class_is_ours(obj, view, options):
        return ""
    if (why := why_not_as_nginx(obj, view, options)) is not None:
        return why
    name = written_class(obj)
    if not name:
        return "it has no class"
    is_named = obj.meta.kind == "Ingress" and CLASS_ANNOTATION not in obj.meta.annotations
    if is_named and view.get(IngressClass, ObjectKey("IngressClass", "", name)) is None:
        return f"there is no IngressClass {name}: correct spec.ingressClassName, unless it is for another controller"
    return f"ingress class {name} is served by another controller"


def translate_served(obj: CustomObject, view: View, options: Options) -> Outcome:
    """Return the translation of an object that is served."""
    return _KINDS[obj.meta.kind].translate(obj, view, options)
