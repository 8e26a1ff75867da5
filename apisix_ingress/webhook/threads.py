"""Runs the checks of objects in a few threads, never on the event loop, and ends a check that does not return.

The threads take turns with the event loop every few milliseconds, so that a check delays neither the lease nor the
health endpoints. This requires that no single call into a library takes long: texts are matched in linear time, and a
request has a maximum size (decision 32).
"""

from __future__ import annotations

import asyncio
import ctypes
import threading
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

THREADS = 3
"""Checks that run at the same time."""

THREADS_OF_CLIENT = 2
"""Checks of one client that run at the same time."""

MOST_LOST = 4
"""Threads that were ended and still run; with more, no check begins."""


END_AGAIN_SECONDS = 0.1


class Ended(BaseException):
    """Raised inside a check that took too long; not an `Exception`, which checks may handle."""


class _Thread:
    """One thread; after its check was ended it runs no other."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="webhook")
        self._lock = threading.Lock()
        self._running: int | None = None

    def run(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Start a check."""
        return asyncio.get_running_loop().run_in_executor(self._executor, self._run, work)

    def _run(self, work: Callable[[], T]) -> T:
        with self._lock:
            self._running = threading.get_ident()
        try:
            return work()
        finally:
            with self._lock:
                self._running = None

    def end(self) -> None:
        """Raise `Ended` inside the check at its next step; a finalizer that runs at this moment would swallow it."""
        with self._lock:
            if self._running is not None:
                ident, error = ctypes.c_ulong(self._running), ctypes.py_object(Ended)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, error)

    def close(self) -> None:
        """Start no further check."""
        self._executor.shutdown(wait=False, cancel_futures=True)


class Threads:
    """The threads of the webhook. A free one is given to the waiting client with the fewest running checks."""

    def __init__(self) -> None:
        self._free = [_Thread() for _ in range(THREADS)]
        self._running: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[_Thread]]] = {}
        self._lost = 0

    def close(self) -> None:
        """Start no further check."""
        for thread in self._free:
            thread.close()

    async def run(self, client: str, work: Callable[[], T], *, ends: float, seconds: float) -> T:
        """Return the result of a check.

        Args:
            client: Whose check it is.
            work: The check.
            ends: Time of the event loop at which the check is ended, whether it runs or waits.
            seconds: For how long it may run.

        Raises:
            TimeoutError: It was ended.
        """
        async with asyncio.timeout_at(ends):
            thread = await self._thread_for(client)
            running = thread.run(work)
            try:
                async with asyncio.timeout(seconds):
                    return await asyncio.shield(running)
            except (asyncio.CancelledError, TimeoutError):
                if not running.done():
                    self._end(thread, running)
                    thread = _Thread()
                raise
            finally:
                self._give_back(client, thread)

    async def _thread_for(self, client: str) -> _Thread:
        turn: asyncio.Future[_Thread] = asyncio.get_running_loop().create_future()
        turns = self._waiting.setdefault(client, deque())
        turns.append(turn)
        self._serve()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it got a thread at the same moment
                self._give_back(client, turn.result())
            else:
                turns.remove(turn)
            raise

    def _give_back(self, client: str, thread: _Thread) -> None:
        self._running[client] -= 1
        if not self._running[client]:
            del self._running[client]
        self._free.append(thread)
        self._serve()

    def _serve(self) -> None:
        """Give free threads to waiting clients."""
        while self._free and self._lost <= MOST_LOST and (client := self._next()) is not None:
            turns = self._waiting.pop(client)
            turn = turns.popleft()
            if turns:  # now the client is the last among equals
                self._waiting[client] = turns
            self._running[client] += 1
            turn.set_result(self._free.pop())

    def _next(self) -> str | None:
        for client in [client for client, turns in self._waiting.items() if not turns]:
            del self._waiting[client]
        allowed = (client for client in self._waiting if self._running[client] < THREADS_OF_CLIENT)
        return min(allowed, key=self._running.__getitem__, default=None)

    def _end(self, thread: _Thread, running: asyncio.Future[T]) -> None:
        """End a check whose result is not used; it may still need some time."""
        thread.close()
        self._lost += 1
        running.add_done_callback(self._returned)
        self._end_until_done(thread, running)

    def _end_until_done(self, thread: _Thread, running: asyncio.Future[T]) -> None:
        if not running.done():
            thread.end()
            running.get_loop().call_later(END_AGAIN_SECONDS, self._end_until_done, thread, running)

    def _returned(self, running: asyncio.Future[T]) -> None:
        self._lost -= 1
        if not running.cancelled():
            running.exception()  # its result is not used
        self._serve()
