"""Changes of the last hour in the gateways: which record, when, for which object."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.record_owner import origin_of_name
from apisix_ingress.statuspage.history import HOUR, RecordChange
from apisix_ingress.statuspage.inputs import PageInputs
from apisix_ingress.statuspage.record_masking import clean
from apisix_ingress.statuspage.snapshot import Snapshot
from apisix_ingress.statuspage.views.change_words import change_words
from apisix_ingress.statuspage.views.presentation import object_reference, page_of, paging, rfc3339

EARLIER = "Of earlier changes, the gateways know when a record was written, but not what changed or what was deleted."


def changes(facts: PageInputs, snapshot: Snapshot, query: str, page: int) -> JsonObject:
    """Return a page of the changes, the newest first."""
    words = query.lower().split()
    rows = [change_row(snapshot, each) for each in recent_changes(facts)]
    found = [row for row in rows if all(word in _text(row) for word in words)]
    return {
        "query": query,
        "began": rfc3339(facts.journal.began),
        "note": " ".join((EARLIER, *_unread(facts))),
        **paging(len(found), page),
        "items": list(page_of(found, page)),
    }


def _unread(facts: PageInputs) -> Iterator[str]:
    """Yield which gateway clusters could not be asked for earlier changes."""
    names = [each.name for each in facts.clusters if not each.taken_over and facts.controller.leads]
    if names:
        yield f"Changes in gateway cluster {', '.join(names)} are missing, because it has not been read yet."


def recent_changes(facts: PageInputs) -> list[RecordChange]:
    """Return the changes of the last hour, the newest first."""
    earliest = facts.clock.now() - HOUR
    return list(takewhile(lambda each: each.at >= earliest, facts.journal.changes()))


def change_row(snapshot: Snapshot, each: RecordChange) -> JsonObject:
    """Return a change for display; the owner of a deleted record is read from its name."""
    entry = snapshot.entries.get(each.key)
    owner = entry.owner if entry is not None else origin_of_name(each.key.kind, each.name)
    return {
        "at": rfc3339(each.at),
        "change": each.change,
        "cluster": each.cluster,
        "kind": each.key.kind,
        "id": each.key.id,
        "name": clean(each.name or (entry.record.name if entry is not None else "")),
        "exists": entry is not None,
        "owner": object_reference(owner) if owner is not None else None,
        "times": each.times,
        "words": [clean(word) for word in change_words(each.before, each.after)],
    }


def _text(row: JsonObject) -> str:
    owner = row["owner"]["text"] if row["owner"] else ""
    return "\n".join((row["change"], row["cluster"], row["kind"], row["id"], row["name"], owner)).lower()
