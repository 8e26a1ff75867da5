"""The desired records by owner. This module alone resolves conflicts between owners of one record.

The older owner wins. An owner's records stay until it publishes again: to keep the last good records, do not call
`replace`. A hold protects records that a gateway has since before a restart of the controller and whose owner cannot be
translated now.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from apisix_ingress.model.keys import ObjectKey, RecordKey, RecordKind
from apisix_ingress.model.records import EXCLUSIVE, UNKNOWN, Former, Record, is_meant_for
from apisix_ingress.state.claims import Claimant
from apisix_ingress.state.holds import Hold, Holds
from apisix_ingress.state.ids.id_table import HASHED, IdTable

_Taken: TypeAlias = tuple[RecordKind, str, str]
_Names: TypeAlias = dict[ObjectKey, tuple[Claimant, frozenset[tuple[RecordKind, str]]]]


@dataclass(frozen=True, slots=True)
class Change:
    """What a replacement changed.

    Attributes:
        dirty: Records whose desired state changed.
        contested: Other owners that gained or lost a record, whose problems have to be reported again.
        former: The owner's records before the change.
    """

    dirty: frozenset[RecordKey] = frozenset()
    contested: frozenset[ObjectKey] = frozenset()
    former: Former = field(default=UNKNOWN, compare=False)


class Desired:
    """Records by owner and by key; candidates for one key are ordered by the age of their owners."""

    def __init__(self, ids: IdTable) -> None:
        self._ids = ids
        self._by_owner: dict[ObjectKey, dict[RecordKey, Record]] = {}
        self._namespaces: dict[ObjectKey, str] = {}
        self._candidates: dict[RecordKey, list[tuple[Claimant, Record]]] = {}
        # Number of keys per kind and set of clusters that should have the record (None: all).
        self._counts: Counter[tuple[RecordKind, frozenset[str] | None]] = Counter()
        # By exclusive key: the records that should have it, see `older_takers`.
        self._takers: dict[_Taken, list[tuple[int, Claimant, RecordKey]]] = {}
        self._turns: dict[tuple[_Taken, RecordKey], int] = {}
        self._last_turn = 0
        # Every name of an owner's published records, and the names of owners that cannot be translated now.
        self._names: _Names = {}
        self._held_names: _Names = {}
        self._protected = Holds()
        self._refused = Holds()

    def assign(self, owner: ObjectKey, namespace: str) -> None:
        """Set the namespace in whose turn the records of an owner without one are written; empty removes it."""
        if namespace:
            self._namespaces[owner] = namespace
        else:
            self._namespaces.pop(owner, None)

    def replace(self, claimant: Claimant, records: Iterable[Record]) -> Change:
        """Replace an owner's records. If several records have the same key, the last one is used."""
        owner, records = claimant.owner, tuple(records)
        after = {record.key: record for record in records}
        before = self._by_owner.get(owner, {})
        self._count_names(self._names, claimant, [(record.key.kind, record.name) for record in records])
        dirty: set[RecordKey] = set()
        contested: set[ObjectKey] = set()
        for key in {**before, **after}:
            old = self._candidates.get(key, [])
            new = self._with(old, claimant, after.get(key))
            if new:
                self._candidates[key] = new
            else:
                self._candidates.pop(key, None)
            self._count_clusters(key.kind, old, new)
            if len(old) != len(new) or _differ(old, new):
                dirty.add(key)
            if key.kind in EXCLUSIVE:
                self._count_takers(key, old, new)
            if len(old) > 1 or len(new) > 1:
                contested.update(_contested(old, new, owner))
        if after:
            self._by_owner[owner] = after
        else:
            self._by_owner.pop(owner, None)
        return Change(frozenset(dirty), frozenset(contested), Former(self._namespace_of(owner), {**after, **before}))

    def follow_ids(self, claimant: Claimant) -> Change:
        """Move the records of an owner that cannot publish again to the current ids of their names."""
        before = self._by_owner.get(claimant.owner, {})
        ids = {key: self._ids.known_id(key.kind, record.name) for key, record in before.items() if key.kind in HASHED}
        if all(id_ == key.id for key, id_ in ids.items()):
            return Change()
        return self.replace(claimant, [_moved(record, ids.get(key, key.id)) for key, record in before.items()])

    def get(self, key: RecordKey, cluster: str) -> Record | None:
        """Return the record that a gateway cluster should have under a key, or None."""
        found = self._first(key, cluster)
        return found[1] if found is not None else None

    def namespace(self, key: RecordKey, cluster: str) -> str:
        """Return the namespace of the owner of a cluster's desired record; empty if there is no such record."""
        found = self._first(key, cluster)
        return self._namespace_of(found[0].owner) if found is not None else ""

    def _namespace_of(self, owner: ObjectKey) -> str:
        return owner.namespace or self._namespaces.get(owner, "")

    def older_takers(self, key: RecordKey, cluster: str) -> Iterator[RecordKey]:
        """Yield the records of older owners that should have an exclusive key of this record, the youngest first.

        Consumers are ordered by when they got the key, not by their age, because a credential may be added to an object
        long after its creation. A cluster may have another version of such a record as desired, without the key: that
        is not checked.
        """
        found = self._first(key, cluster)
        if found is None:
            return
        for each in found[1].takes:
            taken = (key.kind, *each)
            takers = self._takers[taken]
            for place in range(bisect_left(takers, (self._turns[taken, key], found[0], key)) - 1, -1, -1):
                yield takers[place][2]

    def keys(self) -> tuple[RecordKey, ...]:
        """Return the keys of all desired records."""
        return tuple(self._candidates)

    def records(self, cluster: str) -> dict[RecordKey, Record]:
        """Return all desired records of a gateway cluster."""
        found = ((key, self.get(key, cluster)) for key in self._candidates)
        return {key: record for key, record in found if record is not None}

    def counts(self, cluster: str) -> Counter[RecordKind]:
        """Return how many records of each kind a gateway cluster should have."""
        found: Counter[RecordKind] = Counter()
        for (kind, clusters), number in self._counts.items():
            if is_meant_for(clusters, cluster):
                found[kind] += number
        return found

    def of_owner(self, owner: ObjectKey) -> Mapping[RecordKey, Record]:
        """Return an owner's records, including records that another owner wins."""
        return self._by_owner.get(owner, {})

    def owners_of(self, key: RecordKey) -> tuple[ObjectKey, ...]:
        """Return the owners of a record, the winner first."""
        return tuple(claimant.owner for claimant, _ in self._candidates.get(key, ()))

    def lost(self, owner: ObjectKey) -> dict[RecordKey, ObjectKey]:
        """Return the owner's records that another owner wins: key → winner."""
        return {
            key: winner
            for key, record in self._by_owner.get(owner, {}).items()
            if len(self._candidates[key]) > 1 and (winner := self._winner(key, record, owner)) != owner
        }

    def hold(self, claimant: Claimant, holds: Iterable[Hold]) -> None:
        """Protect an owner's records in gateways and the ids of its names; without holds, end the protection."""
        owner, after = claimant.owner, tuple(holds)
        before = self._protected.replace(owner, after)
        if after or before:
            names = [(hold.kind, name) for hold in after for name in hold.names]
            self._count_names(self._held_names, claimant, names)

    def is_held(
        self,
        key: RecordKey,
        name: str,
        hosts: tuple[str, ...] | None = None,
        sources: tuple[str, ...] | None = None,
    ) -> bool:
        """Return whether a record that is not desired must stay because its owner cannot be translated now.

        Args:
            key: The record.
            name: The record's name in the gateway, or empty. If the id is a hash of the name, it identifies the owner;
                otherwise another object may have a name with the same CRC-32.
            hosts: The record's hosts in the gateway; None if unknown, which allows any.
            sources: The objects (namespace/name) that it was generated from, as far as the gateway shows them; None if
                unknown, which allows any.
        """
        return self._protected.covers(key, name, hosts, sources)

    def refuse(self, owner: ObjectKey, holds: Iterable[Hold]) -> None:
        """Set the records of an owner that are deleted even if many others are: the object itself explains it."""
        self._refused.replace(owner, tuple(holds))

    def is_refused(self, key: RecordKey, name: str) -> bool:
        """Return whether the object of a record that is not desired explains its deletion."""
        return self._refused.covers(key, name)

    def _first(self, key: RecordKey, cluster: str) -> tuple[Claimant, Record] | None:
        for candidate in self._candidates.get(key, ()):
            if is_meant_for(candidate[1].clusters, cluster):
                return candidate
        return None

    def _count_clusters(
        self, kind: RecordKind, old: list[tuple[Claimant, Record]], new: list[tuple[Claimant, Record]]
    ) -> None:
        had = (kind, _clusters(old)) if old else None
        has = (kind, _clusters(new)) if new else None
        if had == has:
            return
        if has is not None:
            self._counts[has] += 1
        if had is not None:
            self._counts[had] -= 1
            if not self._counts[had]:
                del self._counts[had]

    def _count_takers(
        self, key: RecordKey, old: list[tuple[Claimant, Record]], new: list[tuple[Claimant, Record]]
    ) -> None:
        had = {(take, old[0][0]) for take in _takes(old)}
        has = {(take, new[0][0]) for take in _takes(new)}
        for take, claimant in had - has:
            taken = (key.kind, *take)
            takers = self._takers[taken]
            del takers[bisect_left(takers, (self._turns.pop((taken, key)), claimant, key))]
            if not takers:
                del self._takers[taken]
        self._last_turn += self._ids.is_settled and key.kind == "consumers"
        for take, claimant in has - had:
            taken = (key.kind, *take)
            self._turns[taken, key] = self._last_turn
            insort(self._takers.setdefault(taken, []), (self._last_turn, claimant, key))

    def _winner(self, key: RecordKey, record: Record, owner: ObjectKey) -> ObjectKey:
        rivals = (claimant.owner for claimant, other in self._candidates[key] if _overlap(record, other))
        return next(rivals, owner)

    def _with(
        self, candidates: list[tuple[Claimant, Record]], claimant: Claimant, record: Record | None
    ) -> list[tuple[Claimant, Record]]:
        others = [item for item in candidates if item[0].owner != claimant.owner]
        if record is None:
            return others
        return sorted([*others, (claimant, record)], key=lambda item: item[0]) if others else [(claimant, record)]

    def _count_names(self, counted: _Names, claimant: Claimant, names: Iterable[tuple[RecordKind, str]]) -> None:
        """Register an owner's names in the id table, and unregister its former names; its age may have changed, too."""
        has = frozenset([each for each in names if each[0] in HASHED])
        former, had = counted.get(claimant.owner, (claimant, frozenset()))
        if had == has and former == claimant:
            return
        counted.pop(claimant.owner, None)
        kept = had & has if former == claimant else frozenset()
        for kind, name in sorted(has - kept):
            self._ids.use(kind, name, claimant)
        for kind, name in sorted(had - kept):
            self._ids.release(kind, name, former)
        if has:
            counted[claimant.owner] = (claimant, has)


