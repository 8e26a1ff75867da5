"""L4RoutePolicy → plugins of the stream routes of TCPRoutes, UDPRoutes and TLSRoutes. The oldest policy applies."""

from __future__ import annotations

from collections.abc import Iterator

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import CustomObject, why_first
from apisix_ingress.state.view import View
from crds import SpecError
from crds.v1alpha1.policies import L4RoutePolicySpec
from translation.core.builder import Builder
from translation.core.context import Context
from translation.core.options import Options
from translation.core.outcome import Outcome
from translation.core.text_checks import check_object, check_spec
from translation.gateway.entry.owned import gateways_of
from translation.gateway.extensions.standings import Standing, assessed_policy, named_targets, policies_of
from translation.gateway.parsing import spec_of
from translation.plugins.configs import Plugins, translate_plugins

KIND = "L4RoutePolicy"
TARGETS = ("TCPRoute", "UDPRoute", "TLSRoute")


def stream_plugins(draft: Context, route: ObjectKey) -> Plugins:
    """Return the plugins that a policy adds to a route. An invalid policy makes the route fail."""
    policy = next(iter(policies_of(KIND, route, draft.view)), None)
    if policy is None:
        return {}
    scope = draft.within(policy.meta.kind, policy.meta.namespace)
    plugins = _plugins(policy, scope)
    draft.adopt(scope, "metadata.name", policy.meta.key)
    return plugins


def _plugins(policy: CustomObject, scope: Context) -> Plugins:
    spec = _read(policy, scope)
    return translate_plugins(scope, spec.plugins, "spec.plugins") if spec else {}


def _read(policy: CustomObject, scope: Context) -> L4RoutePolicySpec | None:
    check_spec(scope, policy.spec)
    try:
        spec = spec_of(policy, L4RoutePolicySpec)
    except SpecError as error:
        scope.report_invalid_spec(error)
        return None
    for index, target in enumerate(spec.target_refs):
        if target.section_name:
            path = f"spec.targetRefs[{index}].sectionName"
            scope.error("InvalidSpec", path, "is not supported: a policy applies to all rules of a route; remove it")
    return spec


def translate_l4_route_policy(obj: CustomObject, view: View, options: Options) -> Outcome:
    """Return the assessment of a policy."""
    draft = Builder(obj.meta, view, options)
    check_object(draft, obj)
    _plugins(obj, draft)
    return assessed_policy(draft, list(_found(obj, view, options)))


def is_policy_of_ours(obj: CustomObject, view: View, options: Options) -> bool:
    """Return whether a policy applies to a route of ours."""
    return any(True for _ in _found(obj, view, options))


def _found(obj: CustomObject, view: View, options: Options) -> Iterator[tuple[ObjectKey, ObjectKey, Standing]]:
    for key in named_targets(obj, TARGETS):
        target = view.get(CustomObject, key)
        for above in gateways_of(target, view, options) if target is not None else ():
            yield above, key, _standing(obj, key, view)


def _standing(obj: CustomObject, target: ObjectKey, view: View) -> Standing:
    winner = policies_of(KIND, target, view)[0]
    if winner.meta.key == obj.meta.key:
        return Standing()
    reason = why_first(winner.meta.age, obj.meta.age)
    return Standing("Conflicted", f"{winner.meta.key}, which {reason}, applies to the same route; remove one of them")
