"""Tasks: workers for a queue, deadlines, and cancellation.

Every function follows structured concurrency: the tasks that it starts have ended when it returns, and it passes a
cancellation on to its caller. `app` decides which tasks exist.
"""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable
from contextlib import asynccontextmanager
from typing import TypeVar

from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.queue.workqueue import QueueShutDown, WorkQueue

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

Handler = Callable[[K], Awaitable[None]]
OnError = Callable[[K, Exception], None]


async def run_workers(
    queue: WorkQueue[K], handler: Handler[K], *, workers: int, name: str, on_error: OnError[K]
) -> None:
    """Process `queue` with `workers` tasks named ``<name>-<n>`` until it is shut down and drained.

    If the handler returns, the key's failures are forgotten. If it raises an `Exception`, `on_error` is called and the
    key is retried; an exception of `on_error` ends all workers. When the workers are cancelled, their keys go back to
    the queue.
    """
    async with asyncio.TaskGroup() as group:
        for number in range(workers):
            group.create_task(_work(queue, handler, on_error), name=f"{name}-{number}")


async def _work(queue: WorkQueue[K], handler: Handler[K], on_error: OnError[K]) -> None:
    """Run one worker."""
    while True:
        try:
            key = await queue.get()
        except QueueShutDown:
            return
        try:
            await _handle(queue, key, handler, on_error)
        finally:
            queue.done(key)


async def _handle(queue: WorkQueue[K], key: K, handler: Handler[K], on_error: OnError[K]) -> None:
    """Handle `key` once, then forget its failures or retry it."""
    try:
        await handler(key)
    except asyncio.CancelledError:
        queue.add(key)
        raise
    except Exception as error:
        queue.retry(key)
        on_error(key, error)
    else:
        queue.forget(key)


@asynccontextmanager
async def deadline(seconds: float, *, clock: Clock) -> AsyncIterator[None]:
    """Limit the body to `seconds` of `clock`; like `asyncio.timeout`, but on any clock.

    Raises:
        TimeoutError: The time was up, and the body was cancelled.
    """
    loop = asyncio.get_running_loop()

    async def expire() -> None:
        await clock.sleep(seconds)
        scope.reschedule(loop.time())

    async with asyncio.timeout(None) as scope:
        timer = loop.create_task(expire(), name="deadline")
        try:
            yield
        finally:
            timer.cancel()


async def bounded(work: Awaitable[T], seconds: float, *, clock: Clock) -> T:
    """Await `work` for at most `seconds` of `clock`.

    Raises:
        TimeoutError: The time was up, and `work` was cancelled.
    """
    async with deadline(seconds, clock=clock):
        return await work


async def ends_within(work: Awaitable[object], seconds: float, *, clock: Clock) -> bool:
    """Await `work` for at most `seconds` of `clock`; return whether it ended. If not, it was cancelled."""
    try:
        await bounded(work, seconds, clock=clock)
    except TimeoutError:
        return False
    return True


async def first_of(*works: Awaitable[object]) -> None:
    """Return once one of `works` has ended, and end the others; raise its exception."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            await discard(task)


async def in_turns(items: Iterable[T], *, every: int = 50) -> AsyncIterator[T]:
    """Yield the items; let other tasks run after every `every` items. 50 listed records take about 2 ms."""
    for number, item in enumerate(items, 1):
        yield item
        if number % every == 0:
            await asyncio.sleep(0)


async def cancel(task: asyncio.Task[T]) -> None:
    """Cancel `task` and wait until it has ended; raise its exception unless that is the cancellation.

    For a task that has ended already, only raise its exception, if any. If the caller is cancelled, raise that; `task`
    is cancelled nevertheless.
    """
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled() and (error := task.exception()) is not None:
        raise error


async def discard(task: asyncio.Future[T]) -> None:
    """Cancel `task` and wait until it has ended, however it ends."""
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.exception()  # otherwise asyncio reports that it was never retrieved


async def in_daemon(work: Callable[[], T], *, name: str) -> T:
    """Run `work` in a daemon thread; return its result or raise its exception.

    For work that may hang forever, as on a dead file system: `asyncio.to_thread` would keep the process from ending.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(set_: Callable[[], None]) -> None:
        # The caller may have been cancelled, and the loop may be closed.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(lambda: None if done.done() else set_())

    def run() -> None:
        try:
            result = work()
        except Exception as error:
            failure = error
            settle(lambda: done.set_exception(failure))
        else:
            settle(lambda: done.set_result(result))

    threading.Thread(target=run, name=name, daemon=True).start()
    return await done
