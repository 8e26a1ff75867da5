"""One object: its problems, its records, the Services that they lead to."""

from __future__ import annotations

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.indexes import NGINX_HOST_INDEX
from apisix_ingress.statuspage.inputs import PageInputs
from apisix_ingress.statuspage.record_masking import clean
from apisix_ingress.statuspage.snapshot import Snapshot
from apisix_ingress.statuspage.summary.findings import Finding, problem_findings
from apisix_ingress.statuspage.views.gateway_api import conditions, listener_rows, parent_rows
from apisix_ingress.statuspage.views.presentation import MOST_LISTED, NGINX_HOST, object_reference
from apisix_ingress.statuspage.views.problems import finding_row
from apisix_ingress.statuspage.views.records import record_row


def thing(facts: PageInputs, snapshot: Snapshot, key: ObjectKey) -> JsonObject | None:
    """Return the details of an object; None if it is unknown."""
    world = facts.world
    own, report = world.desired.of_owner(key), world.reports.get(key)
    if report is None and not own:
        return None
    entries = [entry for each in sorted(own) if (entry := snapshot.entries.get(each)) is not None]
    claims = sorted({claim.target for claim in world.claims.claims_of(key)})
    lost = sorted(world.desired.lost(key).items())
    return {
        "object": object_reference(key),
        "problems": [finding_row(each) for each in _findings(facts, snapshot, key)][:MOST_LISTED],
        "conditions": conditions(report.assessment.verdicts) if report and report.assessment else [],
        "listeners": listener_rows(key, report.assessment) if report and report.assessment else [],
        "parents": parent_rows(key, report.assessment) if report and report.assessment else [],
        "records": [record_row(snapshot, entry) for entry in entries[:MOST_LISTED]],
        "more": max(0, len(entries) - MOST_LISTED),
        "lost": [{"record": clean(str(each)), "to": object_reference(winner)} for each, winner in lost][:MOST_LISTED],
        "targets": [object_reference(target) for target in claims[:MOST_LISTED]],
        "sources": [object_reference(each) for each in _sources(facts, key)],
    }


def _findings(facts: PageInputs, snapshot: Snapshot, key: ObjectKey) -> list[Finding]:
    report = facts.world.reports.get(key)
    own = list(problem_findings(facts, key, report.problems)) if report is not None else []
    of_records = (each for each in snapshot.summary.findings if each.object == key and each.record is not None)
    return [*own, *of_records]


def _sources(facts: PageInputs, key: ObjectKey) -> list[ObjectKey]:
    """Return the Ingresses that name a host of ingress-nginx."""
    if key.kind != NGINX_HOST:
        return []
    found = facts.world.stores["Ingress"].by_index(NGINX_HOST_INDEX, key.name)
    return sorted(each.meta.key for each in found)[:MOST_LISTED]
