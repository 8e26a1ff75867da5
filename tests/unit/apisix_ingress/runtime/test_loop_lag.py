"""The watch over the event loop: what it remembers, and for how long."""

import asyncio
import contextlib

from apisix_ingress.runtime.loop_lag import TICK, WINDOW, LoopLagWatch
from tests.fakes.clock import FakeClock


async def test_the_longest_stall_is_remembered_for_a_while() -> None:
    clock = FakeClock()
    watch = LoopLagWatch(clock)
    task = asyncio.create_task(watch.run())
    await clock.advance(1)
    assert watch.longest() < TICK
    clock.shift(2)  # nothing runs meanwhile
    await clock.advance(0)
    assert 2 - TICK <= watch.longest() <= 2
    clock.shift(1)
    await clock.advance(WINDOW)
    assert watch.longest() >= 2 - TICK
    await clock.advance(2 * WINDOW)
    assert watch.longest() < TICK
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
