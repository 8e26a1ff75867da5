"""Tasks: workers over a queue, bounds on waiting, and stopping a task for good.

Every helper keeps to structured concurrency: what it starts has ended when it returns, and a cancellation
always goes on to the caller. Which tasks exist is decided by the composition root.
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
    """Work on `queue` with `workers` tasks named ``<name>-<n>`` until it is shut down and drained.

    A handler that returns has succeeded: the key's failures are forgotten. One that raises an `Exception` has
    failed: `on_error` is told (it logs; what it raises ends all workers) and the key is retried. When the
    workers are cancelled, the keys they had go back to the queue, for whoever works on it next.
    """
    async with asyncio.TaskGroup() as group:
        for number in range(workers):
            group.create_task(_work(queue, handler, on_error), name=f"{name}-{number}")


async def _work(queue: WorkQueue[K], handler: Handler[K], on_error: OnError[K]) -> None:
    """Be one worker."""
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
    """Handle `key` once and settle what follows from the outcome."""
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
    """Bound the body to `seconds` of `clock`; like `asyncio.timeout`, but on any clock.

    Raises:
        TimeoutError: the body was cancelled because its time was up.
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
    """Await `work` for `seconds` of `clock` at most.

    Raises:
        TimeoutError: it took longer and was cancelled.
    """
    async with deadline(seconds, clock=clock):
        return await work


async def in_turns(items: Iterable[T], *, every: int = 50) -> AsyncIterator[T]:
    """Yield the items, with a turn for other tasks after every so many: 50 listed records take about 2 ms."""
    for number, item in enumerate(items, 1):
        yield item
        if number % every == 0:
            await asyncio.sleep(0)


async def cancel(task: asyncio.Task[T]) -> None:
    """Cancel `task` and wait until it has ended; raise what it raised, if that was no cancellation.

    Does nothing to a task that has ended already, other than to raise its error. A cancellation of the caller
    goes through, with `task` cancelled all the same.
    """
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled() and (error := task.exception()) is not None:
        raise error


async def in_daemon(work: Callable[[], T], *, name: str) -> T:
    """Return what `work` returns or raise what it raises, from a thread that nobody waits for at the end.

    For what may hang for good, as a dead file system does: `asyncio.to_thread` would keep the process from ending.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(set_: Callable[[], None]) -> None:
        # Nobody may wait any more, and the loop may be closed.
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
