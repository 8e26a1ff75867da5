"""Outstanding requests by scope, and the requests that wait for them; the users of this module define the scopes."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field

from apisix_ingress.gateway.sync.ordering.scopes import Scope
from apisix_ingress.model.keys import RecordKey

# A heap with fewer obsolete entries is not rebuilt.
_HEAP_SLACK = 64


@dataclass(slots=True)
class _Members:
    """The requests in one scope.

    Attributes:
        heap: Blockers by batch. It may contain some that have left; they are skipped.
        count: The number of blockers that have not left.
        deferred: Requests that wait, by batch.
    """

    heap: list[tuple[int, int, RecordKey]] = field(default_factory=list)
    count: int = 0
    deferred: list[tuple[int, RecordKey]] = field(default_factory=list)


class Blockers:
    """Requests that block others in their scopes, each record once; a request is deferred in one scope at a time."""

    def __init__(self) -> None:
        self._scopes: dict[Scope, _Members] = {}
        # Record → the serial number of its latest entry, and its scopes.
        self._entries: dict[RecordKey, tuple[int, tuple[Scope, ...]]] = {}
        self._serial = 0
        # Scopes that a blocker has left, where requests may be due.
        self._left: dict[Scope, None] = {}
        self.deferred: set[RecordKey] = set()
        """Records whose requests wait."""

    def enter(self, key: RecordKey, batch: int, scopes: tuple[Scope, ...]) -> None:
        """Add an outstanding request of a batch; it replaces an earlier one of the same record."""
        self.leave(key)
        self._serial += 1
        self._entries[key] = (self._serial, scopes)
        for name in scopes:
            members = self._scopes.get(name)
            if members is None:
                members = self._scopes[name] = _Members()
            members.count += 1
            heapq.heappush(members.heap, (batch, self._serial, key))
            if len(members.heap) > 2 * members.count + _HEAP_SLACK:
                members.heap = [entry for entry in members.heap if self._is_in(entry)]
                heapq.heapify(members.heap)

    def leave(self, key: RecordKey) -> None:
        """Remove the outstanding request of a record."""
        for name in self._entries.pop(key, (0, ()))[1]:
            members = self._scopes[name]
            members.count -= 1
            if members.deferred or not members.count:
                self._left[name] = None

    def defer(self, key: RecordKey, batch: int, scopes: Iterable[Scope]) -> bool:
        """Defer a request if a blocker of its batch, or an earlier one, is in its scopes; return whether it was."""
        for name in scopes:
            members = self._scopes.get(name)
            if members is not None and self._has(members, batch):
                if key not in self.deferred:
                    self.deferred.add(key)
                    heapq.heappush(members.deferred, (batch, key))
                return True
        return False

    def freed(self) -> list[RecordKey]:
        """Return, once, the records that no longer have to wait in the scope in which they were deferred."""
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

    def _has(self, members: _Members, batch: int) -> bool:
        """Return whether a scope has a blocker of a batch or an earlier one."""
        while members.heap and not self._is_in(members.heap[0]):
            heapq.heappop(members.heap)
        return bool(members.heap) and members.heap[0][0] <= batch

    def _is_in(self, entry: tuple[int, int, RecordKey]) -> bool:
        return self._entries.get(entry[2], (0, ()))[0] == entry[1]
