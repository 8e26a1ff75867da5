"""Groups whose work kept the event loop for long, and for how long each of them rests: as long as it worked.

So one group has half of the loop at most, and between two pieces of its work everything else gets its turn. Who works
and what a group is are decided elsewhere.
"""

from collections.abc import Hashable

from apisix_ingress.runtime.clock import Clock

LONG_SECONDS = 0.05
"""Work that took less costs no rest."""


class FairRests:
    """Until when each group rests."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._until: dict[Hashable, float] = {}

    def worked(self, group: Hashable, seconds: float) -> bool:
        """Note how long a piece of work of a group took, which has just ended; say whether that was long."""
        is_long = seconds >= LONG_SECONDS
        if is_long:
            self._until[group] = self._clock.monotonic() + seconds
        return is_long

    def left(self, group: Hashable) -> float:
        """Return the seconds for which a group rests yet; 0: it may work."""
        until = self._until.get(group)
        left = until - self._clock.monotonic() if until is not None else 0.0
        if left <= 0:
            self._until.pop(group, None)
        return max(0.0, left)
