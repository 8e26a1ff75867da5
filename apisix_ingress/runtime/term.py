"""Terms: one spell of leadership as a value that every writer holds. How one is won and renewed is the elector's."""

from __future__ import annotations

import math

from apisix_ingress.errors import LeadershipLost
from apisix_ingress.runtime.clock import Clock


class Term:
    """The right to write, until a monotonic instant that each renewal moves on.

    `deadline` is the instant (clock seconds) at which the lease may have run out for others: the start of the last
    successful renewal plus the lease duration. Without election a term never ends.
    """

    def __init__(self, clock: Clock, *, holder: str, deadline: float = math.inf) -> None:
        self._clock = clock
        self.holder = holder
        self.deadline = deadline
        self._doubted_until = -math.inf
        self._lasted_until = -math.inf

    def remaining(self) -> float:
        """Return the seconds for which writing is safe; zero or less once the lease may have run out."""
        return self.deadline - self._clock.monotonic()

    def check(self, seconds: float = 0.0) -> None:
        """Raise LeadershipLost unless the term lasts longer than the given seconds: the bound of the write to start."""
        if self.remaining() <= seconds:
            raise LeadershipLost(f"the lease of {self.holder} may have run out")

    def doubt(self, until: float) -> None:
        """Note that a write of this term which nobody answered may be carried out until an instant (clock seconds)."""
        self._doubted_until = max(self._doubted_until, until)

    def in_doubt(self) -> float:
        """Return the seconds for which a write of this term may still be carried out before anybody else's.

        Zero if none is under way, or if others may have written since the lease ran out.
        """
        lasts_until = max(self.deadline, self._lasted_until)
        return max(0.0, min(self._doubted_until, lasts_until) - self._clock.monotonic())

    def end(self) -> None:
        """End the term now: no write starts any more."""
        self._lasted_until = max(self._lasted_until, self.deadline)
        self.deadline = -math.inf
