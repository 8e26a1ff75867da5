"""Policies: which ones apply to an object, and what their status reports about it.

The oldest policy wins; policies of one age are ordered by name. A policy is looked up by the objects that it applies
to, and assessed by the same functions, so that its status agrees with the records.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from apisix_ingress.model.assessment import Assessment, ParentState, Verdict
from apisix_ingress.model.json import list_in, mapping_in
from apisix_ingress.model.keys import IndexKey, ObjectKey
from apisix_ingress.model.kinds.indexes import BY_TARGET
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View, oldest
from translation.core.builder import Builder
from translation.core.outcome import Outcome

HTTP_ROUTE_POLICY = "HTTPRoutePolicy"
HTTP_ROUTE_POLICY_TARGETS = ("HTTPRoute", "Ingress")
BACKEND_TRAFFIC_POLICY = "BackendTrafficPolicy"

MOST_POLICIES = 16
"""Policies of one kind that apply to one object."""

_ORDER = ("Accepted", "TargetNotFound", "Conflicted", "Invalid")
"""Reasons of the condition Accepted. If several apply, the last one is shown."""


class Standing(NamedTuple):
    """The outcome of a policy for one object: a reason of the condition Accepted, and the message."""

    reason: str = "Accepted"
    message: str = ""


TOO_MANY = Standing("Conflicted", f"{MOST_POLICIES} older policies apply to the same object; merge some of them")


def policies_of(kind: str, target: ObjectKey, view: View) -> tuple[CustomObject, ...]:
    """Return the policies of a kind that name an object, the oldest first."""
    group = RESOURCES[target.kind].group
    index = IndexKey(kind, BY_TARGET, f"{group}/{target.kind}/{target.namespace}/{target.name}")
    return tuple(islice(oldest(view, CustomObject, index), MOST_POLICIES))


def ancestor(key: ObjectKey) -> dict[str, Any]:
    """Return a reference to an object in the status of a policy."""
    return {"group": RESOURCES[key.kind].group, "kind": key.kind, "namespace": key.namespace, "name": key.name}


def assessed_policy(draft: Builder, found: Iterable[tuple[ObjectKey, ObjectKey, Standing]]) -> Outcome:
    """Return the translation of a policy, which has no records.

    Args:
        draft: The translation; its problems make the policy invalid everywhere.
        found: Ancestor, target, and the outcome of the policy for the target.
    """
    broken = next((str(each) for each in draft.problems if each.severity == "error"), "")
    worst: dict[ObjectKey, Standing] = {}
    for above, target, standing in found:
        said = Standing("Invalid", broken) if broken else _about(target, standing)
        worst[above] = max(worst.get(above, Standing()), said, key=_rank)
        if said.reason not in ("Accepted", "Invalid"):
            draft.degrade(said.reason, "spec.targetRefs", said.message)
    states = tuple(ParentState(ancestor(above), (_verdict(said),)) for above, said in sorted(worst.items()))
    return draft.finish()._replace(assessment=Assessment(parents=states))


def _about(target: ObjectKey, standing: Standing) -> Standing:
    return Standing(standing.reason, f"{target}: {standing.message}") if standing.message else standing


def _rank(standing: Standing) -> int:
    return _ORDER.index(standing.reason)


def _verdict(standing: Standing) -> Verdict:
    return Verdict("Accepted", standing.reason == "Accepted", standing.reason, standing.message)


def sections_of(policy: CustomObject, target: ObjectKey) -> list[str]:
    """Return the parts of an object that a policy names; the empty text is the whole object."""
    wanted = (RESOURCES[target.kind].group, target.kind, target.name)
    return [
        str(each.get("sectionName") or "")
        for each in map(mapping_in, list_in(policy.spec.get("targetRefs")))
        if (each.get("group") or "", each.get("kind"), each.get("name")) == wanted
    ]


def named_targets(policy: CustomObject, kinds: Container[str]) -> Iterator[ObjectKey]:
    """Yield the objects of some kinds that a policy names, each once."""
    seen = set()
    for each in map(mapping_in, list_in(policy.spec.get("targetRefs"))):
        kind, name = each.get("kind"), each.get("name")
        if not isinstance(kind, str) or not isinstance(name, str) or kind not in kinds:
            continue
        key = ObjectKey(kind, policy.meta.namespace, name)
        if key not in seen and (each.get("group") or "") == RESOURCES[kind].group:
            seen.add(key)
            yield key
