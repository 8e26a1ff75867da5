"""Outstanding writes by scope, and the deletes that wait for them. Which scopes those are is decided in `scopes`."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field

from apisix_ingress.gateway.sync.ordering.scopes import Scope
from apisix_ingress.model.keys import RecordKey

# Below this many entries a heap is never rebuilt: not worth the time.
_HEAP_SLACK = 64


@dataclass(slots=True)
class _Members:
    """What is in one scope.

    Attributes:
        heap: Writes by turn. May hold some that have left; they are skipped.
        count: How many have not.
        deferred: Deletes by turn.
    """

    heap: list[tuple[int, int, RecordKey]] = field(default_factory=list)
    count: int = 0
    deferred: list[tuple[int, RecordKey]] = field(default_factory=list)


class DeleteBlockers:
    """Writes in their scopes, each record once; a delete is deferred in one scope at a time."""

    def __init__(self) -> None:
        self._scopes: dict[Scope, _Members] = {}
        # By record the serial number of its entry, which tells it from earlier ones, and its scopes.
        self._entries: dict[RecordKey, tuple[int, tuple[Scope, ...]]] = {}
        self._serial = 0
        # Scopes that a write has left: deletes may be due there.
        self._left: dict[Scope, None] = {}
        self.deferred: set[RecordKey] = set()
        """Deletes that wait."""

    def enter(self, key: RecordKey, turn: int, scopes: tuple[Scope, ...]) -> None:
        """Note that a write that was marked in a turn is outstanding, and that an earlier one of its record is not."""
        self.leave(key)
        self._serial += 1
        self._entries[key] = (self._serial, scopes)
        for name in scopes:
            members = self._scopes.get(name)
            if members is None:
                members = self._scopes[name] = _Members()
            members.count += 1
            heapq.heappush(members.heap, (turn, self._serial, key))
            if len(members.heap) > 2 * members.count + _HEAP_SLACK:
                members.heap = [entry for entry in members.heap if self._is_in(entry)]
                heapq.heapify(members.heap)

    def leave(self, key: RecordKey) -> None:
        """Note that no write of a record is outstanding."""
        for name in self._entries.pop(key, (0, ()))[1]:
            self._scopes[name].count -= 1
            self._left[name] = None

    def defer(self, key: RecordKey, turn: int, scopes: Iterable[Scope]) -> bool:
        """Let a delete wait if a write of its turn or an earlier one is in one of its scopes; say whether it does."""
        for name in scopes:
            members = self._scopes.get(name)
            if members is not None and self._has(members, turn):
                if key not in self.deferred:
                    self.deferred.add(key)
                    heapq.heappush(members.deferred, (turn, key))
                return True
        return False

    def freed(self) -> list[RecordKey]:
        """Return, once, the deletes that wait no longer in the scope in which they were deferred."""
        found: list[RecordKey] = []
        while self._left:
            name, _ = self._left.popitem()
            members = self._scopes[name]
            while members.deferred and not self._has(members, members.deferred[0][0]):
                found.append(heapq.heappop(members.deferred)[1])
            if not members.count and not members.deferred:
                del self._scopes[name]
        self.deferred.difference_update(found)
        return found

    def _has(self, members: _Members, turn: int) -> bool:
        """Say whether a scope has a write of a turn or an earlier one."""
        while members.heap and not self._is_in(members.heap[0]):
            heapq.heappop(members.heap)
        return bool(members.heap) and members.heap[0][0] <= turn

    def _is_in(self, entry: tuple[int, int, RecordKey]) -> bool:
        return self._entries.get(entry[2], (0, ()))[0] == entry[1]
