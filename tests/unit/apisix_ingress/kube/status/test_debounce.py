"""Delayed keys: passed on together, each once, and none is lost."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from apisix_ingress.kube.status.debounce import Debouncer
from apisix_ingress.kube.status.schedule import DEBOUNCE_SECONDS
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.runtime.queue.rate_limiters import ExponentialBackoff
from apisix_ingress.runtime.queue.workqueue import WorkQueue
from tests.fakes.clock import FakeClock

WEB, SHOP = (ObjectKey("ApisixRoute", "default", name) for name in ("web", "shop"))


def make_queue(clock: FakeClock) -> WorkQueue[ObjectKey]:
    return WorkQueue(clock=clock, limiter=ExponentialBackoff(0.1, 1.0))


def taken(queue: WorkQueue[ObjectKey]) -> list[ObjectKey]:
    """Take the ready keys."""
    keys = []
    while (key := queue.take()) is not None:
        keys.append(key)
        queue.done(key)
    return keys


@asynccontextmanager
async def running(gathering: Debouncer) -> AsyncIterator[None]:
    task = asyncio.create_task(gathering.run())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_keys_that_are_woken_within_a_moment_are_handed_on_once_each() -> None:
    clock = FakeClock()
    queue = make_queue(clock)
    gathering = Debouncer(queue, clock=clock)
    async with running(gathering):
        gathering.wake(WEB)
        await clock.advance(DEBOUNCE_SECONDS / 2)
        gathering.wake(SHOP)
        gathering.wake(WEB)
        before = taken(queue)
        await clock.advance(DEBOUNCE_SECONDS / 2)
        assert (before, taken(queue)) == ([], [WEB, SHOP])
        gathering.wake(WEB)
        await clock.advance(DEBOUNCE_SECONDS)
        assert taken(queue) == [WEB]


async def test_woken_keys_wait_while_no_getter_is_active() -> None:
    clock = FakeClock()
    queue = make_queue(clock)
    gathering = Debouncer(queue, clock=clock)
    gathering.wake(WEB)
    async with running(gathering):
        await clock.settle()
        gathering.wake(SHOP)
    assert taken(queue) == []
    async with running(gathering):
        await clock.advance(DEBOUNCE_SECONDS)
        assert taken(queue) == [WEB, SHOP]


async def test_others_have_their_turn_while_thousands_are_handed_on() -> None:
    queue = make_queue(FakeClock())
    gathering = Debouncer(queue, clock=FakeClock())
    for number in range(1000):
        gathering.wake(ObjectKey("ApisixRoute", "default", f"r{number}"))
    turns = 0
    task = asyncio.create_task(gathering.hand_on())
    while not task.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns > 10
    assert len(taken(queue)) == 1000
