"""One object: its problems, its records, the Services that they lead to."""

from __future__ import annotations

from apisix_ingress.diagnostics.shortfalls import Shortfalls
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.statuspage.inputs import PageInputs
from apisix_ingress.statuspage.record_masking import clean
from apisix_ingress.statuspage.snapshot import Snapshot
from apisix_ingress.statuspage.summary.findings import undelivered
from apisix_ingress.statuspage.views.gateway_api import conditions, listener_rows, parent_rows
from apisix_ingress.statuspage.views.presentation import MOST_LISTED, object_reference
from apisix_ingress.statuspage.views.problems import finding_row
from apisix_ingress.statuspage.views.records import record_row


def thing(facts: PageInputs, snapshot: Snapshot, key: ObjectKey) -> JsonObject | None:
    """Return the details of an object; None if it is unknown."""
    world = facts.world
    short, report = Shortfalls(world), world.reports.get(key)
    own = short.records(key)
    if report is None and not own:
        return None
    entries = [entry for each in sorted(own) if (entry := snapshot.entries.get(each)) is not None]
    claims = sorted({claim.target for claim in world.claims.claims_of(key)})
    related = set(short.idle_upstreams(key))
    found = [each for each in snapshot.summary.findings if each.object == key or each.record in related]
    found += [each for entry in entries for each in undelivered(facts, entry)]
    lost = sorted(world.desired.lost(key).items())
    return {
        "object": object_reference(key),
        "command": clean(_command(key)),
        "problems": [finding_row(each) for each in found][:MOST_LISTED],
        "conditions": conditions(report.assessment.verdicts) if report and report.assessment else [],
        "listeners": listener_rows(key, report.assessment) if report and report.assessment else [],
        "parents": parent_rows(key, report.assessment) if report and report.assessment else [],
        "records": [record_row(snapshot, entry) for entry in entries[:MOST_LISTED]],
        "more": max(0, len(entries) - MOST_LISTED),
        "lost": [{"record": clean(str(each)), "to": object_reference(winner)} for each, winner in lost][:MOST_LISTED],
        "targets": [object_reference(target) for target in claims[:MOST_LISTED]],
    }


def _command(key: ObjectKey) -> str:
    """Return the command that shows an object with its conditions and Events; empty for a host of ingress-nginx."""
    row = RESOURCES.get(key.kind)
    if row is None:
        return ""
    kind = f"{row.plural}.{row.group}" if row.group else row.plural
    where = f" --namespace {key.namespace}" if key.namespace else ""
    return f"kubectl describe {kind} {key.name}{where}"
