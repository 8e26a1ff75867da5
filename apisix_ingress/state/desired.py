"""Records that should exist, by owner. The single place where two owners of one record are told apart.

The older owner wins. What an owner published last stays until it publishes again: the last good record is kept by
not calling `replace`. A hold protects records that a gateway has from an earlier life of the controller and whose
owner can't be translated now.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TypeAlias

from apisix_ingress.model.keys import ObjectKey, RecordKey, RecordKind
from apisix_ingress.model.names import is_id_of, short_id, told, wide_id
from apisix_ingress.model.records import EXCLUSIVE, UNKNOWN, Former, Record
from apisix_ingress.state.claims import Claimant
from apisix_ingress.state.id_table import HASHED, IdTable

_Mark: TypeAlias = tuple[RecordKind, str, str]
_Taken: TypeAlias = tuple[RecordKind, str, str]
_Names: TypeAlias = dict[ObjectKey, tuple[Claimant, frozenset[tuple[RecordKind, str]]]]


@dataclass(frozen=True, slots=True)
class Hold:
    """Records of an owner that can't be translated.

    Attributes:
        kind: Their kind.
        prefix: What their names begin with.
        ids: Their ids, of kinds whose ids are not hashes.
        names: Their names.
        hosts: The hosts that records may have to stay; None: any.
    """

    kind: RecordKind
    prefix: str = ""
    ids: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    hosts: frozenset[str] | None = None

    @property
    def marks(self) -> Iterable[_Mark]:
        """What is looked up for a gateway's record, see `Desired.is_held`."""
        yield from ((self.kind, id_, "") for id_ in self.ids)
        if self.prefix:
            yield (self.kind, "", self.prefix)
        for name in self.names:
            yield (self.kind, _NAMED, told(name))
            yield (self.kind, short_id(name), _NAMED)
            yield (self.kind, wide_id(name), _NAMED)


_NAMED = "="
"""Stands in marks for a whole name, or for an id that is one of a name; no id and no beginning of a name is this."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a replacement changed.

    Attributes:
        dirty: Records that are wanted differently now, or no longer.
        contested: Other owners that gained or lost a record by it: their problems have to be told anew.
        former: What the owner wanted before.
    """

    dirty: frozenset[RecordKey] = frozenset()
    contested: frozenset[ObjectKey] = frozenset()
    former: Former = field(default=UNKNOWN, compare=False)


