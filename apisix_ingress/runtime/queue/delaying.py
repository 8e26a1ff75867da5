"""The delayed keys of a queue. Nothing here reads a clock or runs a timer."""

import heapq
from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)

# With fewer entries than this, rebuilding the heap is not worth the time.
_HEAP_SLACK = 64


class Delayed(NamedTuple):
    """A key delayed until a monotonic time. The sequence number prevents the heap from comparing keys."""

    due: float
    sequence: int
    urgent: bool


class DelayingHeap(Generic[K]):
    """Each key has one due time, the earliest that was requested. It is urgent if any request for it was."""

    def __init__(self) -> None:
        self._delayed: dict[K, Delayed] = {}
        # May contain stale entries, which differ from _delayed: they are skipped, and removed if there are many.
        self._heap: list[tuple[float, int, K]] = []
        self._sequence = 0

    def __len__(self) -> int:
        """Return how many keys are delayed."""
        return len(self._delayed)

    def put(self, key: K, due: float, *, urgent: bool) -> bool:
        """Delay `key` until `due`; return False if it already has an earlier time, which it keeps."""
        known = self._delayed.get(key)
        if known is not None and known.due <= due:
            if urgent and not known.urgent:
                self._delayed[key] = known._replace(urgent=True)
            return False
        self._sequence += 1
        self._delayed[key] = Delayed(due, self._sequence, urgent or (known is not None and known.urgent))
        heapq.heappush(self._heap, (due, self._sequence, key))
        self._compact()
        return True

    def pop(self, key: K) -> Delayed | None:
        """Remove `key`; return its entry, or None if it was not delayed."""
        return self._delayed.pop(key, None)

    def ripe(self, now: float) -> K | None:
        """Return a key that is due, the earliest first, or None. The key stays until `pop`."""
        while self._heap and self._heap[0][0] <= now:
            _, sequence, key = heapq.heappop(self._heap)
            delayed = self._delayed.get(key)
            if delayed is not None and delayed.sequence == sequence:
                return key
        return None

    def look_at(self) -> float:
        """Return when to call `ripe` next, not later than the first key is due. At least one key must be delayed."""
        return self._heap[0][0]

    def clear(self) -> None:
        """Forget every key."""
        self._delayed.clear()
        self._heap.clear()

    def _compact(self) -> None:
        """Rebuild the heap if most of it is stale, so that a flapping key with long delays does not use up memory."""
        if len(self._heap) > 2 * len(self._delayed) + _HEAP_SLACK:
            self._heap = [(d.due, d.sequence, key) for key, d in self._delayed.items()]
            heapq.heapify(self._heap)
