"""The overview: the headline, the totals, gateway clusters, what needs attention, and what changed last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from itertools import islice

from apisix_ingress.gateway.sync.comparison.audit import REMEDY
from apisix_ingress.gateway.sync.observer import HEADLINES
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.states import ClusterStatus
from apisix_ingress.statuspage import conflicting_objects as rivals
from apisix_ingress.statuspage.inputs import PageCluster, PageInputs
from apisix_ingress.statuspage.record_masking import clean
from apisix_ingress.statuspage.snapshot import Snapshot
from apisix_ingress.statuspage.summary.entry import Entry
from apisix_ingress.statuspage.views.changes import change_row, recent_changes
from apisix_ingress.statuspage.views.headline import headline, tiles
from apisix_ingress.statuspage.views.presentation import MOST_LISTED, rfc3339
from apisix_ingress.statuspage.views.problems import all_findings, grouped, problem_counts
from apisix_ingress.statuspage.views.records import STATES, record_reference

MOST_FINDINGS, MOST_CHANGES = 5, 6
"""Maximum number of items from lists that have a page of their own."""


def replica(facts: PageInputs) -> JsonObject:
    """Return the identity of this process and of the leader."""
    who = facts.controller
    return {
        "identity": clean(facts.identity),
        "version": facts.version,
        "leads": who.leads,
        "leader": clean(who.leader),
        "pod": clean(who.leader.rpartition("_")[0]),
        "ready": who.is_ready,
        "revision": facts.revision,
    }


def overview(facts: PageInputs, snapshot: Snapshot) -> JsonObject:
    """Return the overview."""
    refused, refused_more = _listed(snapshot, "rejected")
    waiting, waiting_more = _listed(snapshot, "waiting")
    findings, changes = all_findings(facts, snapshot), recent_changes(facts)
    urgent = grouped(findings)
    return {
        "replica": replica(facts),
        "headline": headline(facts, snapshot, findings),
        "tiles": tiles(facts, snapshot),
        "attention": urgent[:MOST_FINDINGS],
        "attention_total": len(findings),
        "attention_shown": sum(each["count"] for each in urgent[:MOST_FINDINGS]),
        "severities": problem_counts(findings),
        "changes": [change_row(snapshot, each) for each in changes[:MOST_CHANGES]],
        "changes_total": len(changes),
        "clusters": [_cluster(facts, snapshot, cluster) for cluster in facts.clusters],
        "quarantined": refused,
        "quarantined_more": refused_more,
        "waiting": waiting,
        "waiting_more": waiting_more,
        "problems": sum(problem.severity != "warning" for _, problem in snapshot.problems),
        "warnings": sum(problem.severity == "warning" for _, problem in snapshot.problems),
        "conflicts": rivals.count(snapshot),
        "watches": [_watch(facts, name, age) for name, age in sorted(facts.controller.watches.items())],
        "trouble": [
            {"what": clean(what), "why": clean(why)} for what, why in sorted(facts.controller.problems.items())
        ],
    }


def _cluster(facts: PageInputs, snapshot: Snapshot, cluster: PageCluster) -> JsonObject:
    happened, counts, outage = facts.journal.of(cluster.name), snapshot.counts[cluster.name], facts.outage(cluster)
    return {
        "name": cluster.name,
        "state": _cluster_state(facts, cluster, counts),
        "reason": clean(outage.cause if outage is not None else ""),
        "since": rfc3339(outage.since if outage is not None else None),
        "headline": HEADLINES[outage.reason].capitalize() if outage is not None else "",
        "refused": clean(facts.controller.refused.get(cluster.name, "")),
        "version": clean(cluster.version),
        "breaker_open": outage is not None,
        "records": {"wanted": counts.total(), **{state: counts[state] for state in STATES}},
        "backlog": cluster.backlog,
        "last_audit": rfc3339(happened.compared_at),
        "audit_failed": rfc3339(happened.failed_at),
        "audit_failure": clean(cluster.audit_failure if cluster.taken_over else ""),
        "held": happened.held if cluster.taken_over else 0,
        "held_remedy": REMEDY if happened.held and cluster.taken_over else "",
        "repairs": [{"at": rfc3339(each.at), "records": each.records} for each in reversed(happened.repairs)],
    }


def _cluster_state(facts: PageInputs, cluster: PageCluster, counts: Counter[str]) -> ClusterStatus:
    if (outage := facts.outage(cluster)) is not None:
        return outage.reason
    if not cluster.taken_over:
        if facts.controller.leads:
            return "starting"
        return "admin key rejected" if cluster.name in facts.controller.refused else "not written by this replica"
    if cluster.backlog or counts["pending"]:
        return "writing"
    if facts.journal.of(cluster.name).failed_at is not None:
        return "audit failed"
    return "in sync" if counts["applied"] == counts.total() else "incomplete"


def _watch(facts: PageInputs, name: str, age: float) -> JsonObject:
    return {"kind": name, "heard_at": rfc3339(facts.clock.now() - timedelta(seconds=age))}


def _listed(snapshot: Snapshot, kind: str) -> tuple[list[JsonObject], int]:
    """Return the first records in a state, and the number of further ones."""
    rows = (row for entry in snapshot.unwell for row in _in_state(entry, kind))
    shown = list(islice(rows, MOST_LISTED))
    return shown, sum(counts[kind] for counts in snapshot.counts.values()) - len(shown)


def _in_state(entry: Entry, kind: str) -> Iterator[JsonObject]:
    for cluster, state in entry.states:
        if state.kind == kind:
            brief = record_reference(entry)
            yield {
                **{name: brief[name] for name in ("kind", "id", "name", "owner")},
                "cluster": cluster,
                "message": clean(state.message),
            }
