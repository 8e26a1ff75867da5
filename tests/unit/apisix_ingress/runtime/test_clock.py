"""The real clock agrees with asyncio; the fake one wakes its sleepers in order."""

import asyncio
import time
from datetime import UTC, datetime

from apisix_ingress.runtime.clock import Clock, MonotonicClock
from tests.fakes.clock import FakeClock


async def test_real_clock_reads_the_clock_of_asyncio_timers() -> None:
    before = asyncio.get_running_loop().time()
    got = MonotonicClock().monotonic()
    assert before <= got <= time.monotonic()


def test_the_real_clock_returns_the_wall_time_in_utc() -> None:
    before = datetime.now(UTC)
    got = MonotonicClock().now()
    assert before <= got <= datetime.now(UTC)
    assert got.tzinfo is UTC


async def test_real_clock_yields_even_for_a_negative_sleep() -> None:
    seen: list[str] = []
    asyncio.get_running_loop().call_soon(seen.append, "other")
    await MonotonicClock().sleep(-1)
    assert seen == ["other"]


async def test_fake_clock_wakes_sleepers_in_order_each_at_its_time() -> None:
    clock: Clock = FakeClock(start=0)
    seen: list[tuple[str, float]] = []

    async def sleeper(name: str, *delays: float) -> None:
        for delay in delays:
            await clock.sleep(delay)
            seen.append((name, clock.monotonic()))

    async with asyncio.TaskGroup() as group:
        group.create_task(sleeper("a", 2, 2))
        group.create_task(sleeper("b", 3))
        group.create_task(sleeper("c", 0, 4))
        assert isinstance(clock, FakeClock)
        await clock.advance(4)
    assert seen == [("c", 0), ("a", 2), ("b", 3), ("c", 4), ("a", 4)]


async def test_the_fake_clock_wakes_no_one_early() -> None:
    clock = FakeClock()
    task = asyncio.create_task(clock.sleep(5))
    await clock.advance(4.9)
    assert not task.done()
    assert await clock.run_to_next()
    assert task.done()
    assert clock.next_wake is None
    assert not await clock.run_to_next()


async def test_fake_clock_forgets_a_cancelled_sleeper() -> None:
    clock = FakeClock()
    task = asyncio.create_task(clock.sleep(5))
    await clock.settle()
    task.cancel()
    await clock.settle()
    assert clock.next_wake is None


def test_fake_wall_clock_jumps_without_moving_the_monotonic_one() -> None:
    clock = FakeClock(start=10, wall=datetime(2026, 1, 1, tzinfo=UTC))
    clock.shift(5)
    clock.jump_wall(-3600)
    assert clock.monotonic() == 15
    assert clock.now() == datetime(2025, 12, 31, 23, 0, 5, tzinfo=UTC)
