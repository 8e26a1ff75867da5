"""Search: hosts, objects, records, certificates and problems that contain every word of a query."""

from __future__ import annotations

from itertools import islice

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import RECORD_KINDS, ObjectKey
from apisix_ingress.runtime.tasks import in_turns
from apisix_ingress.statuspage.inputs import PageInputs
from apisix_ingress.statuspage.snapshot import Snapshot
from apisix_ingress.statuspage.views.certificates import certificates
from apisix_ingress.statuspage.views.hosts import hosts
from apisix_ingress.statuspage.views.presentation import object_reference
from apisix_ingress.statuspage.views.problems import problems
from apisix_ingress.statuspage.views.records import record_row

MOST_FOUND = 8
"""What is shown of each sort; a link leads to all of them."""


async def search(facts: PageInputs, snapshot: Snapshot, query: str) -> JsonObject:
    """Return the first matches of each sort, with their number."""
    found: JsonObject = {"query": query, "total": 0, "sections": []}
    if not query:
        return found
    words = query.lower().split()
    pages: dict[str, JsonObject] = {
        "hosts": await hosts(facts, snapshot, query, "", 1),
        "problems": await problems(facts, snapshot, query, "", 1),
        "objects": await _objects(facts, words),
        "certificates": await certificates(facts, snapshot, query, 1),
        **{kind: await _records(snapshot, kind, words) for kind in reversed(RECORD_KINDS) if kind != "ssls"},
    }
    for name, data in pages.items():
        if data["total"]:
            items = data["items"][:MOST_FOUND]
            found["sections"].append({"name": name, "total": data["total"], "items": items})
    found["total"] = sum(section["total"] for section in found["sections"])
    return found


async def _objects(facts: PageInputs, words: list[str]) -> JsonObject:
    found: list[ObjectKey] = []
    async for key in in_turns(tuple(facts.world.reports), every=200):
        text = str(key).lower()
        if all(word in text for word in words):
            found.append(key)
    return {"total": len(found), "items": [object_reference(key) for key in islice(sorted(found), MOST_FOUND)]}


async def _records(snapshot: Snapshot, kind: str, words: list[str]) -> JsonObject:
    entries = snapshot.by_kind.get(kind, ())
    found = [entry async for entry in in_turns(entries) if entry.matches(words)]
    return {"total": len(found), "items": [record_row(snapshot, entry) for entry in found[:MOST_FOUND]]}
