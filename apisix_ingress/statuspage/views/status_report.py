"""The document of the command `status` about this process: gateway clusters, objects with their states, the leader."""

from __future__ import annotations

from datetime import datetime

from apisix_ingress.diagnostics.empty_state import NO_HINT
from apisix_ingress.diagnostics.reports.status import Filter, Wellness, compose, computed_wellness, short_of
from apisix_ingress.diagnostics.shortfalls import NO_ENDPOINTS, Shortfalls
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.runtime.tasks import in_turns
from apisix_ingress.statuspage.inputs import PageCluster, PageInputs
from apisix_ingress.statuspage.record_masking import clean
from apisix_ingress.statuspage.snapshot import Snapshot
from apisix_ingress.statuspage.summary.causes import cause_of_objects, causes_of_records
from apisix_ingress.statuspage.summary.ordering import CHUNK
from apisix_ingress.statuspage.summary.times import emptied_since
from apisix_ingress.statuspage.views.headline import page_hint
from apisix_ingress.statuspage.views.presentation import rfc3339
from providers.status.conditions import Conditions

FOLLOWER = "this replica does not lead, so it does not know the gateways"


async def status_report(facts: PageInputs, snapshot: Snapshot, only: Filter) -> JsonObject:
    """Return the status of the objects that match a filter."""
    conditions, short = Conditions(facts.world, facts.clusters), Shortfalls(facts.world)
    states: dict[ObjectKey, Wellness] = {}
    async for key in in_turns(sorted(filter(only.takes, facts.world.reports)), every=CHUNK):
        if _is_of_users(facts, key):
            states[key] = _state(facts, snapshot, conditions, short, key)
    who = facts.controller
    leader = clean(who.leader)
    return compose(
        states,
        [_cluster(facts, snapshot, each) for each in facts.clusters],
        only,
        controller=clean(facts.options.controller_name),
        leader={
            "lease": "",
            "state": "held" if who.leads or leader else "absent",
            "holder": clean(facts.identity) if who.leads else leader,
            "renewed_seconds_ago": None,
            "problem": "",
        },
        is_led=bool(who.leads or leader),
        unread=[{"kind": clean(what), "reason": clean(why)} for what, why in sorted(who.problems.items())],
        hint=page_hint(facts) if who.is_ready else NO_HINT,
    )


def _is_of_users(facts: PageInputs, key: ObjectKey) -> bool:
    """Return whether users write objects of this kind for the gateways, unlike a Service that they refer to."""
    stores = facts.world.stores
    return key.kind in stores and isinstance(stores[key.kind].get(key), CustomObject)


def _state(
    facts: PageInputs, snapshot: Snapshot, conditions: Conditions, short: Shortfalls, key: ObjectKey
) -> Wellness:
    if not facts.controller.leads and not conditions.is_broken(key):
        return Wellness("pending", "NotLeader", FOLLOWER)
    found = short_of(short, key, computed_wellness(conditions.of(key)))
    if found.state == "ok":
        return found
    since = found.since or rfc3339(_since(facts, snapshot, short, key, found.reason))
    return Wellness(found.state, found.reason, clean(found.message), since)


def _since(facts: PageInputs, snapshot: Snapshot, short: Shortfalls, key: ObjectKey, reason: str) -> datetime | None:
    """Return since when an object has its state."""
    if reason == NO_ENDPOINTS:
        idle = (snapshot.entries[each] for each in short.idle_upstreams(key) if each in snapshot.entries)
        return next((emptied_since(facts, each) for each in idle), None)
    if (cause := cause_of_objects(facts, [key], snapshot.problems_of)) is not None:
        return cause.since
    entries = [entry for record in short.records(key) if (entry := snapshot.entries.get(record)) is not None]
    return causes_of_records(facts, entries).since


def _cluster(facts: PageInputs, snapshot: Snapshot, cluster: PageCluster) -> JsonObject:
    counts, outage = snapshot.counts[cluster.name], facts.outage(cluster)
    is_known = cluster.taken_over and outage is None
    states = {state: number for state, number in sorted(counts.items()) if state != "applied"}
    refused = facts.controller.refused.get(cluster.name, "")
    trouble = outage.cause if outage is not None else refused or (cluster.audit_failure if is_known else "")
    return {
        "name": cluster.name,
        "url": "",
        "reachable": is_known,
        "in_sync": is_known and not trouble and counts["applied"] == counts.total(),
        "since": rfc3339(outage.since if outage is not None else None),
        "trouble": clean(trouble or ("" if is_known else FOLLOWER if not facts.controller.leads else "not read yet")),
        "version": clean(cluster.version),
        "checked": rfc3339(facts.journal.of(cluster.name).compared_at if is_known else None),
        "records": {"wanted": counts.total(), "there": counts["applied"], **states} if is_known else None,
    }
