"""The clock interface and the real clock. All waits and measurements use it, so tests can run on a virtual clock."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """A source of time. Deadlines and durations use `monotonic` only; `now` is for display only."""

    def monotonic(self) -> float:
        """Return seconds since an arbitrary start. It never goes back, even if the wall clock does."""

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
