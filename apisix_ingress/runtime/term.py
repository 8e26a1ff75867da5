"""Terms: a period of leadership, as a value that every writer holds. The elector creates and extends terms."""

from __future__ import annotations

import math

from apisix_ingress.errors import LeadershipLost
from apisix_ingress.runtime.clock import Clock


class Term:
    """The right to write, until a monotonic time that each renewal extends.

    `deadline` is the time (clock seconds) at which the lease may have expired for other candidates: the start of the
    last successful renewal plus the lease duration. Without election a term never ends.
    """

    def __init__(self, clock: Clock, *, holder: str, deadline: float = math.inf) -> None:
        self._clock = clock
        self.holder = holder
        self.deadline = deadline
        self._unacked_until = -math.inf
        self._lasted_until = -math.inf

    def remaining(self) -> float:
        """Return the seconds for which writing is safe; zero or less once the lease may have expired."""
        return self.deadline - self._clock.monotonic()

    def check(self, seconds: float = 0.0) -> None:
        """Raise LeadershipLost unless the term lasts longer than `seconds`, the timeout of the write to start."""
        if self.remaining() <= seconds:
            raise LeadershipLost(f"the lease of {self.holder} may have expired")

    def note_unacked(self, until: float) -> None:
        """Record that an unacknowledged write of this term may take effect until a time (clock seconds)."""
        self._unacked_until = max(self._unacked_until, until)

    def unacked_seconds(self) -> float:
        """Return the seconds for which an unacknowledged write of this term may still take effect under its lease.

        Zero if there is no such write, or if the lease has expired and another leader may have written.
        """
        lasts_until = max(self.deadline, self._lasted_until)
        return max(0.0, min(self._unacked_until, lasts_until) - self._clock.monotonic())

    def end(self) -> None:
        """End the term now: no write starts any more."""
        self._lasted_until = max(self._lasted_until, self.deadline)
        self.deadline = -math.inf
