"""Workers over a queue, bounded waits, stopping tasks; all on a fake clock."""

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from apisix_ingress.runtime.queue.rate_limiters import FastSlow
from apisix_ingress.runtime.queue.workqueue import WorkQueue
from apisix_ingress.runtime.tasks import (
    bounded,
    cancel,
    deadline,
    discard,
    ends_within,
    first_of,
    in_daemon,
    run_workers,
)
from tests.fakes.clock import FakeClock


def make_queue(clock: FakeClock) -> WorkQueue[str]:
    return WorkQueue(clock=clock, limiter=FastSlow[str](1, 10, fast_tries=2))


def no_error(key: str, error: Exception) -> None:
    raise AssertionError(f"{key} failed") from error


def start(
    queue: WorkQueue[str],
    handler: Callable[[str], Awaitable[None]],
    workers: int = 2,
    on_error: Callable[[str, Exception], None] = no_error,
) -> asyncio.Task[None]:
    return asyncio.create_task(run_workers(queue, handler, workers=workers, name="test", on_error=on_error))


async def test_workers_handle_all_keys_and_end_when_the_queue_is_drained() -> None:
    clock, got = FakeClock(), []
    queue = make_queue(clock)

    async def handler(key: str) -> None:
        got.append(key)

    for key in "abc":
        queue.add(key)
    task = start(queue, handler)
    await clock.settle()
    queue.add("d")
    queue.shut_down()
    await task
    assert got == ["a", "b", "c", "d"]
    assert queue.is_idle


async def test_the_number_of_workers_is_as_configured_and_each_has_a_name() -> None:
    clock, names = FakeClock(), []
    queue = make_queue(clock)

    async def handler(_key: str) -> None:
        current = asyncio.current_task()
        assert current is not None
        names.append(current.get_name())
        await clock.sleep(1)

    for key in "abcd":
        queue.add(key)
    task = start(queue, handler, workers=3)
    await clock.settle()
    assert names == ["test-0", "test-1", "test-2"]
    assert len(queue) == 1
    queue.shut_down()
    await clock.advance(2)
    await task


async def test_failed_key_is_reported_and_retried_until_it_succeeds() -> None:
    clock = FakeClock(start=0)
    queue, tries, errors = make_queue(clock), [], []

    async def handler(key: str) -> None:
        tries.append(clock.monotonic())
        if len(tries) < 4:
            raise OSError("refused")

    task = start(queue, handler, on_error=lambda key, error: errors.append((key, repr(error))))
    queue.add("a")
    await clock.advance(60)
    assert tries == [0, 1, 2, 12]
    assert errors == [("a", "OSError('refused')")] * 3
    # The success resets the limiter: the delay after the next failure is short again.
    assert queue.retry("a") == 1
    queue.shut_down()
    await task


async def test_cancelled_workers_put_their_keys_back_and_end() -> None:
    clock = FakeClock()
    queue = make_queue(clock)

    async def handler(_key: str) -> None:
        await clock.sleep(100)

    queue.add("a")
    queue.add("b")
    task = start(queue, handler)
    await clock.settle()
    assert (len(queue), queue.is_idle) == (0, False)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted([queue.take() or "", queue.take() or ""]) == ["a", "b"]


async def test_error_of_the_error_hook_ends_all_workers() -> None:
    clock = FakeClock()
    queue = make_queue(clock)

    async def handler(_key: str) -> None:
        raise OSError("refused")

    def broken_hook(_key: str, error: Exception) -> None:
        raise RuntimeError("no log") from error

    queue.add("a")
    with pytest.raises(ExceptionGroup) as caught:
        await run_workers(queue, handler, workers=2, name="test", on_error=broken_hook)
    assert [repr(error) for error in caught.value.exceptions] == ["RuntimeError('no log')"]
    assert (queue.is_idle, queue.delayed) == (True, 1)


async def test_bounded_returns_the_result_in_time() -> None:
    clock = FakeClock()

    async def work() -> str:
        await clock.sleep(4)
        return "done"

    task = asyncio.create_task(bounded(work(), 5, clock=clock))
    await clock.advance(4)
    assert await task == "done"
    assert clock.next_wake is None