def _moved(record: Record, id_: str) -> Record:
    return replace(record, key=RecordKey(record.key.kind, id_), body={**record.body, "id": id_})


def _overlap(one: Record, other: Record) -> bool:
    if one.clusters is None or other.clusters is None:
        named = one.clusters or other.clusters or ("",)
        return any(is_meant_for(None, cluster) for cluster in named)
    return bool(one.clusters & other.clusters)


def _clusters(candidates: list[tuple[Claimant, Record]]) -> frozenset[str] | None:
    """Return the clusters that should have a record with the key of the candidates; None: all clusters."""
    found = candidates[0][1].clusters
    for _, record in candidates[1:]:
        found = None if found is None or record.clusters is None else found | record.clusters
    return found


def _takes(candidates: Iterable[tuple[Claimant, Record]]) -> set[tuple[str, str]]:
    return {each for _, record in candidates for each in record.takes}


def _differ(old: list[tuple[Claimant, Record]], new: list[tuple[Claimant, Record]]) -> bool:
    return [record for _, record in old] != [record for _, record in new]


def _contested(
    old: list[tuple[Claimant, Record]], new: list[tuple[Claimant, Record]], owner: ObjectKey
) -> Iterable[ObjectKey]:
    """Return the other owners if the order of candidates or their clusters changed."""
    before, after = ([(claimant.owner, record.clusters) for claimant, record in found] for found in (old, new))
    return () if before == after else {rival for rival, _ in (*before, *after) if rival != owner}
