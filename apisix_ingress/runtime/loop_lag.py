"""Measures the lag of the event loop: how long a due task had to wait.

A leader whose loop was blocked too long steps down anyway, because every write checks the term's deadline first.
"""

from __future__ import annotations

from apisix_ingress.runtime.clock import Clock

TICK = 0.1
"""Seconds between two measurements; a shorter stall may be missed."""

WINDOW = 60.0
"""The longest stall is remembered for at least this many seconds, and at most twice as long."""


class LoopLagWatch:
    """Sleeps repeatedly and records by how much each sleep was too long."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._now = self._before = 0.0
        self._window_ends = clock.monotonic() + WINDOW

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            due = self._clock.monotonic() + TICK
            await self._clock.sleep(TICK)
            self._record(self._clock.monotonic(), due)

    def longest(self) -> float:
        """Return the longest recent stall in seconds."""
        return max(self._now, self._before)

    def _record(self, now: float, due: float) -> None:
        if now >= self._window_ends:
            self._before, self._now = self._now, 0.0
            self._window_ends = now + WINDOW
        self._now = max(self._now, now - due)
