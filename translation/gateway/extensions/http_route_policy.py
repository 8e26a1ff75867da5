"""HTTPRoutePolicy → further conditions and the priority of route records of HTTPRoutes and Ingresses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from apisix_ingress.model.json import list_in, mapping_in
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import CustomObject, why_first
from apisix_ingress.state.view import View
from crds import SpecError
from crds.v1alpha1.policies import HttpRoutePolicySpec
from translation.core.builder import Builder
from translation.core.context import Context
from translation.core.options import Options
from translation.core.outcome import Outcome
from translation.core.scope import is_ours
from translation.core.text_checks import check_object, check_spec
from translation.gateway.entry.owned import gateways_of
from translation.gateway.extensions.standings import (
    HTTP_ROUTE_POLICY,
    HTTP_ROUTE_POLICY_TARGETS,
    TOO_MANY,
    Standing,
    assessed_policy,
    named_targets,
    policies_of,
    sections_of,
)
from translation.gateway.parsing import spec_of


@dataclass(slots=True)
class Effect:
    """The effect of policies on the records of one rule.

    Attributes:
        vars: Additional conditions on requests.
        priority: Priority over other routes; None if no policy sets it.
        source: The policy that sets the priority.
    """

    vars: list[Any] = field(default_factory=list)
    priority: int | None = None
    source: CustomObject | None = None


@dataclass(slots=True)
class PolicyEffects:
    """The effect of policies on an object.

    Attributes:
        effects: For each rule.
        standings: The outcome of each policy.
        invalid: Problems of policies that cannot be applied.
    """

    effects: list[Effect]
    standings: dict[ObjectKey, Standing] = field(default_factory=dict)
    invalid: list[tuple[ObjectKey, Context]] = field(default_factory=list)


def rule_effects(draft: Context, obj: CustomObject) -> Sequence[Effect]:
    """Return the effect of policies on the records of each rule of an HTTPRoute, or of an Ingress as a whole.

    An invalid policy makes the object fail: without its conditions, the object would serve requests that the policy
    excludes.
    """
    outcome = outcome_of(obj, draft.view, draft.options)
    for policy, scope in outcome.invalid:
        draft.adopt(scope, "metadata.name", policy)
    return outcome.effects


def outcome_of(obj: CustomObject, view: View, options: Options) -> PolicyEffects:
    """Return the effect of policies on an object."""
    names = _rule_names(obj)
    outcome = PolicyEffects([Effect() for _ in names])
    scope = partial(Context, HTTP_ROUTE_POLICY, obj.meta.namespace, view, options)
    for policy in policies_of(HTTP_ROUTE_POLICY, obj.meta.key, view):
        outcome.standings[policy.meta.key] = _apply(policy, obj, names, outcome, scope())
    return outcome


def _rule_names(obj: CustomObject) -> list[str]:
    if obj.meta.kind == "Ingress":
        return [""]
    return [str(mapping_in(each).get("name") or "") for each in list_in(obj.spec.get("rules")) or [{}]]


def _apply(
    policy: CustomObject, obj: CustomObject, names: Sequence[str], outcome: PolicyEffects, scope: Context
) -> Standing:
    spec = _read(policy, scope)
    if spec is None:
        outcome.invalid.append((policy.meta.key, scope))
        return Standing("Invalid", str(scope.problems[0]))
    sections = set(sections_of(policy, obj.meta.key))
    reached = [
        effect
        for name, effect in zip(names, outcome.effects, strict=True)
        if "" in sections or (name and name in sections)
    ]
    if not reached:
        return Standing("TargetNotFound", f"has no rule named {' or '.join(sorted(sections))}; correct sectionName")
    for effect in reached:
        if effect.source and spec.priority not in (None, effect.priority):
            return _conflict(policy, effect.source)
    for effect in reached:
        effect.vars += spec.vars
        if spec.priority is not None and effect.source is None:
            effect.priority, effect.source = spec.priority, policy
    return Standing()


def _conflict(policy: CustomObject, winner: CustomObject) -> Standing:
    reason = why_first(winner.meta.age, policy.meta.age)
    return Standing("Conflicted", f"{winner.meta.key}, which {reason}, sets another priority; use the same one")


def _read(policy: CustomObject, scope: Context) -> HttpRoutePolicySpec | None:
    check_spec(scope, policy.spec)
    try:
        spec = spec_of(policy, HttpRoutePolicySpec)
    except SpecError as error:
        scope.report_invalid_spec(error)
        return None
    return None if scope.problems else spec


def translate_http_route_policy(obj: CustomObject, view: View, options: Options) -> Outcome:
    """Return the assessment of a policy."""
    draft = Builder(obj.meta, view, options)
    check_object(draft, obj)
    _read(obj, draft)
    return assessed_policy(draft, list(_found(obj, view, options)))


def is_policy_of_ours(obj: CustomObject, view: View, options: Options) -> bool:
    """Return whether a policy applies to an object of ours."""
    return any(True for _ in _found(obj, view, options))


def _found(obj: CustomObject, view: View, options: Options) -> Iterator[tuple[ObjectKey, ObjectKey, Standing]]:
    for key in named_targets(obj, HTTP_ROUTE_POLICY_TARGETS):
        target = view.get(CustomObject, key)
        if target is None:
            continue
        above = list(_ancestors(target, view, options))
        standing = outcome_of(target, view, options).standings.get(obj.meta.key, TOO_MANY) if above else Standing()
        yield from ((each, key, standing) for each in above)


def _ancestors(target: CustomObject, view: View, options: Options) -> Iterator[ObjectKey]:
    if target.meta.kind != "Ingress":
        yield from gateways_of(target, view, options)
    elif is_ours(target, view, options):
        yield target.meta.key
