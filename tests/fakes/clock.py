"""A clock that stops until a test advances it, and wakes its sleepers in order."""

import asyncio
import heapq
from datetime import UTC, datetime, timedelta

# This many turns of the loop are enough for any chain of callbacks that one wake-up triggers in a test.
_SETTLE_TURNS = 50


class FakeClock:
    """Virtual time: `sleep` returns only when `advance` or `run_to_next` reaches its end.

    `now` advances with the monotonic time, and jumps with `jump_wall`, like real wall clocks.
    """

    def __init__(self, start: float = 1000.0, wall: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._time = start
        self._wall = wall - timedelta(seconds=start)
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._sequence = 0

    def monotonic(self) -> float:
        return self._time

    def now(self) -> datetime:
        return self._wall + timedelta(seconds=self._time)

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        self._sequence += 1
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._time + seconds, self._sequence, waiter))
        await waiter

    def jump_wall(self, seconds: float) -> None:
        """Move the wall clock only, as an operator or NTP would."""
        self._wall += timedelta(seconds=seconds)

    def shift(self, seconds: float) -> None:
        """Move the time without waking sleepers: for tests without a loop."""
        self._time += seconds

    @property
    def next_wake(self) -> float | None:
        """The monotonic time at which the next sleeper wakes, None if there is no sleeper."""
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
        return self._sleepers[0][0] if self._sleepers else None

    async def settle(self) -> None:
        """Run everything that can run without time passing."""
        for _ in range(_SETTLE_TURNS):
            await asyncio.sleep(0)

    async def advance(self, seconds: float) -> None:
        """Let `seconds` pass; each sleeper wakes at its own time and runs before the next one wakes."""
        await self.settle()
        end = self._time + seconds
        while (due := self.next_wake) is not None and due <= end:
            # Sleepers that became due by `shift` wake now: time never goes backwards.
            self._time = max(self._time, due)
            _, _, waiter = heapq.heappop(self._sleepers)
            waiter.set_result(None)
            await self.settle()
        self._time = max(self._time, end)
        await self.settle()

    async def run_to_next(self) -> bool:
        """Let time pass until the next sleeper wakes; return False without sleepers."""
        await self.settle()
        due = self.next_wake
        if due is None:
            return False
        await self.advance(max(0.0, due - self._time))
        return True
