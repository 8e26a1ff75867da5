"""Records that should exist, by owner. The single place where two owners of one record are told apart.

The older owner wins. What an owner published last stays until it publishes again: the last good record is kept by
not calling `replace`. A hold protects records that a gateway has from an earlier life of the controller and whose
owner can't be translated now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from apisix_ingress.model.keys import ObjectKey, RecordKey, RecordKind
from apisix_ingress.model.records import Record
from apisix_ingress.state.claims import Claimant
from apisix_ingress.state.ids import IdTable


@dataclass(frozen=True, slots=True)
class Hold:
    """Records of an owner that can't be translated, told by their name's beginning or by their ids."""

    kind: RecordKind
    prefix: str = ""
    ids: frozenset[str] = frozenset()

    def covers(self, key: RecordKey, name: str) -> bool:
        """Say whether a gateway's record is meant; `name` is its `name` field or empty."""
        if key.kind != self.kind:
            return False
        return key.id in self.ids or bool(self.prefix and name.startswith(self.prefix))


@dataclass(frozen=True, slots=True)
class Change:
    """What a replacement changed.

    Attributes:
        dirty: Records that are wanted differently now, or no longer.
        contested: Other owners that gained or lost a record by it: their problems have to be told anew.
    """

    dirty: frozenset[RecordKey] = frozenset()
    contested: frozenset[ObjectKey] = frozenset()


class Desired:
    """Records by owner and by key; candidates for one key are ordered by the age of their owners."""

    def __init__(self, ids: IdTable) -> None:
        self._ids = ids
        self._by_owner: dict[ObjectKey, dict[RecordKey, Record]] = {}
        self._candidates: dict[RecordKey, list[tuple[Claimant, Record]]] = {}
        self._holds: dict[ObjectKey, tuple[Hold, ...]] = {}

    def replace(self, claimant: Claimant, records: Iterable[Record]) -> Change:
        """Replace an owner's records. The last record of a key counts if the owner names a key twice."""
        owner = claimant.owner
        after = {record.key: record for record in records}
        before = self._by_owner.get(owner, {})
        self._count_names(before, after)
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
            contested.update(_contested(old, new, owner))
        if after:
            self._by_owner[owner] = after
        else:
            self._by_owner.pop(owner, None)
        return Change(frozenset(dirty), frozenset(contested))

    def get(self, key: RecordKey, cluster: str) -> Record | None:
        """Return the record that a gateway cluster should have under a key, or None."""
        for _, record in self._candidates.get(key, ()):
            if record.clusters is None or cluster in record.clusters:
                return record
        return None

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
            for winner in (self._winner(key, record),)
            if winner != owner
        }

    def hold(self, owner: ObjectKey, holds: Iterable[Hold]) -> None:
        """Protect what gateways may still have of an owner; no holds lift the protection."""
        if kept := tuple(holds):
            self._holds[owner] = kept
        else:
            self._holds.pop(owner, None)

    def is_held(self, key: RecordKey, name: str) -> bool:
        """Say whether a record that is not wanted must stay, since its owner can't be translated now."""
        return any(hold.covers(key, name) for holds in self._holds.values() for hold in holds)

    def _winner(self, key: RecordKey, record: Record) -> ObjectKey:
        rivals = (claimant.owner for claimant, other in self._candidates[key] if _overlap(record, other))
        return next(rivals)

    def _with(
        self, candidates: list[tuple[Claimant, Record]], claimant: Claimant, record: Record | None
    ) -> list[tuple[Claimant, Record]]:
        others = [item for item in candidates if item[0].owner != claimant.owner]
        return sorted([*others, (claimant, record)], key=lambda item: item[0]) if record else others

    def _count_names(self, before: Mapping[RecordKey, Record], after: Mapping[RecordKey, Record]) -> None:
        had = {(record.key.kind, record.name) for record in before.values()}
        has = {(record.key.kind, record.name) for record in after.values()}
        for kind, name in sorted(has - had):
            self._ids.use(kind, name)
        for kind, name in sorted(had - has):
            self._ids.release(kind, name)


def _overlap(one: Record, other: Record) -> bool:
    return one.clusters is None or other.clusters is None or bool(one.clusters & other.clusters)


def _differ(old: list[tuple[Claimant, Record]], new: list[tuple[Claimant, Record]]) -> bool:
    return [record for _, record in old] != [record for _, record in new]


def _contested(
    old: list[tuple[Claimant, Record]], new: list[tuple[Claimant, Record]], owner: ObjectKey
) -> Iterable[ObjectKey]:
    """Return the rivals of an owner when the order of candidates changed."""
    before, after = [item[0].owner for item in old], [item[0].owner for item in new]
    return () if before == after else {rival for rival in (*before, *after) if rival != owner}
