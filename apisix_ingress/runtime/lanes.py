"""The ready keys of a queue in two lanes, an urgent and a normal one, each first in, first out.

The urgent lane goes first, yet never starves the normal one. What is ready, and who gets it, is decided in `workqueue`.
"""

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Lanes(Generic[K]):
    """Keys with the monotonic times at which they were added.

    Args:
        urgent_burst: so many urgent keys go in a row while a normal one waits, then a normal one goes.
    """

    def __init__(self, urgent_burst: int) -> None:
        if urgent_burst < 1:
            raise ValueError(f"urgent_burst must be at least 1, got {urgent_burst}")
        self._urgent_burst = urgent_burst
        self._urgent_streak = 0
        self._normal: OrderedDict[K, float] = OrderedDict()
        self._urgent: OrderedDict[K, float] = OrderedDict()

    def __len__(self) -> int:
        """Return how many keys are ready."""
        return len(self._normal) + len(self._urgent)

    def __contains__(self, key: object) -> bool:
        """Say whether a key is in either lane."""
        return key in self._normal or key in self._urgent

    def push(self, key: K, added_at: float, *, urgent: bool) -> None:
        """Put `key`, which is in neither lane, at the end of one."""
        (self._urgent if urgent else self._normal)[key] = added_at

    def expedite(self, key: K) -> None:
        """Move `key` to the end of the urgent lane, if it is in the normal one."""
        if key in self._normal:
            self._urgent[key] = self._normal.pop(key)

    def pop(self) -> tuple[K, float]:
        """Take the next key out, with the time it was added. At least one lane must hold one."""
        if self._urgent and (not self._normal or self._urgent_streak < self._urgent_burst):
            # Only urgent keys that overtake count: a streak before the normal key came harmed nobody.
            self._urgent_streak = self._urgent_streak + 1 if self._normal else 0
            return self._urgent.popitem(last=False)
        self._urgent_streak = 0
        return self._normal.popitem(last=False)

    def times(self) -> Iterator[float]:
        """Yield the times at which the keys were added."""
        yield from self._normal.values()
        yield from self._urgent.values()
