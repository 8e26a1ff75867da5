"""An event loop on which several processes run interleaved by a seed, and time passes when no process can run.

Each callback belongs to the process of its context. Within a process the order is the one that asyncio guarantees,
first in, first out; the next process is random. A process can be frozen and continue later, as after
SIGSTOP and SIGCONT. There are no sockets and no threads.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

T = TypeVar("T")

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class Process:
    """Callbacks that run one after the other, and clocks.

    Attributes:
        name: For traces.
        ready: Callbacks that can run now.
        is_frozen: It does not run; its timers become due nevertheless.
        wall_offset: Error of its wall clock in seconds.
        is_gone: It was killed: its further actions are invisible.
        terms: The number of its terms of leadership.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.ready: deque[asyncio.Handle] = deque()
        self.is_frozen = False
        self.wall_offset = 0.0
        self.is_gone = False
        self.terms = 0


WORLD = Process("world")
PROCESS: ContextVar[Process] = ContextVar("PROCESS", default=WORLD)


def context_of(process: Process) -> Context:
    """Return a context of a process."""
    context = copy_context()
    context.run(PROCESS.set, process)
    return context


class _Task(asyncio.Task[Any]):
    """A task whose hash is its number: asyncio keeps tasks in sets, and their order must not depend on addresses."""

    def __init__(self, number: int, coroutine: Coroutine[Any, Any, Any], **options: Any) -> None:
        self._number = number
        context: Context | None = options["context"]
        self.process = PROCESS.get() if context is None else context.get(PROCESS, WORLD)
        super().__init__(coroutine, **options)

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other


class _Future(asyncio.Future[Any]):
    """The same for futures."""

    def __init__(self, number: int, loop: asyncio.AbstractEventLoop) -> None:
        self._number = number
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other


class SimulationLoop(asyncio.BaseEventLoop):
    """The loop; `failures` has uncaught exceptions."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self.failures: list[str] = []
        self.turns = 0
        self.world = copy_context()
        """A context without a process."""
        self._rng = rng
        self._now = 1000.0
        self._number = 0
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self.processes: list[Process] = [WORLD]
        WORLD.ready = deque()
        self.set_exception_handler(self._note_failure)

    # Processes.

    def add(self, process: Process) -> None:
        """Let a process take turns."""
        self.processes.append(process)

    def remove(self, process: Process) -> None:
        """Forget a process that has ended."""
        self.processes.remove(process)

    def tasks_of(self, process: Process) -> list[asyncio.Task[Any]]:
        """Return the tasks of a process that have not ended, the oldest first."""
        return sorted((task for task in asyncio.all_tasks(self) if task.process is process), key=hash)  # type: ignore[attr-defined]

    # What asyncio asks of a loop.

    def time(self) -> float:
        """Return virtual seconds."""
        return self._now

    def call_soon(  # type: ignore[override]  # that of the library is generic over the arguments
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Run a callback in its process' turn."""
        handle = asyncio.Handle(callback, args, self, context)
        handle._context.get(PROCESS, WORLD).ready.append(handle)  # type: ignore[attr-defined]
        return handle

    def call_at(  # type: ignore[override]  # as above
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Run a callback at a time."""
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, self._next(), timer))
        return timer

    def call_later(  # type: ignore[override]  # as above
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Run a callback after a delay."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    def create_task(self, coro: Any, *, name: object = None, context: Context | None = None) -> Any:
        """Return a task whose place in a set is always the same."""
        return _Task(self._next(), coro, loop=self, name=str(name or "task"), context=context)

    def create_future(self) -> asyncio.Future[Any]:
        """Return a future whose place in a set is always the same."""
        return _Future(self._next(), self)

    def run_in_executor(  # type: ignore[override]  # as above
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> Any:
        """Call the function here and now: there are no threads."""
        future = self.create_future()
        future.set_result(func(*args))
        return future

    def _run_once(self) -> None:
        """Run one callback; asyncio calls this over and over."""
        while not (runnable := [process for process in self.processes if process.ready and not process.is_frozen]):
            self._pass_time()
        process = runnable[0] if len(runnable) == 1 else self._rng.choice(runnable)
        handle = process.ready.popleft()
        self.turns += 1
        if not handle.cancelled():
            handle._run()

    def _pass_time(self) -> None:
        """Advance to the next timer and pass it, and all due ones, to their processes."""
        if not self._timers:
            raise RuntimeError("everybody waits and no timer is set")
        self._now = max(self._now, self._timers[0][0])
        while self._timers and self._timers[0][0] <= self._now:
            _, _, timer = heapq.heappop(self._timers)
            if not timer.cancelled():
                timer._context.get(PROCESS, WORLD).ready.append(timer)  # type: ignore[attr-defined]

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Do nothing: a cancelled timer is skipped when it is due."""

    def _write_to_self(self) -> None:
        """Do nothing: there are no external events that could wake this loop."""

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _note_failure(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        task = context.get("task") or context.get("future")
        if not getattr(task, "process", WORLD).is_gone:
            self.failures.append(f"{context.get('message')}: {context.get('exception')!r}")


def running_loop() -> SimulationLoop:
    """Return the loop of the simulation that runs."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulationLoop)
    return loop


class ProcessClock:
    """The clock of a replica: the loop's time, and a wall clock that may be wrong."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def monotonic(self) -> float:
        """Return virtual seconds."""
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        """Sleep virtual seconds."""
        await asyncio.sleep(max(0.0, seconds))

    def now(self) -> datetime:
        """Return the wall time of this process."""
        return EPOCH + timedelta(seconds=self.monotonic() + self._process.wall_offset)
