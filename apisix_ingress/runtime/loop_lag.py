"""Watches over the event loop: how long it kept a task waiting that was due. What follows from it is decided elsewhere.

A leader whose loop stood still for long steps down by itself, since every write looks at the term's deadline first.
"""

from __future__ import annotations

from apisix_ingress.runtime.clock import Clock

TICK = 0.1
"""Seconds between two looks: a shorter stall in between them may go unseen."""

WINDOW = 60.0
"""The longest stall is remembered for so many seconds, and for twice as many at most."""


class LoopLagWatch:
    """Sleeps, and notes by how much each sleep was too long."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._now = self._before = 0.0
        self._window_ends = clock.monotonic() + WINDOW

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            due = self._clock.monotonic() + TICK
            await self._clock.sleep(TICK)
            self._note(self._clock.monotonic(), due)

    def longest(self) -> float:
        """Return the longest stall of late, in seconds."""
        return max(self._now, self._before)

    def _note(self, now: float, due: float) -> None:
        if now >= self._window_ends:
            self._before, self._now = self._now, 0.0
            self._window_ends = now + WINDOW
        self._now = max(self._now, now - due)
