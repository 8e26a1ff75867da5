"""The order of dirty records, as far as a queue of keys can't know it: deletes after writes, and waits on others.

Make before break, also over records that do not name each other: a delete waits for every write that was wanted
before it or together with it, so that the route which takes over is there before the old one goes. No I/O here.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from apisix_ingress.model.keys import RecordKey

# Below this many entries the heap of turns is never rebuilt: not worth the time.
_HEAP_SLACK = 64


@dataclass(frozen=True, slots=True)
class Parked:
    """A record that waits for another one.

    Attributes:
        on: That other one.
        turn: Its place among the outstanding writes; None for a delete.
    """

    on: RecordKey
    turn: int | None


class Agenda:
    """Outstanding writes and deletes by the turn in which they were marked, and records that wait for another one.

    An outstanding write is in `_writes` from its mark until it is settled, given up or parked, its flight included.
    """

    def __init__(self) -> None:
        self._turn = 0
        self._writes: dict[RecordKey, int] = {}
        # May hold entries that `_writes` does not agree with any more; they are skipped.
        self._heap: list[tuple[int, RecordKey]] = []
        # Marked again in flight: that later version is outstanding once the flight has ended.
        self._again: dict[RecordKey, int] = {}
        self._deletes: dict[RecordKey, int] = {}
        self._deferred: list[tuple[int, int, RecordKey]] = []
        self._deferred_keys: set[RecordKey] = set()
        self._parked: dict[RecordKey, Parked] = {}
        self._waiters: dict[RecordKey, dict[RecordKey, None]] = {}

    def turn(self) -> None:
        """Begin a turn: what is marked until the next one belongs together."""
        self._turn += 1

    def mark_write(self, key: RecordKey, *, flying: bool) -> None:
        """Note that a record is to be written; `flying` says that another write of it is under way."""
        self._deletes.pop(key, None)
        parked = self._unpark(key)
        if flying:
            self._again.setdefault(key, self._turn)
        elif key not in self._writes:
            self._put(key, self._turn if parked is None or parked.turn is None else parked.turn)

    def mark_delete(self, key: RecordKey, *, flying: bool) -> None:
        """Note that a record is to be deleted; `flying` as for `mark_write`."""
        self._deletes.setdefault(key, self._turn)
        self._again.pop(key, None)
        self._unpark(key)
        if not flying:
            self._writes.pop(key, None)

    def begin(self, key: RecordKey) -> None:
        """Note that the record as it is wanted now is looked at: whatever was marked before is part of that."""
        self._again.pop(key, None)

    def settle(self, key: RecordKey) -> None:
        """Note that nothing is outstanding for a record, other than what was marked during its flight."""
        self._writes.pop(key, None)
        again = self._again.pop(key, None)
        if again is not None:
            self._put(key, again)
        else:
            self._deletes.pop(key, None)

    def give_up(self, key: RecordKey) -> None:
        """Let deletes no longer wait for a write that keeps failing."""
        self._writes.pop(key, None)

    def may_delete(self, key: RecordKey) -> bool:
        """Say whether a delete is due; if not, `due` returns the key when it is."""
        self._writes.pop(key, None)
        turn = self._deletes.setdefault(key, self._turn)
        if turn < self._oldest():
            return True
        if key not in self._deferred_keys:
            self._deferred_keys.add(key)
            heapq.heappush(self._deferred, (turn, len(self._deferred), key))
        return False

    def due(self) -> list[RecordKey]:
        """Return the deletes that no longer wait for a write."""
        found: list[RecordKey] = []
        while self._deferred and self._deferred[0][0] < self._oldest():
            found.append(heapq.heappop(self._deferred)[2])
        self._deferred_keys.difference_update(found)
        return found

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
        return not self._deferred

    def outstanding(self) -> list[RecordKey]:
        """Return the records that are to be written, those that wait for another one included."""
        return [*self._writes, *(key for key, parked in self._parked.items() if parked.turn is not None)]

    # Waiting for another record.

    def park(self, key: RecordKey, on: RecordKey, *, delete: bool) -> None:
        """Let a record wait until `woken` is called with the other one."""
        before = self._unpark(key)
        turn = self._writes.pop(key, before.turn if before is not None else None)
        if turn is None and not delete:
            turn = self._turn
        elif delete:
            turn = None
        self._parked[key] = Parked(on, turn)
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
            if parked is not None and parked.turn is not None:
                self._put(key, parked.turn)
        return keys

    def _unpark(self, key: RecordKey) -> Parked | None:
        parked = self._parked.pop(key, None)
        if parked is not None:
            waiters = self._waiters[parked.on]
            del waiters[key]
            if not waiters:
                del self._waiters[parked.on]
        return parked

    def _put(self, key: RecordKey, turn: int) -> None:
        self._writes[key] = turn
        heapq.heappush(self._heap, (turn, key))
        if len(self._heap) > 2 * len(self._writes) + _HEAP_SLACK:
            self._heap = [(turn, key) for key, turn in self._writes.items()]
            heapq.heapify(self._heap)

    def _oldest(self) -> int:
        """Return the turn of the oldest outstanding write, a later turn than any if there is none."""
        while self._heap and self._writes.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else self._turn + 1
