"""What `lint` did not check, with the reason: "no problems" must not include objects that were not checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from apisix_ingress.diagnostics.collect.offline import Outcome
from apisix_ingress.lint.assumed import NOTHING, Assumed
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.objects import CustomObject, IngressClass, KubeObject
from apisix_ingress.model.problem import Problem
from apisix_ingress.state.view import View
from translation.core.options import Options
from translation.core.scope import in_scope, written_class
from translation.gateway.entry.owned import is_our_class, our_gateway, parent_of
from translation.gateway.policies.backend_tls import ancestors_of
from translation.nginx.classes import why_not_as_nginx

NOT_CHECKED = "NotChecked"
"""The code of notes."""


def unchecked(
    objects: Mapping[ObjectKey, KubeObject], outcome: Outcome, options: Options, assumed: Assumed = NOTHING
) -> Iterator[tuple[ObjectKey, Problem]]:
    """Yield a note for each object of the files that was not checked, or of which a part was not."""
    view = outcome.world.view()
    for key, item in objects.items():
        if not isinstance(item, CustomObject):
            continue
        if why := outcome.left_out.get(key) or _of_gateways(item, view, options):
            yield key, _note("", _explained(item, why, view, options))
        else:
            yield from ((key, _note(path, text)) for path, text in assumed.notes.get(key, ()))


def _note(path: str, why: str) -> Problem:
    return Problem(NOT_CHECKED, why, path, "warning")


def _explained(item: CustomObject, why: str, view: View, options: Options) -> str:
    """Return a reason; for an Ingress without a class or with an unknown one, what is missing."""
    if not RESOURCES[item.meta.kind].annotated or not in_scope(item.meta.namespace, view, options):
        return why
    name = written_class(item)
    if not name:
        return "it has no class, and no default IngressClass of this controller is among the files"
    is_known = view.get(IngressClass, ObjectKey("IngressClass", "", name)) is not None
    is_for_nginx = options.nginx is None and why_not_as_nginx(item, view, options)
    if not is_known and not is_for_nginx:
        return f"ingress class {name} is served by another controller, or its IngressClass is not among the files"
    return why


def _of_gateways(item: CustomObject, view: View, options: Options) -> str:
    if item.meta.kind == "GatewayClass":
        return "" if is_our_class(item, options) else "it belongs to another controller"
    if item.meta.kind == "BackendTLSPolicy":
        return (
            "" if any(True for _ in ancestors_of(item, view, options)) else "the files contain no route to its Services"
        )
    if item.meta.kind != "ListenerSet":
        return ""
    parent = parent_of(item)
    return "" if parent and our_gateway(parent, view, options) else "its Gateway is not one of this controller"
