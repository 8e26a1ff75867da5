"""Conflicts: which object wins a host and path, or the certificate of a host, and which ones lose.

Messages in objects do not name objects of other namespaces; users of this page may see all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import IndexKey, ObjectKey
from apisix_ingress.model.kinds.indexes import MATCHER_INDEX
from apisix_ingress.model.kinds.table import kinds_with
from apisix_ingress.model.network.route_keys import Matcher, count_matchers, matchers_of, rules_of
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.runtime.tasks import in_turns
from apisix_ingress.state.store import TOP
from apisix_ingress.statuspage.inputs import PageInputs
from apisix_ingress.statuspage.record_masking import clean
from apisix_ingress.statuspage.snapshot import Snapshot
from translation.hosts.certificate_conflicts import CONFLICT, HostConflicts
from translation.hosts.host_certificates import faces

KINDS = kinds_with(MATCHER_INDEX)
MOST_OBJECTS, MOST_MATCHERS, MOST_ROWS = 200, 1_000, 200
"""Maximum number of objects, of pairs of host and path per object, and of rows shown."""


async def conflicts(facts: PageInputs, snapshot: Snapshot) -> JsonObject:
    """Return what several objects claim: hosts with their paths, hosts of certificates, records."""
    behind = _objects_with(snapshot, "Conflicted")
    rows: dict[str, JsonObject] = {}
    async for owner in in_turns(list(islice((key for key in behind if key.kind in KINDS), MOST_OBJECTS))):
        for matcher in _matchers(facts, owner):
            if matcher.value not in rows and len(rows) < MOST_ROWS and len(found := _takers(facts, matcher)) > 1:
                rows[matcher.value] = {
                    "host": clean(matcher.host),
                    "path": clean(matcher.path or "/"),
                    "front": _object(found[0]),
                    "behind": [_object(key) for key in found[1:]],
                }
    shared = [entry async for entry in in_turns(snapshot.entries.values()) if len(entry.owners) > 1]
    return {
        "objects": count(snapshot),
        "matchers": list(rows.values()),
        "certificates": await _certificates(facts, _objects_with(snapshot, CONFLICT)),
        "records": [
            {
                "record": str(entry.key),
                "front": _object(entry.owner),
                "behind": [_object(key) for key in entry.owners[1:]],
            }
            for entry in shared[:MOST_ROWS]
        ],
    }


def count(snapshot: Snapshot) -> int:
    """Return the number of objects that lose to an older one."""
    return len({owner for code in ("Conflicted", CONFLICT) for owner in _objects_with(snapshot, code)})


def _objects_with(snapshot: Snapshot, code: str) -> list[ObjectKey]:
    """Return the objects that have a problem with a code, each once."""
    return list(dict.fromkeys(owner for owner, problem in snapshot.problems if problem.code == code))


async def _certificates(facts: PageInputs, owners: list[ObjectKey]) -> list[JsonObject]:
    """Return each host with differing certificates, with its objects, oldest first."""
    found = [facts.world.stores[owner.kind].get(owner) for owner in owners[:MOST_OBJECTS]]
    rows: dict[tuple[str, ObjectKey], JsonObject] = {}
    async for item in in_turns(sorted((each for each in found if each is not None), key=lambda each: each.meta.age)):
        for host, winner, is_left_out in islice(_lost(facts, item), MOST_MATCHERS):
            if len(rows) < MOST_ROWS or (host, winner) in rows:
                row = rows.setdefault((host, winner), {"host": clean(host), "front": _object(winner), "behind": []})
                row["behind"].append({"object": _object(item.meta.key), "left_out": is_left_out})
    return list(rows.values())


def _lost(facts: PageInputs, item: CustomObject) -> Iterator[tuple[str, ObjectKey, bool]]:
    """Yield each host of an object that another one decides about, that object, and whether it takes the host."""
    view = facts.world.view()
    rivals = HostConflicts(item, view, facts.options)
    for host, face in dict(faces(item, view, facts.options)).items():
        if face is not None and (rival := rivals.ahead(host, face)) is not None:
            yield host, rival.item.meta.key, rival.excludes(item.meta.namespace, face)


def _matchers(facts: PageInputs, owner: ObjectKey) -> tuple[Matcher, ...]:
    item: CustomObject | None = facts.world.stores[owner.kind].get(owner)
    rules = tuple(rules_of(item)) if item is not None else ()
    return matchers_of(rules) if count_matchers(rules) <= MOST_MATCHERS else ()


def _takers(facts: PageInputs, matcher: Matcher) -> list[ObjectKey]:
    """Return the objects that match the requests of a matcher, oldest first; only served objects."""
    ages = sorted(age for kind in KINDS for age in _oldest(facts, kind, matcher))
    return [ObjectKey(kind, namespace, name) for _, namespace, name, kind in ages[:TOP]]


def _oldest(facts: PageInputs, kind: str, matcher: Matcher) -> Iterator[tuple[str, str, str, str]]:
    found = islice(facts.world.stores[kind].oldest(IndexKey(kind, MATCHER_INDEX, matcher.value)), TOP)
    return (item.meta.age for item in found if item.meta.key in facts.world.reports)


def _object(key: ObjectKey) -> JsonObject:
    return {"kind": key.kind, "namespace": key.namespace, "name": key.name, "text": clean(str(key))}
