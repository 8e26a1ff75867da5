"""Conflicts: who takes the requests of one host and path, and who stands behind.

What the objects themselves are told names no object of another namespace; whoever may see this page sees all.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kube import CustomObject
from apisix_ingress.model.matchers import Matcher, count_matchers, matchers
from apisix_ingress.model.resources import MATCHER_INDEX
from apisix_ingress.page.facts import Facts
from apisix_ingress.page.masking import clean
from apisix_ingress.page.snapshot import Snapshot, paced
from apisix_ingress.state.store import NEAR

KINDS = ("Ingress", "ApisixRoute")
MOST_OBJECTS, MOST_MATCHERS, MOST_ROWS = 200, 1_000, 200
"""Objects that are looked into, pairs of host and path of one of them, and rows that are shown."""


async def conflicts(facts: Facts, snapshot: Snapshot) -> JsonObject:
    """Return each host and path that several objects take, and each record that several objects want."""
    behind = dict.fromkeys(owner for owner, problem in snapshot.problems if problem.code == "Conflicted")
    rows: dict[str, JsonObject] = {}
    async for owner in paced(list(islice((key for key in behind if key.kind in KINDS), MOST_OBJECTS))):
        for matcher in _matchers(facts, owner):
            if matcher.value not in rows and len(rows) < MOST_ROWS and len(found := _takers(facts, matcher)) > 1:
                rows[matcher.value] = {
                    "host": clean(matcher.host),
                    "path": clean(matcher.path or "/"),
                    "front": _object(found[0]),
                    "behind": [_object(key) for key in found[1:]],
                }
    shared = [entry async for entry in paced(snapshot.entries.values()) if len(entry.owners) > 1]
    return {
        "objects": len(behind),
        "matchers": list(rows.values()),
        "records": [
            {
                "record": str(entry.key),
                "front": _object(entry.owner),
                "behind": [_object(key) for key in entry.owners[1:]],
            }
            for entry in shared[:MOST_ROWS]
        ],
    }


def _matchers(facts: Facts, owner: ObjectKey) -> tuple[Matcher, ...]:
    item: CustomObject | None = facts.world.stores[owner.kind].get(owner)
    return matchers(item) if item is not None and count_matchers(item) <= MOST_MATCHERS else ()


def _takers(facts: Facts, matcher: Matcher) -> list[ObjectKey]:
    """Return who takes the requests of a matcher, the oldest first; only objects that are ours."""
    ages = sorted(age for kind in KINDS for age in _oldest(facts, kind, matcher))
    return [ObjectKey(kind, namespace, name) for _, namespace, name, kind in ages[:NEAR]]


def _oldest(facts: Facts, kind: str, matcher: Matcher) -> Iterator[tuple[str, str, str, str]]:
    found = islice(facts.world.stores[kind].oldest(MATCHER_INDEX, matcher.value), NEAR)
    return (item.meta.age for item in found if item.meta.key in facts.world.reports)


def _object(key: ObjectKey) -> JsonObject:
    return {"kind": key.kind, "namespace": key.namespace, "name": key.name, "text": clean(str(key))}
