"""Rules that only `lint` has: parts of a manifest without effect. A rule reports only certain cases."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from apisix_ingress.diagnostics.collect.offline import Outcome
from apisix_ingress.lint.matches import pattern_problems
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.resource import imported
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.objects import CustomObject, KubeObject
from apisix_ingress.model.problem import Problem
from apisix_ingress.state.view import View
from apisix_ingress.webhook.checks.ignored_annotations import TrackedAnnotations, useless_annotations
from translation.core.options import Options
from translation.core.scope import CLASS_ANNOTATION, class_is_ours, in_scope
from translation.nginx.classes import why_not_as_nginx


def watched(objects: Iterable[KubeObject]) -> dict[ObjectKey, KubeObject]:
    """Return objects that record which annotations were looked up, for kinds with annotations of this controller."""
    return {item.meta.key: _watched(item) for item in objects}


def _watched(item: KubeObject) -> KubeObject:
    if not isinstance(item, CustomObject) or not RESOURCES[item.meta.kind].annotated:
        return item
    return replace(item, meta=replace(item.meta, annotations=TrackedAnnotations(item.meta.annotations)))


def useless(
    objects: Mapping[ObjectKey, KubeObject], left_out: Iterable[ObjectKey]
) -> Iterator[tuple[ObjectKey, Problem]]:
    """Yield the parts without effect in served objects; call it after they have been translated."""
    strangers = set(left_out)
    for key, item in objects.items():
        rule = RESOURCES[key.kind].lint
        if rule and isinstance(item, CustomObject) and key not in strangers:
            yield from ((key, problem) for problem in imported(rule)(item))


def never_matching(objects: Mapping[ObjectKey, KubeObject], outcome: Outcome) -> Iterator[tuple[ObjectKey, Problem]]:
    """Yield the conditions of served objects that never hold, by their records."""
    for key, item in objects.items():
        if isinstance(item, CustomObject):
            records = outcome.world.desired.of_owner(key).values()
            yield from ((key, problem) for problem in pattern_problems(item, records))


def for_nginx(objects: Iterable[KubeObject], view: View, options: Options) -> frozenset[ObjectKey]:
    """Return the Ingresses for ingress-nginx in watched namespaces, whether they are served or not."""
    return frozenset(
        item.meta.key
        for item in objects
        if isinstance(item, CustomObject)
        and in_scope(item.meta.namespace, view, options)
        and not class_is_ours(item, view, options)
        and why_not_as_nginx(item, view, options) is not None
    )


def ingress_problems(item: CustomObject) -> Iterator[Problem]:
    """Yield annotations without effect, and a class that is specified twice."""
    annotations = item.meta.annotations
    if isinstance(annotations, TrackedAnnotations):
        yield from useless_annotations(annotations)
    named, annotated = item.spec.get("ingressClassName"), annotations.get(CLASS_ANNOTATION)
    if named and annotated and named != annotated:
        message = f"has no effect: annotation {CLASS_ANNOTATION} ({annotated}) takes precedence; remove one of them"
        yield Problem("ClassTwice", message, "spec.ingressClassName", "warning")


def proxy_problems(item: CustomObject) -> Iterator[Problem]:
    """Yield the setting of a GatewayProxy that has no effect; 2.x would apply it."""
    if item.spec.get("publishService") and item.spec.get("statusAddress"):
        message = "has no effect: statusAddress takes precedence; remove one of them"
        yield Problem("SettingWithoutEffect", message, "spec.publishService", "warning")


def route_problems(item: CustomObject) -> Iterator[Problem]:
    """Yield the rules that match exactly the requests of an earlier one, at the same priority."""
    rules = item.spec.get("http")
    seen: dict[str, int] = {}
    for index, rule in enumerate(rules if isinstance(rules, list) else ()):
        match = rule.get("match") if isinstance(rule, dict) else None
        if isinstance(match, dict):
            first = seen.setdefault(json.dumps([match, rule.get("priority") or 0], sort_keys=True), index)
            if first != index:
                message = f"has the same match and priority as spec.http[{first}]: only one of them gets the requests"
                advice = "remove one, or set different priorities"
                yield Problem("MatchTwice", f"{message}; {advice}", f"spec.http[{index}].match", "warning")
