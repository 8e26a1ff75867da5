"""What gateways hold says which ids names have: read at the start of a term, before the first write.

A name keeps whichever of its two ids a gateway has, also after a restart and while its object can't be translated. A
short id that a gateway holds for another name is given to nobody, even if that name is about to be deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from apisix_ingress.model.keys import RecordKey, RecordKind
from apisix_ingress.model.names import WIDE, is_id_of, told, wide_id
from apisix_ingress.state.id_table import HASHED, IdTable

Fits = Callable[[RecordKey, str], bool]
"""Says whether the record that a name wants is, but for its id, the one that the gateway holds under a key."""


class AdoptedIds:
    """What one gateway cluster holds, against the table of ids.

    Args:
        ids: The table; it is settled.
        held: The names that the records of ours in the gateway tell, or nothing; by key.
        written: Returns the names under which clusters that are written to already hold a record.
        proven: Short ids of which another cluster has said in this term whose they are; it grows.
        fits: Tells names apart where the gateway tells none.
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
        """Give names the ids that the gateway has for them, one record a step."""
        for key, name in self._held.items():
            if key.kind in HASHED:
                if len(key.id) < WIDE:
                    self._decide(key, name)
                elif (found := self._of_wide_id(key, name)) is not None:
                    self._widen(self._ids.slot(key.kind, found), found)
            yield

    def _decide(self, slot: RecordKey, name: str) -> None:
        """Give a short id to the name that has it in the gateway."""
        owner, holder = self._owner(slot, name), self._ids.holder(slot)
        if owner != holder and not self._is_written(slot, holder) and not self._yields(slot, owner, holder):
            self._ids.give(slot, owner)
        if owner is not None:
            self._proven.add(slot)

    def _yields(self, slot: RecordKey, owner: str | None, holder: str | None) -> bool:
        """Say whether clusters disagree, and what another one said counts: there the name is in use, or it is older."""
        if owner is not None and self._is_written(RecordKey(slot.kind, wide_id(owner)), owner):
            return True
        if slot not in self._proven or holder is None:
            return False
        return owner is None or self._ids.age(slot.kind, holder) < self._ids.age(slot.kind, owner)

    def _widen(self, slot: RecordKey, name: str) -> None:
        """Give a name the wide id that it has in the gateway, unless it has the short one somewhere."""
        if self._ids.holder(slot) != name or self._is_written(slot, name) or slot in self._proven:
            return
        if slot not in self._held or self._owner(slot, self._held[slot]) != name:
            self._ids.give(slot, None)

    def _owner(self, slot: RecordKey, name: str) -> str | None:
        """Return which of the names with a CRC-32 the record under it is for; None: for none that is known."""
        names = self._ids.names(slot)
        for known in names:
            if told(known) == name:
                return known
        if name and is_id_of(slot.id, name):
            return None
        # The gateway tells no name. Who has a wide id there is not the one.
        left = [known for known in names if RecordKey(slot.kind, wide_id(known)) not in self._held]
        fitting = [known for known in left if self._fits(slot, known)] if len(left) > 1 else []
        return min(fitting or left, key=lambda known: self._ids.age(slot.kind, known), default=None)

    def _is_written(self, key: RecordKey, name: str | None) -> bool:
        return name is not None and told(name) in self._written(key)

    def _of_wide_id(self, key: RecordKey, name: str) -> str | None:
        """Return the known name that a wide id is made of."""
        if name and wide_id(name) == key.id:
            return name if self._ids.known_id(key.kind, name) else None
        if key.kind not in self._by_wide:
            self._by_wide[key.kind] = {wide_id(known): known for known in self._ids.known(key.kind)}
        return self._by_wide[key.kind].get(key.id)
