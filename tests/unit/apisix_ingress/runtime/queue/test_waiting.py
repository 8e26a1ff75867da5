"""The work queue: waiting for keys, for rest and for the end, and what observers receive."""

import asyncio

import pytest

from apisix_ingress.runtime.queue.workqueue import QueueShutDown, WorkQueue
from tests.fakes.clock import FakeClock
from tests.unit.apisix_ingress.runtime.queue.queueing import Recorder, make_queue, take_all


def getters(queue: WorkQueue[str], count: int) -> list[asyncio.Task[str]]:
    return [asyncio.create_task(queue.get(), name=f"getter-{number}") for number in range(count)]


async def test_get_waits_for_an_add_and_one_key_wakes_one_getter() -> None:
    clock = FakeClock()
    queue = make_queue(clock)
    first, second = getters(queue, 2)
    await clock.settle()
    queue.add("a")
    await clock.settle()
    assert (first.done(), second.done()) == (True, False)
    queue.add("b")
    assert (await first, await second) == ("a", "b")


async def test_getter_wakes_when_a_delayed_key_is_due() -> None:
    clock = FakeClock(start=0)
    queue = make_queue(clock)
    queue.add_after("late", 9)
    first, second = getters(queue, 2)
    await clock.settle()
    # Sooner than what the timer sleeps for, then later than that.
    queue.add_after("soon", 3)
    queue.add_after("later", 20)
    await clock.advance(3)
    assert await first == "soon"
    assert not second.done()
    await clock.advance(6)
    assert await second == "late"
    assert queue.delayed == 1


async def test_no_timer_runs_without_waiters() -> None:
    clock = FakeClock()
    queue = make_queue(clock)
    queue.add_after("a", 5)
    wakes = [clock.next_wake]
    (getter,) = getters(queue, 1)
    await clock.settle()
    wakes.append(clock.next_wake)
    getter.cancel()
    await clock.settle()
    wakes.append(clock.next_wake)
    assert wakes == [None, clock.monotonic() + 5, None]


async def test_timer_sleeps_again_after_a_delay_that_was_cut_short() -> None:
    clock = FakeClock()
    queue = make_queue(clock)
    (first,) = getters(queue, 1)
    await clock.settle()
    queue.add_after("a", 5)
    queue.add_after("b", 9)
    queue.add("a")
    assert await first == "a"
    (second,) = getters(queue, 1)
    await clock.advance(5)
    assert not second.done()
    await clock.advance(4)
    assert await second == "b"


async def test_a_new_timer_follows_an_expired_one() -> None:
    clock = FakeClock()
    queue = make_queue(clock)
    first, second = getters(queue, 2)
    await clock.settle()
    queue.add_after("a", 5)
    await clock.advance(5)
    assert await first == "a"
    queue.add_after("b", 5)
    await clock.advance(5)
    assert await second == "b"


async def test_the_wake_up_of_a_cancelled_getter_is_passed_on() -> None:
    clock = FakeClock()
    queue = make_queue(clock)
    first, second = getters(queue, 2)
    await clock.settle()
    queue.add("a")
    # Woken, but cancelled before it could run.
    first.cancel()
    await clock.settle()
    assert first.cancelled()
    assert await second == "a"


async def test_a_cancelled_getter_leaves_no_waiter() -> None:
    clock = FakeClock()
    queue = make_queue(clock)
    (getter,) = getters(queue, 1)
    await clock.settle()
    getter.cancel()
    # The waiter is cancelled but still in line: the wake-up must not be spent on it.
    queue.add("a")
    await clock.settle()
    assert getter.cancelled()
    assert await queue.get() == "a"


async def test_a_getter_keeps_waiting_when_its_key_was_taken() -> None:
    clock = FakeClock()
    queue = make_queue(clock)
    (getter,) = getters(queue, 1)
    await clock.settle()
    queue.add("a")
    assert queue.take() == "a"
    await clock.settle()
    assert not getter.done()
    queue.add("b")
    assert await getter == "b"


async def test_idle_waits_for_dirty_and_processed_keys_but_not_for_later_ones() -> None:
    clock = FakeClock()
    queue = make_queue(clock)
    await queue.idle()
    queue.add("a")
    queue.add("b")
    queue.add_after("later", 100)
    waiter = asyncio.create_task(queue.idle())
    for key in ("a", "b"):
        assert queue.take() == key
        await clock.settle()
        assert not waiter.done()
        queue.done(key)
    await waiter


