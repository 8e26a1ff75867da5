"""Which objects of the Gateway API this controller serves, and how they are translated: for commands and the webhook.

Providers import the same functions themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from apisix_ingress.model.kinds.resource import imported
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from translation.core.options import Options
from translation.core.outcome import Outcome


class _Kind(NamedTuple):
    """How a kind is served.

    Attributes:
        translator: `module:name` of its translation.
        condition: `module:name` of the function that returns whether an object is served.
        otherwise: Why it is not, for messages.
    """

    translator: str
    condition: str
    otherwise: str


_ROUTES, _ENTRY, _EXTENSIONS = (f"translation.gateway.{part}" for part in ("routes", "entry", "extensions"))


def _route(translator: str) -> _Kind:
    condition = f"{_ROUTES}.attachment:has_parent_of_ours"
    return _Kind(f"{_ROUTES}.{translator}", condition, "none of its parentRefs refers to a Gateway of this controller")


def _policy(module: str, translator: str, otherwise: str = "it applies to no object of this controller") -> _Kind:
    return _Kind(f"{_EXTENSIONS}.{module}:{translator}", f"{_EXTENSIONS}.{module}:is_policy_of_ours", otherwise)


_KINDS: Mapping[str, _Kind] = {
    "Gateway": _Kind(
        f"{_ENTRY}.gateway:translate_gateway",
        f"{_ENTRY}.owned:is_our_gateway",
        "its GatewayClass does not exist or belongs to another controller",
    ),
    "HTTPRoute": _route("http:translate_http_route"),
    "GRPCRoute": _route("http:translate_http_route"),
    "TLSRoute": _route("streams:translate_stream_route"),
    "TCPRoute": _route("streams:translate_stream_route"),
    "UDPRoute": _route("streams:translate_stream_route"),
    "HTTPRoutePolicy": _policy("http_route_policy", "translate_http_route_policy"),
    "L4RoutePolicy": _policy("l4_route_policy", "translate_l4_route_policy"),
    "BackendTrafficPolicy": _policy(
        "backend_traffic_policy", "translate_backend_traffic_policy", "its Services do not exist"
    ),
    "Consumer": _Kind(
        f"{_EXTENSIONS}.gateway_consumer:translate_gateway_consumer",
        f"{_EXTENSIONS}.gateway_consumer:is_consumer_of_ours",
        "its gatewayRef does not refer to a Gateway of this controller",
    ),
}

JUDGED = frozenset(_KINDS)
"""The kinds whose objects are served under a condition."""


def why_not_served(obj: CustomObject, view: View, options: Options) -> str:
    """Return why no Gateway of this controller serves an object; empty if one does."""
    kind = _KINDS[obj.meta.kind]
    return "" if imported(kind.condition)(obj, view, options) else kind.otherwise


def translate_served(obj: CustomObject, view: View, options: Options) -> Outcome:
    """Return the translation of an object that is served."""
    found: Outcome = imported(_KINDS[obj.meta.kind].translator)(obj, view, options)
    return found
