"""The queue call by call: waiting, waking, delays, lanes, shutdown, and calls of the observer."""

import asyncio

import pytest

from apisix_ingress.runtime.queue.rate_limiters import ExponentialBackoff
from apisix_ingress.runtime.queue.workqueue import QueueObserver, QueueShutDown, WorkQueue
from tests.fakes.clock import FakeClock


class Recorder(QueueObserver):
    """An observer that records its calls."""

    def __init__(self) -> None:
        self.reported: list[tuple[str, float]] = []

    def depth(self, keys: int) -> None:
        self.reported.append(("depth", keys))

    def added(self) -> None:
        self.reported.append(("added", 1))

    def retried(self) -> None:
        self.reported.append(("retried", 1))

    def started(self, waited: float) -> None:
        self.reported.append(("started", waited))

    def finished(self, worked: float) -> None:
        self.reported.append(("finished", worked))


def make_queue(clock: FakeClock, *, urgent_burst: int = 8, observer: Recorder | None = None) -> WorkQueue[str]:
    limiter = ExponentialBackoff[str](1, 60)
    return WorkQueue(clock=clock, limiter=limiter, urgent_burst=urgent_burst, observer=observer)


def take_all(queue: WorkQueue[str]) -> list[str]:
    keys = []
    while (key := queue.take()) is not None:
        keys.append(key)
        queue.done(key)
    return keys


def getters(queue: WorkQueue[str], count: int) -> list[asyncio.Task[str]]:
    return [asyncio.create_task(queue.get(), name=f"getter-{number}") for number in range(count)]


def letter(key: str) -> str:
    return key[0]


def make_shared_queue(urgent_burst: int = 8) -> WorkQueue[str]:
    """Return a queue whose groups are the first letters of its keys."""
    return WorkQueue(clock=FakeClock(), limiter=ExponentialBackoff[str](1, 60), urgent_burst=urgent_burst, group=letter)


# Groups.


def test_groups_take_turns_and_each_is_first_in_first_out() -> None:
    queue = make_shared_queue()
    for key in ("a1", "a2", "a3", "b1", "b2", "c1"):
        queue.add(key)
    assert take_all(queue) == ["a1", "b1", "c1", "a2", "b2", "a3"]


def test_key_of_a_group_that_was_at_rest_waits_for_one_key_of_each_other_group() -> None:
    queue = make_shared_queue()
    for number in range(1000):
        queue.add(f"hog{number}")
    assert queue.take() == "hog0"
    queue.add("victim")
    assert [queue.take(), queue.take(), queue.take()] == ["hog1", "victim", "hog2"]


def test_groups_take_turns_in_the_urgent_lane_too() -> None:
    queue = make_shared_queue()
    for key in ("a1", "a2", "b1"):
        queue.add(key, urgent=True)
    assert take_all(queue) == ["a1", "b1", "a2"]


def test_only_a_dirty_key_is_expedited_to_the_urgent_lane() -> None:
    queue = make_shared_queue()
    queue.add("a1")
    queue.add("a2")
    queue.add_after("a3", 5)
    for key in ("a2", "a3", "a4"):
        queue.expedite(key)
    assert take_all(queue) == ["a2", "a1"]
    assert queue.delayed == 1


# One key.


def test_key_added_twice_is_handed_out_once() -> None:
    queue = make_queue(FakeClock())
    queue.add("a")
    queue.add("a")
    assert len(queue) == 1
    assert take_all(queue) == ["a"]


def test_key_added_while_processed_is_handed_out_after_done() -> None:
    queue = make_queue(FakeClock())
    queue.add("a")
    assert queue.take() == "a"
    queue.add("a")
    queue.add("a")
    assert (queue.take(), len(queue), queue.depth) == (None, 0, 1)
    queue.done("a")
    assert take_all(queue) == ["a"]
    assert queue.is_idle


def test_done_without_get_raises() -> None:
    queue = make_queue(FakeClock())
    queue.add("a")
    with pytest.raises(ValueError, match="that no worker has"):
        queue.done("a")


def test_a_burst_of_zero_is_rejected() -> None:
    with pytest.raises(ValueError, match="urgent_burst"):
        make_queue(FakeClock(), urgent_burst=0)


# Lanes.


