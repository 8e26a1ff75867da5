"""The ready keys of a queue in two lanes, urgent and normal. In each lane the groups take turns.

A turn hands out one key, the oldest of the group. So a group with thousands of keys delays another group by only one
key per turn. The urgent lane has priority but never starves the normal lane. `workqueue` decides which keys are ready.
"""

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class _Lane(Generic[K]):
    """Keys with the times at which they were added, by group; the group with the next turn is first."""

    def __init__(self) -> None:
        self._groups: OrderedDict[Hashable, OrderedDict[K, float]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._groups)

    def push(self, key: K, group: Hashable, added_at: float) -> None:
        keys = self._groups.get(group)
        if keys is None:
            keys = self._groups[group] = OrderedDict()
        keys[key] = added_at

    def remove(self, key: K, group: Hashable) -> float:
        keys = self._groups[group]
        added_at = keys.pop(key)
        if not keys:
            del self._groups[group]
        return added_at

    def pop(self) -> tuple[K, float]:
        group, keys = next(iter(self._groups.items()))
        found = keys.popitem(last=False)
        if keys:
            self._groups.move_to_end(group)
        else:
            del self._groups[group]
        return found

    def times(self) -> Iterator[float]:
        for keys in self._groups.values():
            yield from keys.values()


class PriorityFifo(Generic[K]):
    """Keys with the monotonic times at which they were added.

    Args:
        urgent_burst: How many urgent keys in a row may overtake a waiting normal key.
    """

    def __init__(self, urgent_burst: int) -> None:
        if urgent_burst < 1:
            raise ValueError(f"urgent_burst must be at least 1, got {urgent_burst}")
        self._urgent_burst = urgent_burst
        self._urgent_streak = 0
        self._normal: _Lane[K] = _Lane()
        self._urgent: _Lane[K] = _Lane()
        # The lane and group under which each key was added; its group may change later.
        self._places: dict[K, tuple[_Lane[K], Hashable]] = {}

    def __len__(self) -> int:
        """Return how many keys are ready."""
        return len(self._places)

    def __contains__(self, key: object) -> bool:
        """Return whether a key is in either lane."""
        return key in self._places

    def push(self, key: K, group: Hashable, added_at: float, *, urgent: bool) -> None:
        """Add `key`, which must be in neither lane, behind the other keys of its group."""
        lane = self._urgent if urgent else self._normal
        self._places[key] = (lane, group)
        lane.push(key, group, added_at)

    def expedite(self, key: K) -> None:
        """Move `key` to the urgent lane if it is in the normal lane."""
        lane, group = self._places.get(key, (self._urgent, None))
        if lane is self._normal:
            self._places[key] = (self._urgent, group)
            self._urgent.push(key, group, self._normal.remove(key, group))

    def pop(self) -> tuple[K, float]:
        """Remove and return the next key with the time it was added. At least one lane must have a key."""
        if self._urgent and (not self._normal or self._urgent_streak < self._urgent_burst):
            # Count only urgent keys that overtake a normal one.
            self._urgent_streak = self._urgent_streak + 1 if self._normal else 0
            key, added_at = self._urgent.pop()
        else:
            self._urgent_streak = 0
            key, added_at = self._normal.pop()
        del self._places[key]
        return key, added_at

    def times(self) -> Iterator[float]:
        """Yield the times at which the keys were added."""
        yield from self._normal.times()
        yield from self._urgent.times()