async def test_waiting_for_idle_continues_when_a_key_arrived_first() -> None:
    clock = FakeClock()
    queue = make_queue(clock)
    queue.add("a")
    waiter = asyncio.create_task(queue.idle())
    await clock.settle()
    take_all(queue)
    queue.add("b")
    await clock.settle()
    assert not waiter.done()
    take_all(queue)
    await waiter


async def test_a_cancelled_wait_for_idle_leaves_no_waiter() -> None:
    clock = FakeClock()
    queue = make_queue(clock)
    queue.add("a")
    first, second = (asyncio.create_task(queue.idle()) for _ in range(2))
    await clock.settle()
    first.cancel()
    take_all(queue)
    await second
    assert first.cancelled()
    assert queue._idlers == set()


async def test_drain_returns_dirty_keys_once_and_accepts_none() -> None:
    clock = FakeClock()
    queue = make_queue(clock)
    for key in ("a", "b"):
        queue.add(key)
    queue.add_after("later", 1)
    assert await queue.get() == "a"
    queue.add("a")
    queue.shut_down()
    queue.add("c")
    queue.add_after("d", 1)
    assert queue.retry("a") == 1
    assert await queue.get() == "b"
    queue.done("b")
    getter = asyncio.create_task(queue.get())
    await clock.advance(10)
    assert not getter.done(), "the key that was added while processed is still to come"
    queue.done("a")
    assert await getter == "a"
    queue.done("a")
    with pytest.raises(QueueShutDown):
        await queue.get()
    assert queue.take() is None


async def test_all_waiting_getters_end_at_shutdown() -> None:
    clock = FakeClock()
    queue = make_queue(clock)
    tasks = getters(queue, 3)
    await clock.settle()
    queue.shut_down()
    got = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in got] == [QueueShutDown] * 3


async def test_all_waiting_getters_end_once_the_last_dirty_key_is_done() -> None:
    clock = FakeClock()
    queue = make_queue(clock)
    queue.add("a")
    assert queue.take() == "a"
    queue.add("a")
    queue.shut_down()
    tasks = getters(queue, 2)
    await clock.settle()
    queue.done("a")
    got = await asyncio.gather(*tasks, return_exceptions=True)
    assert [got[0], type(got[1])] == ["a", QueueShutDown]


async def test_a_queue_that_is_shut_down_is_idle_once_the_last_key_is_done() -> None:
    clock = FakeClock()
    queue = make_queue(clock)
    queue.add("a")
    queue.add_after("later", 1)
    assert await queue.get() == "a"
    queue.shut_down()
    assert (queue.depth, queue.delayed) == (0, 0)
    waiter = asyncio.create_task(queue.idle())
    await clock.settle()
    assert not waiter.done()
    queue.done("a")
    await waiter


def test_oldest_age_is_that_of_the_key_which_waits_longest() -> None:
    clock = FakeClock(start=0)
    queue = make_queue(clock)
    assert queue.oldest_age(0) == 0
    queue.add("a")
    assert queue.take() == "a"
    clock.shift(1)
    queue.add("a")
    clock.shift(2)
    queue.add("b")
    queue.add("u", urgent=True)
    clock.shift(3)
    assert queue.oldest_age(clock.monotonic()) == 5


def test_an_observer_receives_depth_adds_retries_waits_and_work() -> None:
    clock, observer = FakeClock(start=0), Recorder()
    queue = make_queue(clock, observer=observer)
    queue.add("a")
    queue.add("a")
    clock.shift(2)
    assert queue.take() == "a"
    clock.shift(3)
    queue.retry("a")
    queue.done("a")
    clock.shift(1)
    assert len(queue) == 1
    assert observer.reported == [
        ("added", 1),
        ("depth", 1),
        ("started", 2),
        ("depth", 0),
        ("retried", 1),
        ("finished", 3),
        ("added", 1),
        ("depth", 1),
    ]


def test_age_of_a_key_that_a_worker_has_counts_from_the_moment_it_became_dirty() -> None:
    clock = FakeClock()
    queue = make_queue(clock)
    queue.add("a")
    added_at = clock.monotonic()
    clock.shift(2)
    assert queue.take() == "a"
    clock.shift(3)
    assert (queue.dirty_since("a"), queue.dirty_since("b")) == (added_at, clock.monotonic())
