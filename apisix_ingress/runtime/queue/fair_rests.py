"""Pauses groups whose work blocked the event loop for long: each pauses as long as its work took.

So one group gets at most half of the loop, and everything else can run between two pieces of its work. Callers define
groups and work.
"""

from collections.abc import Hashable

from apisix_ingress.runtime.clock import Clock

LONG_SECONDS = 0.05
"""Shorter work causes no pause."""


class FairRests:
    """Groups and the times until which they pause."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._until: dict[Hashable, float] = {}

    def worked(self, group: Hashable, seconds: float) -> bool:
        """Record how long a group's work that just ended took; return whether it was long."""
        is_long = seconds >= LONG_SECONDS
        if is_long:
            self._until[group] = self._clock.monotonic() + seconds
        return is_long

    def left(self, group: Hashable) -> float:
        """Return the seconds for which a group still pauses; 0 if it may work."""
        until = self._until.get(group)
        left = until - self._clock.monotonic() if until is not None else 0.0
        if left <= 0:
            self._until.pop(group, None)
        return max(0.0, left)
