"""Adopts the ids of records that exist in gateways, at the start of a term and before the first write.

A name keeps the one of its two ids that a gateway has, also after a restart and while its object cannot be translated.
A short id that a gateway has for another name is not assigned, even if that name is about to be deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from apisix_ingress.model.keys import RecordKey, RecordKind
from apisix_ingress.model.names import WIDE, is_id_of, truncated, wide_id
from apisix_ingress.state.ids.id_table import HASHED, IdTable

Fits = Callable[[RecordKey, str], bool]
"""Returns whether the desired record of a name equals, except for its id, the record that the gateway has at a key."""


class AdoptedIds:
    """Adopts the ids of one gateway cluster into the id table.

    Args:
        ids: The table; it is settled.
        held: Key of each record of this controller in the gateway → the name in the record; empty if it has none.
        written: Returns the names under which clusters that are already written to have a record.
        proven: Short ids whose name another cluster has shown in this term; this set grows.
        fits: Distinguishes names if the record in the gateway has no name.
    """

    def __init__(
        self,
        ids: IdTable,
        held: Mapping[RecordKey, str],
        *,
        written: Callable[[RecordKey], Iterable[str]],
        proven: set[RecordKey],
        fits: Fits,
    ) -> None:
        self._ids = ids
        self._held = held
        self._written = written
        self._proven = proven
        self._fits = fits
        self._by_wide: dict[RecordKind, dict[str, str]] = {}

    def steps(self) -> Iterator[None]:
        """Assign the gateway's ids to names, one record per step."""
        for key, name in self._held.items():
            if key.kind in HASHED:
                if len(key.id) < WIDE:
                    self._decide(key, name)
                elif (found := self._of_wide_id(key, name)) is not None:
                    self._widen(self._ids.slot(key.kind, found), found)
            yield

    def _decide(self, slot: RecordKey, name: str) -> None:
        """Assign a short id to the name that has it in the gateway."""
        owner, holder = self._owner(slot, name), self._ids.holder(slot)
        if owner != holder and not self._is_written(slot, holder) and not self._yields(slot, owner, holder):
            self._ids.give(slot, owner)
        if owner is not None:
            self._proven.add(slot)

    def _yields(self, slot: RecordKey, owner: str | None, holder: str | None) -> bool:
        """Return whether another cluster disagrees and wins: the name is in use there, or its holder there is older."""
        if owner is not None and self._is_written(RecordKey(slot.kind, wide_id(owner)), owner):
            return True
        if slot not in self._proven or holder is None:
            return False
        return owner is None or self._ids.age(slot.kind, holder) < self._ids.age(slot.kind, owner)

    def _widen(self, slot: RecordKey, name: str) -> None:
        """Assign the wide id that a name has in the gateway, unless it has the short id somewhere."""
        if self._ids.holder(slot) != name or self._is_written(slot, name) or slot in self._proven:
            return
        if slot not in self._held or self._owner(slot, self._held[slot]) != name:
            self._ids.give(slot, None)

    def _owner(self, slot: RecordKey, name: str) -> str | None:
        """Return the known name that the record at a short id belongs to; None if it belongs to none."""
        names = self._ids.names(slot)
        for known in names:
            if truncated(known) == name:
                return known
        if name and is_id_of(slot.id, name):
            return None
        # The record has no name. A name with a wide id in the gateway is not its owner.
        left = [known for known in names if RecordKey(slot.kind, wide_id(known)) not in self._held]
        fitting = [known for known in left if self._fits(slot, known)] if len(left) > 1 else []
        return min(fitting or left, key=lambda known: self._ids.age(slot.kind, known), default=None)

    def _is_written(self, key: RecordKey, name: str | None) -> bool:
        return name is not None and truncated(name) in self._written(key)

    def _of_wide_id(self, key: RecordKey, name: str) -> str | None:
        """Return the known name that has a wide id."""
        if name and wide_id(name) == key.id:
            return name if self._ids.known_id(key.kind, name) else None
        if key.kind not in self._by_wide:
            self._by_wide[key.kind] = {wide_id(known): known for known in self._ids.known(key.kind)}
        return self._by_wide[key.kind].get(key.id)
