"""The clock that whatever waits or measures is given, so that a virtual one can drive the whole program.

Here lives the real clock and the contract; a clock never decides when something should happen.
"""

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Where time comes from. Deadlines and durations use `monotonic` only; `now` is for what people read."""

    def monotonic(self) -> float:
        """Return seconds since an arbitrary start; never goes back, whatever happens to the wall clock."""

    async def sleep(self, seconds: float) -> None:
        """Return once `seconds` have passed by `monotonic`. Zero or less yields to the loop once."""

    def now(self) -> datetime:
        """Return the wall clock time, aware, in UTC. It may jump."""


class MonotonicClock:
    """The real clock: `time.monotonic`, which asyncio's timers use too, and `asyncio.sleep`."""

    def monotonic(self) -> float:
        """Return seconds since an arbitrary start."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Sleep `seconds` on the running loop."""
        await asyncio.sleep(max(0.0, seconds))

    def now(self) -> datetime:
        """Return the wall clock time in UTC."""
        return datetime.now(UTC)