class Desired:
    """Records by owner and by key; candidates for one key are ordered by the age of their owners."""

    def __init__(self, ids: IdTable) -> None:
        self._ids = ids
        self._by_owner: dict[ObjectKey, dict[RecordKey, Record]] = {}
        self._candidates: dict[RecordKey, list[tuple[Claimant, Record]]] = {}
        # By what only one record of a kind may have: those that are to have it, see `older_takers`.
        self._takers: dict[_Taken, list[tuple[int, Claimant, RecordKey]]] = {}
        self._turns: dict[tuple[_Taken, RecordKey], int] = {}
        self._last_turn = 0
        # Every name that owners publish records of, and those that are theirs while they can't be translated.
        self._names: _Names = {}
        self._held_names: _Names = {}
        self._holds: dict[ObjectKey, tuple[Hold, ...]] = {}
        # How many holds mean it: a sweep asks for thousands of records while thousands of owners hold.
        self._marks: dict[_Mark, Counter[frozenset[str] | None]] = {}

    def replace(self, claimant: Claimant, records: Iterable[Record]) -> Change:
        """Replace an owner's records. The last record of a key counts if the owner names a key twice."""
        owner, records = claimant.owner, tuple(records)
        after = {record.key: record for record in records}
        before = self._by_owner.get(owner, {})
        self._count_names(self._names, claimant, frozenset((record.key.kind, record.name) for record in records))
        dirty: set[RecordKey] = set()
        contested: set[ObjectKey] = set()
        for key in {**before, **after}:
            old = self._candidates.get(key, [])
            new = self._with(old, claimant, after.get(key))
            if new:
                self._candidates[key] = new
            else:
                self._candidates.pop(key, None)
            if _differ(old, new):
                dirty.add(key)
            if key.kind in EXCLUSIVE:
                self._count_takers(key, old, new)
            contested.update(_contested(old, new, owner))
        if after:
            self._by_owner[owner] = after
        else:
            self._by_owner.pop(owner, None)
        return Change(frozenset(dirty), frozenset(contested), Former(owner.namespace, before))

    def follow_ids(self, claimant: Claimant) -> Change:
        """Bring what an owner published last under the ids that its names have now, since it can't publish anew."""
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
        """Return the namespace of the owner of a record that a cluster should have; empty if there is none."""
        found = self._first(key, cluster)
        return found[0].owner.namespace if found is not None else ""

    def older_takers(self, key: RecordKey, cluster: str) -> Iterator[RecordKey]:
        """Yield other records that are to have what this one is to have alone, of older owners, the youngest first.

        Of consumers, those that were to have it earlier count as older: an object is as old as its creation, but a
        credential may be added to it much later. A cluster may be to have another version of one of them, which leaves
        it to this one: that is not looked at.
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
        """Return the keys of all wanted records."""
        return tuple(self._candidates)

    def records(self, cluster: str) -> dict[RecordKey, Record]:
        """Return everything that a gateway cluster should have."""
        found = ((key, self.get(key, cluster)) for key in self._candidates)
        return {key: record for key, record in found if record is not None}

    def of_owner(self, owner: ObjectKey) -> Mapping[RecordKey, Record]:
        """Return what an owner wants, whether or not it wins."""
        return self._by_owner.get(owner, {})

    def owners_of(self, key: RecordKey) -> tuple[ObjectKey, ...]:
        """Return who wants a record, the winner first."""
        return tuple(claimant.owner for claimant, _ in self._candidates.get(key, ()))

    def lost(self, owner: ObjectKey) -> dict[RecordKey, ObjectKey]:
        """Return the records that an owner wants and another one has: key → winner."""
        return {
            key: winner
            for key, record in self._by_owner.get(owner, {}).items()
            for winner in (self._winner(key, record, owner),)
            if winner != owner
        }

    def hold(self, claimant: Claimant, holds: Iterable[Hold]) -> None:
        """Protect what gateways may still have of an owner, and the ids of its names; no holds lift the protection."""
        owner, after = claimant.owner, tuple(holds)
        before = self._holds.pop(owner, ())
        if before != after:
            for mark, hosts in ((mark, hold.hosts) for hold in after for mark in hold.marks):
                self._marks.setdefault(mark, Counter())[hosts] += 1
            for mark, hosts in ((mark, hold.hosts) for hold in before for mark in hold.marks):
                self._unmark(mark, hosts)
        if after:
            self._holds[owner] = after
        names = ((hold.kind, name) for hold in after for name in hold.names)
        self._count_names(self._held_names, claimant, frozenset(names))

    def is_held(self, key: RecordKey, name: str, hosts: tuple[str, ...] | None = None) -> bool:
        """Say whether a record that is not wanted must stay, since its owner can't be translated now.

        Args:
            key: The record.
            name: The name that the gateway has for it, or empty. It says whose the record is if the id is made of it:
                another object may have a name with the same CRC-32.
            hosts: The hosts that the gateway has for it; None: they are not known, and count as allowed.
        """
        whole: _Mark = (key.kind, _NAMED, name) if is_id_of(key.id, name) else (key.kind, key.id, _NAMED)
        beginnings: Iterator[_Mark] = ((key.kind, "", name[:end]) for end in range(1, len(name) + 1))
        marks = chain(((key.kind, key.id, ""), whole), beginnings)
        allowed = (each for mark in marks for each in self._marks.get(mark, ()))
        return any(each is None or hosts is None or each.issuperset(hosts) for each in allowed)

    def _unmark(self, mark: _Mark, hosts: frozenset[str] | None) -> None:
        marked = self._marks[mark]
        marked[hosts] -= 1
        if not marked[hosts]:
            del marked[hosts]
        if not marked:
            del self._marks[mark]

    def _first(self, key: RecordKey, cluster: str) -> tuple[Claimant, Record] | None:
        for candidate in self._candidates.get(key, ()):
            clusters = candidate[1].clusters
            if clusters is None or cluster in clusters:
                return candidate
        return None

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

    def _count_names(self, counted: _Names, claimant: Claimant, names: frozenset[tuple[RecordKind, str]]) -> None:
        """Make the owner of these names known, who may be of another age than before, and no owner of others."""
        has = frozenset(each for each in names if each[0] in HASHED)
        former, had = counted.pop(claimant.owner, (claimant, frozenset()))
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
    return one.clusters is None or other.clusters is None or bool(one.clusters & other.clusters)


def _takes(candidates: Iterable[tuple[Claimant, Record]]) -> set[tuple[str, str]]:
    return {each for _, record in candidates for each in record.takes}


def _differ(old: list[tuple[Claimant, Record]], new: list[tuple[Claimant, Record]]) -> bool:
    return [record for _, record in old] != [record for _, record in new]


def _contested(
    old: list[tuple[Claimant, Record]], new: list[tuple[Claimant, Record]], owner: ObjectKey
) -> Iterable[ObjectKey]:
    """Return the rivals of an owner when the order of candidates, or where they are wanted, changed."""
    before, after = ([(claimant.owner, record.clusters) for claimant, record in found] for found in (old, new))
    return () if before == after else {rival for rival, _ in (*before, *after) if rival != owner}