def test_an_urgent_key_is_processed_first() -> None:
    queue = make_queue(FakeClock())
    for key in ("a", "b"):
        queue.add(key)
    queue.add("u", urgent=True)
    assert take_all(queue) == ["u", "a", "b"]


def test_normal_key_gets_its_turn_after_a_burst_of_urgent_ones() -> None:
    queue = make_queue(FakeClock(), urgent_burst=2)
    for key in ("a", "b"):
        queue.add(key)
    for key in ("u1", "u2", "u3", "u4", "u5"):
        queue.add(key, urgent=True)
    assert take_all(queue) == ["u1", "u2", "a", "u3", "u4", "b", "u5"]


def test_urgent_keys_before_a_normal_one_came_are_ignored() -> None:
    queue = make_queue(FakeClock(), urgent_burst=2)
    for key in ("u1", "u2", "u3", "u4"):
        queue.add(key, urgent=True)
    assert [queue.take(), queue.take()] == ["u1", "u2"]
    queue.add("a")
    assert take_all(queue) == ["u3", "u4", "a"]


def test_urgent_add_moves_a_waiting_key_forward_and_no_later_add_moves_it_back() -> None:
    queue = make_queue(FakeClock())
    for key in ("a", "b", "c"):
        queue.add(key)
    queue.add("c", urgent=True)
    queue.add("c")
    queue.add("c", urgent=True)
    assert take_all(queue) == ["c", "a", "b"]


def test_urgent_add_of_a_processed_key_is_urgent_after_done() -> None:
    queue = make_queue(FakeClock())
    queue.add("a")
    assert queue.take() == "a"
    queue.add("a")
    queue.add("a", urgent=True)
    queue.add("b")
    queue.done("a")
    assert take_all(queue) == ["a", "b"]


# Delays.


def test_delayed_key_is_ready_when_its_time_comes() -> None:
    clock = FakeClock()
    queue = make_queue(clock)
    queue.add_after("a", 5)
    clock.shift(4.9)
    assert (queue.take(), queue.delayed, queue.is_idle) == (None, 1, True)
    clock.shift(0.1)
    assert (queue.is_idle, queue.delayed, take_all(queue)) == (False, 0, ["a"])


def test_delayed_key_keeps_its_earliest_time() -> None:
    clock = FakeClock()
    queue = make_queue(clock)
    queue.add_after("a", 5)
    queue.add_after("a", 2)
    queue.add_after("a", 9)
    clock.shift(2)
    assert take_all(queue) == ["a"]
    clock.shift(100)
    assert take_all(queue) == []


def test_add_ends_the_delay_of_a_key() -> None:
    clock = FakeClock()
    queue = make_queue(clock)
    queue.add_after("a", 5)
    queue.add("a")
    assert take_all(queue) == ["a"]
    clock.shift(5)
    assert take_all(queue) == []


def test_delay_of_a_dirty_key_is_ignored() -> None:
    clock = FakeClock()
    queue = make_queue(clock)
    queue.add("a")
    queue.add_after("a", 5)
    assert queue.delayed == 0
    assert take_all(queue) == ["a"]


def test_the_delay_of_a_key_in_process_runs_independently() -> None:
    clock = FakeClock()
    queue = make_queue(clock)
    queue.add("a")
    assert queue.take() == "a"
    queue.add_after("a", 5)
    queue.done("a")
    assert queue.take() is None
    clock.shift(5)
    assert take_all(queue) == ["a"]


def test_delayed_key_made_urgent_stays_urgent() -> None:
    clock = FakeClock()
    queue = make_queue(clock)
    queue.add_after("u", 5)
    queue.add_after("u", 7, urgent=True)
    queue.add_after("u", 4)
    queue.add("a")
    clock.shift(4)
    assert take_all(queue) == ["u", "a"]


def test_zero_delay_is_an_add() -> None:
    queue = make_queue(FakeClock())
    queue.add_after("a", 0)
    assert take_all(queue) == ["a"]


def test_retry_waits_longer_each_time_until_forgotten() -> None:
    clock = FakeClock()
    queue = make_queue(clock)
    got = []
    for _ in range(4):
        got.append(queue.retry("a"))
        clock.shift(got[-1])
        assert take_all(queue) == ["a"]
    queue.forget("a")
    assert [*got, queue.retry("a")] == [1, 2, 4, 8, 1]


# Waiting.


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


# Idle.


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


# Shutdown.


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


# Measuring.


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
