"""Assessments → status documents: what to write, given the status in the API server.

Entries and conditions of other controllers stay unchanged. A condition keeps the time of its transition while its
status stays the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apisix_ingress.model.assessment import Assessment, ListenerKey, ListenerState, ParentState, Verdict
from apisix_ingress.model.json import FrozenJson, JsonObject, list_in, mapping_in
from apisix_ingress.model.keys import ObjectKey
from crds.gateway.common import GATEWAY_GROUP

ROUTE_KINDS = frozenset({"HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"})

_POLICY_KINDS = ("BackendTLSPolicy", "HTTPRoutePolicy", "L4RoutePolicy", "BackendTrafficPolicy")

ENTRIES = dict.fromkeys(ROUTE_KINDS, ("parents", "parentRef")) | dict.fromkeys(
    _POLICY_KINDS, ("ancestors", "ancestorRef")
)
"""Kind whose status has an entry for each Gateway → the field, and the field of an entry that names the Gateway."""

_MOST_ENTRIES = {"parents": 32, "ancestors": 16}
"""How many entries the API has room for."""

OUR_TYPES = frozenset({"Accepted", "Conflicted", "InsecureFrontendValidationMode", "Programmed", "ResolvedRefs"})
"""Types of conditions that are removed if an assessment does not have them."""

MOST_MESSAGE = 1024
"""Maximum length of a message."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What a status depends on in addition to the assessment.

    Attributes:
        controller: The name of this controller in GatewayClasses.
        generation: The generation that was translated.
        now: RFC 3339, for conditions that change.
        attached: Listener → how many routes are attached to it.
        published: The addresses at which gateways are reached: (type, value).
        elsewhere: Whether another installation of this controller serves the Gateway of a parentRef.
    """

    controller: str
    generation: int
    now: str
    attached: Mapping[ListenerKey, int]
    published: Sequence[tuple[str, str]] = ()
    elsewhere: Callable[[FrozenJson], bool] = lambda reference: False


def status_change(key: ObjectKey, assessment: Assessment | None, status: FrozenJson, moment: Moment) -> JsonObject:
    """Return the fields of a status that have to be written; none if it is as desired.

    Args:
        key: The object.
        assessment: Its assessment; None if another controller serves it: then our entries are removed.
        status: The status in the API server.
        moment: The other inputs.
    """
    if key.kind in ENTRIES:
        name, reference = ENTRIES[key.kind]
        found = list_in(status.get(name))
        entries = _entries(found, reference, assessment, moment)[: _MOST_ENTRIES[name]]
        return {name: entries} if entries != found else {}
    if assessment is None:
        return {}
    wanted = _entry_status(key, assessment, status, moment)
    return {name: value for name, value in wanted.items() if status.get(name) != value}


def _entries(
    found: Iterable[object], reference: str, assessment: Assessment | None, moment: Moment
) -> list[JsonObject]:
    """Return one entry for each Gateway of this controller, after those of other controllers, which stay unchanged."""
    before = [each for each in found if isinstance(each, dict)]
    others = [
        each
        for each in before
        if each.get("controllerName") != moment.controller or moment.elsewhere(mapping_in(each.get(reference)))
    ]
    ours = [each for each in before if each.get("controllerName") == moment.controller]
    wanted = assessment.parents if assessment else ()
    return [*others, *(_entry(each, reference, ours, moment) for each in wanted)]


def _entry(state: ParentState, reference: str, ours: Iterable[JsonObject], moment: Moment) -> JsonObject:
    ref = dict(state.reference)
    before = next((each for each in ours if each.get(reference) == ref), {})
    return {
        reference: ref,
        "controllerName": moment.controller,
        "conditions": _conditions(state.verdicts, before, moment),
    }


def _entry_status(key: ObjectKey, assessment: Assessment, status: FrozenJson, moment: Moment) -> JsonObject:
    found: JsonObject = {"conditions": _conditions(assessment.verdicts, status, moment)}
    if key.kind == "GatewayClass":
        found["supportedFeatures"] = [{"name": each} for each in sorted(assessment.features)]
        return found
    if key.kind == "Consumer":
        return found
    listeners = {each.get("name"): each for each in map(mapping_in, list_in(status.get("listeners")))}
    found["listeners"] = [_listener(key, each, listeners.get(each.name, {}), moment) for each in assessment.listeners]
    if key.kind == "Gateway":
        addresses = moment.published if assessment.addresses is None else assessment.addresses
        found["addresses"] = [{"type": type_, "value": value} for type_, value in addresses]
        if assessment.listener_sets is not None:
            found["attachedListenerSets"] = assessment.listener_sets
    return found


def _listener(key: ObjectKey, state: ListenerState, before: FrozenJson, moment: Moment) -> JsonObject:
    found: JsonObject = {
        "name": state.name,
        "supportedKinds": [{"group": GATEWAY_GROUP, "kind": kind} for kind in state.kinds],
        "attachedRoutes": moment.attached.get(ListenerKey(key, state.name), 0),
        "conditions": _conditions(state.verdicts, before, moment),
    }
    return found


def _conditions(verdicts: Iterable[Verdict], before: FrozenJson, moment: Moment) -> list[JsonObject]:
    """Return the conditions with ours replaced; conditions of other types stay."""
    known = [each for each in list_in(before.get("conditions")) if isinstance(each, dict)]
    ours = {each.type: _condition(each, known, moment) for each in verdicts}
    others = [each for each in known if each.get("type") in ours or each.get("type") not in OUR_TYPES]
    kept: list[Any] = [ours.pop(str(each.get("type")), each) for each in others]
    return [*kept, *ours.values()]


def _condition(verdict: Verdict, known: Iterable[FrozenJson], moment: Moment) -> JsonObject:
    status = "True" if verdict.holds else "False"
    before = next((each for each in known if each.get("type") == verdict.type), {})
    same = before.get("status") == status
    return {
        "type": verdict.type,
        "status": status,
        "reason": verdict.reason,
        "message": verdict.message[:MOST_MESSAGE],
        "observedGeneration": moment.generation,
        "lastTransitionTime": (before.get("lastTransitionTime") if same else None) or moment.now,
    }