async def test_bounded_cancels_the_work_when_its_time_is_up() -> None:
    clock, seen = FakeClock(), []

    async def work() -> None:
        try:
            await clock.sleep(100)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    task = asyncio.create_task(bounded(work(), 5, clock=clock))
    await clock.advance(4.9)
    assert not task.done()
    await clock.advance(0.1)
    with pytest.raises(TimeoutError):
        await task
    assert seen == ["cancelled"]


@pytest.mark.parametrize(("seconds", "want"), [(4, True), (6, False)])
async def test_ends_within_returns_whether_the_work_ended_in_time(seconds: float, want: bool) -> None:
    clock = FakeClock()
    task = asyncio.create_task(ends_within(clock.sleep(seconds), 5, clock=clock))
    await clock.advance(5)
    assert await task is want
    assert clock.next_wake is None


async def test_cancelling_the_caller_of_bounded_is_not_a_timeout() -> None:
    clock = FakeClock()
    task = asyncio.create_task(bounded(clock.sleep(100), 5, clock=clock))
    await clock.settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await clock.settle()
    assert clock.next_wake is None


async def test_deadline_lets_errors_of_its_body_through() -> None:
    clock = FakeClock()
    with pytest.raises(OSError, match="refused"):
        async with deadline(5, clock=clock):
            raise OSError("refused")
    await clock.settle()
    assert clock.next_wake is None


async def test_cancel_waits_for_the_clean_up_of_the_task() -> None:
    clock, seen = FakeClock(), []

    async def work() -> None:
        try:
            await clock.sleep(100)
        finally:
            await asyncio.sleep(0)
            seen.append("cleaned up")

    task = asyncio.create_task(work())
    await clock.settle()
    await cancel(task)
    assert seen == ["cleaned up"]
    assert task.cancelled()


async def test_cancel_raises_what_the_task_raised() -> None:
    async def work() -> None:
        raise OSError("refused")

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    with pytest.raises(OSError, match="refused"):
        await cancel(task)


async def test_cancel_accepts_a_task_that_has_ended() -> None:
    async def work() -> str:
        return "done"

    task = asyncio.create_task(work())
    await task
    await cancel(task)
    assert task.result() == "done"


async def test_a_discarded_task_may_have_failed_or_still_run() -> None:
    async def fail() -> None:
        raise OSError("refused")

    failed, running = asyncio.create_task(fail()), asyncio.create_task(asyncio.sleep(100))
    await asyncio.sleep(0)
    await discard(failed)
    await discard(running)
    assert (failed.done(), running.cancelled()) == (True, True)


async def test_cancelled_caller_of_cancel_is_cancelled_and_so_is_the_task() -> None:
    clock = FakeClock()

    async def stubborn() -> None:
        try:
            await clock.sleep(100)
        except asyncio.CancelledError:
            await clock.sleep(10)
            raise

    task = asyncio.create_task(stubborn())
    await clock.settle()
    stopper = asyncio.create_task(cancel(task))
    await clock.settle()
    stopper.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopper
    await clock.advance(10)
    assert task.cancelled()


async def test_the_first_work_that_ends_ends_the_others() -> None:
    ended: list[str] = []

    async def never(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(name)

    async def fail() -> None:
        raise ValueError("failed")

    await first_of(never("a"), asyncio.sleep(0), never("b"))
    assert ended == ["a", "b"]
    with pytest.raises(ValueError, match="failed"):
        await first_of(never("c"), fail())
    waiting = asyncio.create_task(first_of(never("d"), never("e")))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await cancel(waiting)
    assert ended == ["a", "b", "c", "d", "e"]


async def test_work_in_a_daemon_returns_and_raises() -> None:
    assert await in_daemon(lambda: threading.current_thread().name, name="reader") == "reader"

    def fail() -> None:
        raise OSError("no such file")

    with pytest.raises(OSError, match="no such file"):
        await in_daemon(fail, name="reader")


async def test_a_hanging_daemon_thread_does_not_block_the_exit() -> None:
    release = threading.Event()
    task = asyncio.create_task(in_daemon(release.wait, name="hung"))
    await asyncio.sleep(0)
    [hung] = [thread for thread in threading.enumerate() if thread.name == "hung"]
    await cancel(task)
    assert (task.cancelled(), hung.is_alive(), hung.daemon) == (True, True, True)
    release.set()
    await asyncio.to_thread(hung.join)
    await asyncio.sleep(0)
