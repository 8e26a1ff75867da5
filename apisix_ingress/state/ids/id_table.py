"""The ids of record names. Once assigned, an id stays with its name.

Two names of one kind may have the same CRC-32, and anyone can forge such a name. One of them gets the short id, every
other one its wide id. Until the table is settled nothing is written, so the oldest owner gets the short id, whatever
the order in which objects arrive. Afterwards ids never move: a later name gets the short id only if it is free, and it
is not free while a gateway has it under another name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import cast

from apisix_ingress.model.keys import RECORD_KINDS, IndexKey, ObjectKey, Read, RecordKey, RecordKind
from apisix_ingress.model.names import WIDE, short_id, truncated, wide_id
from apisix_ingress.state.claims import Claimant

ID_INDEX = "id"

HASHED = frozenset(RECORD_KINDS) - {"consumers", "plugin_metadata", "secrets"}
"""Kinds whose ids are hashes of names. The ids of other kinds are their names."""

Occupants = Callable[[RecordKey], Iterable[str]]
"""Returns the names under which gateways have a record of this controller; empty for a record without a name."""

_UNBORN = "~"
"""Sorts after every timestamp: an owner that does not exist yet is the youngest."""


def id_read(kind: RecordKind, name: str) -> IndexKey:
    """Return the read of a name's id."""
    return IndexKey(kind, ID_INDEX, name)


