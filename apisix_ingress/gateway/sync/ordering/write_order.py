"""The order of dirty records, as far as a queue of keys can't know it: deletes after writes, and waits on others.

Make before break, also over records that do not name each other: a delete waits for every write that was wanted
before it or together with it and that could take over for it, so that the route which takes over is there before the
old one goes. Which writes those are is decided in `scopes`. No I/O here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from apisix_ingress.gateway.sync.ordering.delete_blockers import DeleteBlockers
from apisix_ingress.gateway.sync.ordering.scopes import awaited, scopes_of
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import UNKNOWN, Former, Record


class Write(NamedTuple):
    """A write that was marked.

    Attributes:
        turn: The turn in which that was.
        record: What is to be written; None if that is not known.
        namespace: That of its owner.
    """

    turn: int
    record: Record | None
    namespace: str


class Delete(NamedTuple):
    """A delete that was marked: in which turn, and what the owner of the record wanted before."""

    turn: int
    former: Former = UNKNOWN


@dataclass(frozen=True, slots=True)
class Parked:
    """A record that waits for another one.

    Attributes:
        on: That other one.
        write: What is to be written then; None for a delete.
    """

    on: RecordKey
    write: Write | None


class WriteOrder:
    """Outstanding writes and deletes by the turn in which they were marked, and records that wait for another one.

    An outstanding write is in `_writes` from its mark until it is settled, given up or parked, its flight included.
    """

    def __init__(self) -> None:
        self._turn = 0
        self._writes: dict[RecordKey, Write] = {}
        # The same by scope, from the first delete on that asks for it until nothing is outstanding: most often, and
        # also in a sync of thousands of records, none does.
        self._blockers: DeleteBlockers | None = None
        # Marked again in flight: that later version is outstanding once the flight has ended.
        self._again: dict[RecordKey, Write] = {}
        self._deletes: dict[RecordKey, Delete] = {}
        # Marked in flight: the end of that flight does not end them.
        self._deletes_again: set[RecordKey] = set()
        self._parked: dict[RecordKey, Parked] = {}
        self._waiters: dict[RecordKey, dict[RecordKey, None]] = {}

    def turn(self) -> None:
        """Begin a turn: what is marked until the next one belongs together."""
        self._turn += 1

    def mark_write(self, key: RecordKey, record: Record, namespace: str, *, flying: bool) -> None:
        """Note that a record is to be written for an owner in a namespace.

        `flying` says that another write of it is under way.
        """
        self._deletes.pop(key, None)
        self._deletes_again.discard(key)
        parked = self._unpark(key)
        if flying:
            before = self._again.get(key)
            self._again[key] = Write(before.turn if before else self._turn, record, namespace)
        else:
            before = self._writes.get(key) or (parked.write if parked is not None else None)
            self._put(key, Write(before.turn if before else self._turn, record, namespace))

    def mark_delete(self, key: RecordKey, former: Former = UNKNOWN, *, flying: bool) -> None:
        """Note that a record is to be deleted; `flying` as for `mark_write`."""
        self._deletes.setdefault(key, Delete(self._turn, former))
        self._again.pop(key, None)
        self._unpark(key)
        if flying:
            self._deletes_again.add(key)
        else:
            self._drop(key)

    def begin(self, key: RecordKey) -> None:
        """Note that the record as it is wanted now is looked at: whatever was marked before is part of that."""
        self._deletes_again.discard(key)
        again, write = self._again.pop(key, None), self._writes.get(key)
        if again is not None and write is not None:
            self._put(key, again._replace(turn=write.turn))

    def settle(self, key: RecordKey) -> None:
        """Note that nothing is outstanding for a record, other than what was marked during its flight."""
        self._drop(key)
        again = self._again.pop(key, None)
        if again is not None:
            self._put(key, again)
        elif key in self._deletes_again:
            self._deletes_again.discard(key)
        else:
            self._deletes.pop(key, None)

    def give_up(self, key: RecordKey) -> None:
        """Let deletes no longer wait for a write that keeps failing."""
        self._drop(key)

    def may_delete(self, key: RecordKey) -> bool:
        """Say whether a delete is due; if not, `due` returns the key when it is."""
        self._drop(key)
        turn, former = self._deletes.setdefault(key, Delete(self._turn))
        scopes = awaited(key, former)
        if not self._writes or not scopes:
            return True
        if self._blockers is None:
            self._blockers = DeleteBlockers()
            for other, write in self._writes.items():
                self._blockers.enter(other, write.turn, _scopes_of(write))
        return not self._blockers.defer(key, turn, scopes)

    def due(self) -> list[RecordKey]:
        """Return the deletes that may no longer have to wait for a write."""
        if self._blockers is None:
            return []
        found = self._blockers.freed()
        if self.is_clear and not self._writes:
            self._blockers = None
        return found

    def namespace(self, key: RecordKey) -> str:
        """Return the namespace that a record was marked for; empty if that is not known, or it is not marked."""
        if (write := self._writes.get(key)) is not None:
            return write.namespace
        delete = self._deletes.get(key)
        return delete.former.namespace if delete is not None else ""

    @property
    def size(self) -> int:
        """How many writes are outstanding."""
        return len(self._writes)

    def is_under_way(self, key: RecordKey) -> bool:
        """Say whether a write of a record is outstanding, its flight included."""
        return key in self._writes

    @property
    def is_clear(self) -> bool:
        """Whether no delete waits for a write."""
        return self._blockers is None or not self._blockers.deferred

    def outstanding(self) -> list[RecordKey]:
        """Return the records that are to be written, those that wait for another one included."""
        return [*self._writes, *(key for key, parked in self._parked.items() if parked.write is not None)]

    # Waiting for another record.

    def park(self, key: RecordKey, on: RecordKey, *, delete: bool) -> None:
        """Let a record wait until `woken` is called with the other one."""
        before = self._unpark(key)
        write = self._drop(key) or (before.write if before is not None else None)
        if delete:
            write = None
        elif write is None:
            write = Write(self._turn, None, "")
        self._parked[key] = Parked(on, write)
        self._waiters.setdefault(on, {})[key] = None

    def parked(self, key: RecordKey) -> Parked | None:
        """Return what a record waits for, or None."""
        return self._parked.get(key)

    def woken(self, on: RecordKey) -> list[RecordKey]:
        """Return the records that waited for this one; they have their old place again."""
        if on not in self._waiters:
            return []
        keys = list(self._waiters[on])
        for key in keys:
            parked = self._unpark(key)
            if parked is not None and parked.write is not None:
                self._put(key, parked.write)
        return keys

    def _unpark(self, key: RecordKey) -> Parked | None:
        parked = self._parked.pop(key, None)
        if parked is not None:
            waiters = self._waiters[parked.on]
            del waiters[key]
            if not waiters:
                del self._waiters[parked.on]
        return parked

    def _put(self, key: RecordKey, write: Write) -> None:
        self._writes[key] = write
        if self._blockers is not None:
            self._blockers.enter(key, write.turn, _scopes_of(write))

    def _drop(self, key: RecordKey) -> Write | None:
        """Make a write outstanding no more; return it."""
        if self._blockers is not None:
            self._blockers.leave(key)
        return self._writes.pop(key, None)


def _scopes_of(write: Write) -> tuple[str, ...]:
    return scopes_of(write.record, write.namespace)
