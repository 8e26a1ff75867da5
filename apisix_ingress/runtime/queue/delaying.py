"""Keys that wait for their time, as a queue keeps them. No clock is read and no timer runs here."""

import heapq
from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)

# Below this many entries the heap is never rebuilt: not worth the time.
_HEAP_SLACK = 64


class Delayed(NamedTuple):
    """A key that waits until a monotonic time; the sequence number keeps the heap from comparing keys."""

    due: float
    sequence: int
    urgent: bool


class DelayingHeap(Generic[K]):
    """Each key has one time, the earliest that was asked for, and is urgent if that was asked for once."""

    def __init__(self) -> None:
        self._delayed: dict[K, Delayed] = {}
        # May hold entries that _delayed no longer agrees with; they are skipped, and cleared when they pile
        # up.
        self._heap: list[tuple[float, int, K]] = []
        self._sequence = 0

    def __len__(self) -> int:
        """Return how many keys wait."""
        return len(self._delayed)

    def put(self, key: K, due: float, *, urgent: bool) -> bool:
        """Let `key` wait until `due`; return False if it waits for an earlier time, which goes on."""
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
        """Let `key` wait no longer; return what it waited for, None if it did not wait."""
        return self._delayed.pop(key, None)

    def ripe(self, now: float) -> K | None:
        """Return a key whose time has come, the earliest first, None if there is none; it waits until `pop`."""
        while self._heap and self._heap[0][0] <= now:
            _, sequence, key = heapq.heappop(self._heap)
            delayed = self._delayed.get(key)
            if delayed is not None and delayed.sequence == sequence:
                return key
        return None

    def look_at(self) -> float:
        """Return a time at which to ask for `ripe`, not later than the first key's. At least one key must wait."""
        return self._heap[0][0]

    def clear(self) -> None:
        """Forget every key."""
        self._delayed.clear()
        self._heap.clear()

    def _compact(self) -> None:
        """Rebuild the heap when most of it is stale: a flapping key with long delays must not cost memory."""
        if len(self._heap) > 2 * len(self._delayed) + _HEAP_SLACK:
            self._heap = [(d.due, d.sequence, key) for key, d in self._delayed.items()]
            heapq.heapify(self._heap)