class IdTable:
    """The ids of all names that are in use or were requested.

    Args:
        listener: Called with the read of each name whose id changed.
        compatible: Whether a new name gets its CRC-32 as in 1.8, if that is free. Otherwise only names that a gateway
            has under their CRC-32 keep it.
    """

    def __init__(self, listener: Callable[[IndexKey], None], *, compatible: bool = True) -> None:
        self._listener = listener
        self._compatible = compatible
        self.changes = 0
        """How often the id of a known name changed."""
        self._settled = False
        self._occupants: Occupants = lambda key: ()
        self._ids: dict[IndexKey, str] = {}
        self._asked: set[IndexKey] = set()
        self._owners: dict[IndexKey, tuple[Claimant, ...]] = {}
        # By short id: the name that has it, and the other names with the same CRC-32.
        self._holders: dict[RecordKey, str] = {}
        self._others: dict[RecordKey, dict[str, None]] = {}

    def follow(self, occupants: Occupants) -> None:
        """Check from now on which names the gateways have before assigning an id to a new name."""
        self._occupants = occupants

    def id_of(self, kind: RecordKind, name: str) -> str:
        """Return the id of a name, whether or not the name is in use yet, and remember the request."""
        return self.id_of_read(id_read(kind, name))

    def id_of_read(self, read: IndexKey) -> str:
        """Return the id of a name as `id_of` does."""
        self._asked.add(read)
        id_ = self._ids.get(read)
        return self._enter(read) if id_ is None else id_

    def expected_id(self, kind: RecordKind, name: str) -> str:
        """Return the id that `id_of` would return now, without remembering the request."""
        read = id_read(kind, name)
        return self._ids.get(read) or self._offer(_slot(read), name)

    def known_id(self, kind: RecordKind, name: str) -> str:
        """Return the id of a name; empty if the name is neither in use nor requested."""
        return self._ids.get(id_read(kind, name), "")

    @staticmethod
    def slot(kind: RecordKind, name: str) -> RecordKey:
        """Return the record key that all names of a kind with the same CRC-32 share."""
        return RecordKey(kind, short_id(name))

    def names(self, slot: RecordKey) -> tuple[str, ...]:
        """Return the known names with a CRC-32; the name that has the short id is first."""
        holder = (self._holders[slot],) if slot in self._holders else ()
        return (*holder, *self._others.get(slot, ()))

    def known(self, kind: RecordKind) -> tuple[str, ...]:
        """Return all known names of a kind."""
        return tuple(read.value for read in self._ids if read.kind == kind)

    def holder(self, slot: RecordKey) -> str | None:
        """Return the name that has a short id."""
        return self._holders.get(slot)

    def owners_of(self, read: IndexKey) -> tuple[ObjectKey, ...]:
        """Return the owners of a name, by its read."""
        return tuple(claimant.owner for claimant in self._owners.get(read, ()))

    def age(self, kind: RecordKind, name: str) -> tuple[str, str, str, str, str]:
        """Return the sort key of a name: the age of its oldest owner, then the name."""
        claimant = min(self._owners.get(id_read(kind, name), ()), default=None, key=_age)
        return (*_age(claimant), name) if claimant else (_UNBORN, _UNBORN, "", "", name)

    def use(self, kind: RecordKind, name: str, claimant: Claimant) -> None:
        """Add an owner of a name: it publishes a record with it, or cannot be translated and may have such a record."""
        read = id_read(kind, name)
        if read not in self._ids:
            self._enter(read)
        self._owners[read] = (*self._owners.get(read, ()), claimant)
        if self._compatible and not self._settled:
            self._contend(read)

    def release(self, kind: RecordKind, name: str, claimant: Claimant) -> None:
        """Remove an owner of a name."""
        read = id_read(kind, name)
        owners = list(self._owners.pop(read))
        owners.remove(claimant)
        if owners:
            self._owners[read] = tuple(owners)
        self._vacate(read)
        if not owners and read not in self._asked:
            self._leave(read)

    def forget(self, read: Read) -> None:
        """Forget the request for a name after its last reader is gone; ignore any other read."""
        if isinstance(read, IndexKey) and read in self._asked:
            self._asked.discard(read)
            if read not in self._owners:
                self._leave(read)

    @property
    def is_settled(self) -> bool:
        """Whether names keep their ids, because the first pass over all objects is done."""
        return self._settled

    def settle(self) -> None:
        """From now on, every name keeps its id."""
        self._settled = True
        for slot in [slot for slot in self._others if self._compatible and slot not in self._holders]:
            self.give(slot, min(self._others[slot]))

    def give(self, slot: RecordKey, name: str | None) -> None:
        """Assign a short id to one of the names with that CRC-32, or to none; the other names have their wide ids."""
        before = self._holders.pop(slot, None)
        others = self._others.setdefault(slot, {})
        if before is not None:
            others[before] = None
        if name is not None:
            del others[name]
            self._holders[slot] = name
            self._set(slot.kind, name, slot.id)
        # Usually only these two names change. If no name had the id before, all of them may have expected it.
        for other in (before,) if before is not None else tuple(others):
            if other is not None and other != name:
                self._set(slot.kind, other, wide_id(other))
        if not others:
            del self._others[slot]

    def _set(self, kind: RecordKind, name: str, id_: str) -> None:
        read = id_read(kind, name)
        if self._ids[read] != id_:
            self._ids[read] = id_
            self.changes += 1
            self._listener(read)

    def _enter(self, read: IndexKey) -> str:
        """Assign an id to a new name."""
        slot = _slot(read)
        self._ids[read] = id_ = self._offer(slot, read.value)
        if id_ == slot.id and self._settled:
            self._holders[slot] = read.value
        else:
            self._others.setdefault(slot, {})[read.value] = None
        return id_

    def _offer(self, slot: RecordKey, name: str) -> str:
        """Return the id that a new name gets."""
        return slot.id if self._may_have(slot, name) else wide_id(name)

    def _may_have(self, slot: RecordKey, name: str) -> bool:
        """Return whether a new name gets its short id."""
        if slot in self._holders:
            return False
        if not self._settled:
            return self._compatible
        occupants = tuple(self._occupants(slot))
        if truncated(name) in occupants:
            return True
        if occupants or truncated(name) in self._occupants(RecordKey(slot.kind, wide_id(name))):
            return False
        return self._compatible

    def _leave(self, read: IndexKey) -> None:
        """Forget a name. Until the table is settled, other names compete for its id again."""
        slot = _slot(read)
        del self._ids[read]
        if self._holders.get(slot) == read.value:
            del self._holders[slot]
        else:
            others = self._others[slot]
            del others[read.value]
            if not others:
                del self._others[slot]

    def _known_slot(self, read: IndexKey) -> RecordKey:
        """Return the slot of a known name; most names have their short ids, which need not be computed again."""
        id_ = self._ids[read]
        return RecordKey(cast("RecordKind", read.kind), id_) if len(id_) < WIDE else _slot(read)

    # Until the table is settled.

    def _contend(self, read: IndexKey) -> None:
        """Assign the short id to a name in use if it is the oldest one."""
        slot = self._known_slot(read)
        holder = self._holders.get(slot)
        if holder is None or self.age(slot.kind, read.value) < self.age(slot.kind, holder):
            self.give(slot, read.value)

    def _vacate(self, read: IndexKey) -> None:
        """After a name lost an owner, give its short id to the oldest name in use; without one, all names expect it."""
        slot = self._known_slot(read)
        if self._settled or self._holders.get(slot) != read.value:
            return
        used = [name for name in self.names(slot) if id_read(slot.kind, name) in self._owners]
        if used:
            oldest = min(used, key=lambda name: self.age(slot.kind, name))
            if oldest != read.value:
                self.give(slot, oldest)
            return
        del self._holders[slot]
        self._others.setdefault(slot, {})[read.value] = None
        for name in tuple(self._others[slot]):
            self._set(slot.kind, name, slot.id)


def _slot(read: IndexKey) -> RecordKey:
    return RecordKey(cast("RecordKind", read.kind), short_id(read.value))  # see `id_read`


def _age(claimant: Claimant) -> tuple[str, str, str, str]:
    owner = claimant.owner
    return (claimant.created or _UNBORN, owner.namespace, owner.name, owner.kind)
