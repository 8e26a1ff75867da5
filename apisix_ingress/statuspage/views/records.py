"""Lists of records: a page of a kind, with search and a filter for states."""

from __future__ import annotations

from apisix_ingress.diagnostics.claimants import candidates, claimant
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import RECORD_KINDS, RecordKey
from apisix_ingress.model.states import RECORD_STATUSES
from apisix_ingress.runtime.tasks import in_turns
from apisix_ingress.statuspage.inputs import PageInputs
from apisix_ingress.statuspage.record_masking import clean
from apisix_ingress.statuspage.snapshot import Snapshot
from apisix_ingress.statuspage.summary.entry import Entry
from apisix_ingress.statuspage.views.presentation import (
    MOST_LISTED,
    MOST_SHOWN,
    bounded,
    object_reference,
    page_of,
    paging,
)
from apisix_ingress.statuspage.views.problems import problem_row

STATES = tuple(each for each in RECORD_STATUSES if each != "partial")
FILTERS = ("unsettled", "closed", "not-used", *STATES)
"""Values of the filter for states: unsettled: not applied everywhere; closed, not-used: as of hosts."""


async def records(facts: PageInputs, snapshot: Snapshot, kind: str, query: str, state: str, page: int) -> JsonObject:
    """Return a page of the records of a kind that match every word of a query, and a state unless it is empty."""
    words = query.lower().split()
    found = [entry async for entry in in_turns(snapshot.by_kind.get(kind, ())) if _is_in(snapshot, entry, words, state)]
    return {
        "kind": kind,
        "query": query,
        "state": state,
        "states": list(FILTERS),
        **paging(len(found), page),
        "items": [record_row(snapshot, entry) for entry in page_of(found, page)],
        "counts": {each: len(snapshot.by_kind.get(each, ())) for each in RECORD_KINDS},
        "unpublished": await _unpublished(facts, words) if words and kind == "routes" else [],
    }


async def _unpublished(facts: PageInputs, words: list[str]) -> list[JsonObject]:
    """Return objects with problems, or unserved ones, whose name, hosts or paths contain every word."""
    found: list[JsonObject] = []
    async for key in in_turns(tuple(candidates(facts.world))):
        if len(found) < MOST_LISTED and (each := claimant(facts.world, facts.options, key)) is not None:
            text = "\n".join((each.owner, *(text for rule in each.rules for text in (*rule["hosts"], *rule["uris"]))))
            if all(word in text.lower() for word in words):
                found.append({"object": object_reference(key), "reasons": [clean(reason) for reason in each.reasons]})
    return found


def _is_in(snapshot: Snapshot, entry: Entry, words: list[str], state: str) -> bool:
    return _is_so(snapshot, entry, state) and entry.matches(words)


def _is_so(snapshot: Snapshot, entry: Entry, state: str) -> bool:
    match state:
        case "":
            return True
        case "unsettled":
            return not entry.settled
        case "closed":
            return entry.is_empty or snapshot.summary.route_states.get(entry.key) == "closed"
        case "not-used":
            return snapshot.summary.route_states.get(entry.key) == "not used"
    return any(found.kind == state for _, found in entry.states)


def record_row(snapshot: Snapshot, entry: Entry) -> JsonObject:
    """Return a record with its hosts, paths, upstreams and the problems of its object."""
    return {
        **record_reference(entry),
        "hosts": bounded(map(clean, entry.hosts)),
        "paths": bounded(map(clean, entry.paths)),
        "priority": entry.priority,
        "serves": snapshot.summary.route_states.get(entry.key, ""),
        "upstreams": [_upstream(snapshot, key) for key in sorted(entry.record.refs) if key.kind == "upstreams"],
        "plugins": bounded(sorted(map(clean, entry.record.body.get("plugins") or ()))),
        "problems": [problem_row(entry.owner, each) for each in snapshot.problems_of.get(entry.owner, ())][:MOST_SHOWN],
    }


def record_reference(entry: Entry) -> JsonObject:
    """Return a record with its owner and its states."""
    return {
        "kind": entry.key.kind,
        "id": entry.key.id,
        "name": clean(entry.record.name),
        "owner": object_reference(entry.owner),
        "status": entry.status,
        "empty": entry.is_empty,
        "nodes": len(entry.record.body.get("nodes") or ()),
        "states": _states(entry),
    }


def states(snapshot: Snapshot, key: RecordKey) -> list[JsonObject]:
    """Return the state of a record in each cluster."""
    entry = snapshot.entries.get(key)
    return _states(entry) if entry is not None else []


def _states(entry: Entry) -> list[JsonObject]:
    return [{"cluster": name, "state": state.kind, "message": clean(state.message)} for name, state in entry.states]


def _upstream(snapshot: Snapshot, key: RecordKey) -> JsonObject:
    entry = snapshot.entries.get(key)
    if entry is None:
        return {"id": key.id, "name": "", "owner": None, "nodes": 0, "missing": True}
    nodes = entry.record.body.get("nodes") or ()
    owner = object_reference(entry.owner)
    return {"id": key.id, "name": clean(entry.record.name), "owner": owner, "nodes": len(nodes), "missing": False}


def is_kind(text: str) -> bool:
    """Return whether a text is a kind of records."""
    return text in RECORD_KINDS
