"""The content of each page as plain data: the same dictionaries become HTML and, under `/status/api`, JSON.

Every external text is sanitized here. Lists are limited and contain the number of omitted items.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from apisix_ingress.diagnostics.claimants import candidates, claimant
from apisix_ingress.gateway.sync.comparison.audit import REMEDY
from apisix_ingress.gateway.sync.observer import HEADLINES
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import RECORD_KINDS, ObjectKey, RecordKey
from apisix_ingress.model.kinds.indexes import BY_ADDRESS, SLICES_BY_SERVICE
from apisix_ingress.model.network.ip_address import canonical_ip
from apisix_ingress.model.objects import Endpoints, EndpointSlice, Pod
from apisix_ingress.model.problem import Problem
from apisix_ingress.runtime.tasks import in_turns
from apisix_ingress.statuspage import conflicting_objects as rivals
from apisix_ingress.statuspage.inputs import PageCluster, PageInputs
from apisix_ingress.statuspage.record_masking import clean, secret_values, shown_body
from apisix_ingress.statuspage.snapshot import Entry, Snapshot

PER_PAGE = 100
MOST_SHOWN = 20
"""Maximum number of hosts, paths or nodes in one row."""

MOST_NODES = 200
"""Maximum number of nodes of one upstream on its own page."""

MOST_LISTED = 100
"""Maximum number of items of a list without pages."""

STATES = ("applied", "pending", "waiting", "rejected", "unreachable")


def replica(facts: PageInputs) -> JsonObject:
    """Return the identity of this process and of the leader."""
    who = facts.controller
    return {
        "identity": clean(facts.identity),
        "version": facts.version,
        "leads": who.leads,
        "leader": clean(who.leader),
        "ready": who.is_ready,
        "revision": facts.revision,
    }


def overview(facts: PageInputs, snapshot: Snapshot) -> JsonObject:
    """Return the state of every gateway cluster and of what is read from the API server."""
    refused, refused_more = _listed(snapshot, "rejected")
    waiting, waiting_more = _listed(snapshot, "waiting")
    return {
        "replica": replica(facts),
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
        "since": _time(outage.since if outage is not None else None),
        "headline": HEADLINES[outage.reason].capitalize() if outage is not None else "",
        "refused": clean(facts.controller.refused.get(cluster.name, "")),
        "version": clean(cluster.version),
        "breaker_open": outage is not None,
        "records": {"wanted": counts.total(), **{state: counts[state] for state in (*STATES, "unknown")}},
        "backlog": cluster.backlog,
        "last_audit": _time(happened.compared_at),
        "audit_failed": _time(happened.failed_at),
        "audit_failure": clean(cluster.audit_failure if cluster.taken_over else ""),
        "held": happened.held if cluster.taken_over else 0,
        "held_remedy": REMEDY if happened.held and cluster.taken_over else "",
        "repairs": [{"at": _time(each.at), "records": each.records} for each in reversed(happened.repairs)],
    }


def _cluster_state(facts: PageInputs, cluster: PageCluster, counts: Counter[str]) -> str:
    if (outage := facts.outage(cluster)) is not None:
        return outage.reason
    if not cluster.taken_over:
        if facts.controller.leads:
            return "starting"
        return "admin key refused" if cluster.name in facts.controller.refused else "not written by this replica"
    if cluster.backlog or counts["pending"]:
        return "writing"
    if facts.journal.of(cluster.name).failed_at is not None:
        return "audit failed"
    return "in sync" if counts["applied"] == counts.total() else "incomplete"


def _watch(facts: PageInputs, name: str, age: float) -> JsonObject:
    return {"kind": name, "heard_at": _time(facts.clock.now() - timedelta(seconds=age))}


async def records(facts: PageInputs, snapshot: Snapshot, kind: str, query: str, state: str, page: int) -> JsonObject:
    """Return a page of the records of a kind that match every word of a query, and a state unless it is empty."""
    words = query.lower().split()
    found = [entry async for entry in in_turns(snapshot.by_kind.get(kind, ())) if _is_in(entry, words, state)]
    return {
        "kind": kind,
        "query": query,
        "state": state,
        **_paging(len(found), page),
        "items": [_row(snapshot, entry) for entry in _page(found, page)],
        "unpublished": await _unpublished(facts, words) if words and kind == "routes" else [],
    }


async def _unpublished(facts: PageInputs, words: list[str]) -> list[JsonObject]:
    """Return objects with problems, or unserved ones, whose name, hosts or paths contain every word."""
    found: list[JsonObject] = []
    async for key in in_turns(tuple(candidates(facts.world))):
        if len(found) < MOST_LISTED and (each := claimant(facts.world, facts.options, key)) is not None:
            text = "\n".join((each.owner, *(text for rule in each.rules for text in (*rule["hosts"], *rule["uris"]))))
            if all(word in text.lower() for word in words):
                found.append({"object": _object(key), "reasons": [clean(reason) for reason in each.reasons]})
    return found


async def add_bodies(facts: PageInputs, snapshot: Snapshot, items: Iterable[JsonObject]) -> None:
    """Add the body of each record of a page."""
    for item in items:
        entry = snapshot.entries[RecordKey(item["kind"], item["id"])]
        item["body"] = await _body(facts, entry)


def _is_in(entry: Entry, words: list[str], state: str) -> bool:
    if state == "unsettled" and entry.settled:
        return False
    if state and state != "unsettled" and all(found.kind != state for _, found in entry.states):
        return False
    return entry.matches(words)


def _row(snapshot: Snapshot, entry: Entry) -> JsonObject:
    return {
        **_brief(entry),
        "hosts": _bounded(map(clean, entry.hosts)),
        "paths": _bounded(map(clean, entry.paths)),
        "priority": entry.priority,
        "upstreams": [_upstream(snapshot, key) for key in sorted(entry.record.refs) if key.kind == "upstreams"],
        "problems": [_problem(owner, each) for owner, each in _of(snapshot, entry.owner)][:MOST_SHOWN],
    }


def _brief(entry: Entry) -> JsonObject:
    return {
        "kind": entry.key.kind,
        "id": entry.key.id,
        "name": clean(entry.record.name),
        "owner": _object(entry.owner),
        "status": _status(entry),
        "states": _states(entry),
    }


def states(snapshot: Snapshot, key: RecordKey) -> list[JsonObject]:
    """Return the state of a record in each cluster."""
    entry = snapshot.entries.get(key)
    return _states(entry) if entry is not None else []


def _states(entry: Entry) -> list[JsonObject]:
    return [{"cluster": name, "state": state.kind, "message": clean(state.message)} for name, state in entry.states]


def _status(entry: Entry) -> str:
    kinds = {state.kind for _, state in entry.states}
    return next((kind for kind in reversed(STATES) if kind in kinds), "applied")


def _upstream(snapshot: Snapshot, key: RecordKey) -> JsonObject:
    entry = snapshot.entries.get(key)
    if entry is None:
        return {"id": key.id, "name": "", "owner": None, "nodes": 0, "missing": True}
    nodes = entry.record.body.get("nodes") or ()
    owner = _object(entry.owner)
    return {"id": key.id, "name": clean(entry.record.name), "owner": owner, "nodes": len(nodes), "missing": False}


async def record(facts: PageInputs, snapshot: Snapshot, key: RecordKey) -> JsonObject | None:
    """Return the details of a record: its owners, its references, its destinations, its states."""
    entry = snapshot.entries.get(key)
    if entry is None:
        return None
    named = [snapshot.entries.get(ref) for ref in sorted(entry.record.refs)]
    upstreams = [each for each in (*named, entry) if each is not None and each.key.kind == "upstreams"]
    return {
        **_row(snapshot, entry),
        "rivals": [_object(owner) for owner in entry.owners[1:]],
        "names": [_brief(each) for each in named if each is not None],
        "missing": [str(ref) for ref in sorted(entry.record.refs) if ref not in snapshot.entries],
        "backends": [_backend(facts, each) for each in upstreams],
        "body": await _body(facts, entry),
    }


async def _body(facts: PageInputs, entry: Entry) -> JsonObject:
    """Return the masked body of a record; since it may have thousands of nodes, a thread does it."""
    reports = (facts.world.reports.get(owner) for owner in entry.owners)
    outdated = any(each.severity == "error" for report in reports if report is not None for each in report.problems)
    values = secret_values(facts.world, entry.owners)
    return await asyncio.to_thread(shown_body, entry.record, values, outdated=outdated)


def _backend(facts: PageInputs, entry: Entry) -> JsonObject:
    nodes = entry.record.body.get("nodes") or ()
    listed = nodes if isinstance(nodes, list) else ()
    return {
        **_brief(entry),
        "nodes": [_node(facts, entry.owner, node) for node in listed[:MOST_NODES]],
        "more": max(0, len(listed) - MOST_NODES),
    }


def _node(facts: PageInputs, service: ObjectKey, node: JsonObject) -> JsonObject:
    host = str(node.get("host", ""))
    shown = f"[{host}]" if ":" in host else host
    pod = _pod(facts, service, host) if service.kind == "Service" else ""
    address = f"{shown}:{node['port']}" if "port" in node else shown
    return {"address": clean(address), "weight": node.get("weight", 1), "pod": clean(pod)}


def _pod(facts: PageInputs, service: ObjectKey, address: str) -> str:
    """Return the name of the Pod with an address of a Service, or empty."""
    stores = facts.world.stores
    pods: tuple[Pod, ...] = stores["Pod"].by_index(BY_ADDRESS, canonical_ip(address))
    if own := [pod for pod in pods if pod.meta.namespace == service.namespace]:
        return own[0].meta.name
    found = (each.pod for each in _endpoints(facts, service) if address in each.addresses and each.pod)
    return next(found, "")


def _endpoints(facts: PageInputs, service: ObjectKey) -> Iterator[Any]:
    stores = facts.world.stores
    if "EndpointSlice" in stores:
        slices: tuple[EndpointSlice, ...] = stores["EndpointSlice"].by_index(
            SLICES_BY_SERVICE, f"{service.namespace}/{service.name}"
        )
        yield from (each for one in slices for each in one.endpoints)
    elif "Endpoints" in stores:
        whole: Endpoints | None = stores["Endpoints"].get(service._replace(kind="Endpoints"))
        yield from (each for subset in (whole.subsets if whole else ()) for each in subset.endpoints)


def thing(facts: PageInputs, snapshot: Snapshot, key: ObjectKey) -> JsonObject | None:
    """Return the details of an object: its problems, its records, and their Services."""
    own = facts.world.desired.of_owner(key)
    report = facts.world.reports.get(key)
    if report is None and not own:
        return None
    entries = [entry for each in sorted(own) if (entry := snapshot.entries.get(each)) is not None]
    lost = facts.world.desired.lost(key)
    claims = sorted({claim.target for claim in facts.world.claims.claims_of(key)})
    return {
        "object": _object(key),
        "problems": [_problem(key, problem) for problem in (report.problems if report else ())][:MOST_LISTED],
        "records": [_row(snapshot, entry) for entry in entries[:MOST_LISTED]],
        "more": max(0, len(entries) - MOST_LISTED),
        "lost": [{"record": str(each), "to": _object(winner)} for each, winner in sorted(lost.items())][:MOST_LISTED],
        "targets": [_object(target) for target in claims[:MOST_LISTED]],
    }


async def problems(snapshot: Snapshot, query: str, page: int) -> JsonObject:
    """Return a page of the problems of objects."""
    words = query.lower().split()
    found = [pair async for pair in in_turns(snapshot.problems) if _mentions(*pair, words)]
    return {
        "query": query,
        **_paging(len(found), page),
        "items": [_problem(owner, problem) for owner, problem in _page(found, page)],
    }


def _mentions(owner: ObjectKey, problem: Problem, words: list[str]) -> bool:
    if not words:
        return True
    # Search the displayed text, so that masked values cannot be guessed letter by letter.
    text = f"{owner}\n{problem.code}\n{problem.path}\n{clean(problem.message)}".lower()
    return all(word in text for word in words)


def _problem(owner: ObjectKey, problem: Problem) -> JsonObject:
    return {
        "object": _object(owner),
        "severity": problem.severity,
        "code": problem.code,
        "field": clean(problem.path),
        "message": clean(problem.message),
    }


def _object(key: ObjectKey) -> JsonObject:
    return {"kind": key.kind, "namespace": key.namespace, "name": key.name, "text": clean(str(key))}


def _of(snapshot: Snapshot, owner: ObjectKey) -> Iterable[tuple[ObjectKey, Problem]]:
    return ((owner, problem) for problem in snapshot.problems_of.get(owner, ()))


def _listed(snapshot: Snapshot, kind: str) -> tuple[list[JsonObject], int]:
    """Return the first records in a state, and the number of further ones."""
    shown = list(islice((told for entry in snapshot.unwell for told in _told(entry, kind)), MOST_LISTED))
    return shown, sum(counts[kind] for counts in snapshot.counts.values()) - len(shown)


def _told(entry: Entry, kind: str) -> Iterator[JsonObject]:
    for cluster, state in entry.states:
        if state.kind == kind:
            brief = _brief(entry)
            yield {
                **{name: brief[name] for name in ("kind", "id", "name", "owner")},
                "cluster": cluster,
                "message": clean(state.message),
            }


def _paging(total: int, page: int) -> JsonObject:
    pages = max(1, -(-total // PER_PAGE))
    return {"total": total, "page": min(page, pages), "pages": pages}


def _page(found: Sequence[Any], page: int) -> Sequence[Any]:
    start = (_paging(len(found), page)["page"] - 1) * PER_PAGE
    return found[start : start + PER_PAGE]


def _bounded(texts: Iterable[str]) -> list[str]:
    iterator = iter(texts)
    shown = list(islice(iterator, MOST_SHOWN))
    more = sum(1 for _ in iterator)
    return [*shown, f"and {more} more"] if more else shown


def _time(moment: datetime | None) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ") if moment else ""


def is_kind(text: str) -> bool:
    """Return whether a text is a kind of records."""
    return text in RECORD_KINDS
