"""The work queue: which key is returned next, and when."""

import pytest

from apisix_ingress.runtime.queue.rate_limiters import ExponentialBackoff
from apisix_ingress.runtime.queue.workqueue import WorkQueue
from tests.fakes.clock import FakeClock
from tests.unit.apisix_ingress.runtime.queue.queueing import make_queue, take_all


def letter(key: str) -> str:
    return key[0]


def make_shared_queue(urgent_burst: int = 8) -> WorkQueue[str]:
    """Return a queue whose groups are the first letters of its keys."""
    return WorkQueue(clock=FakeClock(), limiter=ExponentialBackoff[str](1, 60), urgent_burst=urgent_burst, group=letter)


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
