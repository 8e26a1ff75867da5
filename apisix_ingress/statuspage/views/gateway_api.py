"""Objects of the Gateway API: listeners of Gateways, and what each route is attached to."""

from __future__ import annotations

from collections.abc import Iterable

from apisix_ingress.model.assessment import Assessment, Verdict
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.runtime.tasks import in_turns
from apisix_ingress.statuspage.inputs import PageInputs
from apisix_ingress.statuspage.record_masking import clean
from apisix_ingress.statuspage.views.presentation import object_reference, page_of, paging

WANTED = frozenset({"Accepted", "Programmed", "ResolvedRefs"})
"""Conditions that are true where everything is right; others, such as Conflicted, are false."""


async def gateway_api(facts: PageInputs, query: str, page: int) -> JsonObject:
    """Return listeners, and a page of the routes with their parents."""
    words = query.lower().split()
    listeners: list[JsonObject] = []
    routes: list[JsonObject] = []
    classes: list[JsonObject] = []
    async for key in in_turns(sorted(key for key, each in facts.world.reports.items() if each.assessment is not None)):
        report = facts.world.reports.get(key)
        if report is None or report.assessment is None or not all(word in str(key).lower() for word in words):
            continue
        listeners += listener_rows(key, report.assessment)
        routes += parent_rows(key, report.assessment)
        if key.kind == "GatewayClass":
            classes.append({"object": object_reference(key), **_state(report.assessment.verdicts)})
    return {
        "query": query,
        "classes": classes,
        "listeners": listeners,
        **paging(len(routes), page),
        "items": list(page_of(routes, page)),
    }


def has_gateway_api(facts: PageInputs) -> bool:
    """Return whether there are objects of the Gateway API that this controller serves."""
    stores = facts.world.stores
    return "Gateway" in stores and len(stores["Gateway"]) > 0


def listener_rows(key: ObjectKey, assessment: Assessment) -> list[JsonObject]:
    """Return the listeners of a Gateway or ListenerSet."""
    return [
        {
            "object": object_reference(key),
            "listener": clean(each.name),
            "port": each.port,
            "kinds": list(each.kinds),
            **_state(each.verdicts),
        }
        for each in assessment.listeners
    ]


def parent_rows(key: ObjectKey, assessment: Assessment) -> list[JsonObject]:
    """Return what a route is attached to."""
    return [
        {"object": object_reference(key), "parent": _parent(key, each.reference), **_state(each.verdicts)}
        for each in assessment.parents
    ]


def conditions(verdicts: Iterable[Verdict]) -> list[JsonObject]:
    """Return conditions for display."""
    return [
        {
            "type": each.type,
            "holds": each.holds,
            "good": each.holds == (each.type in WANTED),
            "reason": clean(each.reason),
            "message": clean(each.message),
        }
        for each in verdicts
    ]


def _state(verdicts: Iterable[Verdict]) -> JsonObject:
    shown = conditions(verdicts)
    return {"conditions": shown, "status": "ok" if all(each["good"] for each in shown) else "error"}


def _parent(key: ObjectKey, reference: object) -> JsonObject:
    fields = dict(reference) if isinstance(reference, dict) else {}
    namespace = str(fields.get("namespace") or key.namespace)
    found = object_reference(ObjectKey(str(fields.get("kind") or "Gateway"), namespace, str(fields.get("name", ""))))
    section = fields.get("sectionName") or fields.get("port")
    return {**found, "section": clean(str(section)) if section else ""}
