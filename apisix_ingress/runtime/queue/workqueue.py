"""The keyed work queue: client-go's dirty and processing sets, with delays, a limiter, an urgent lane and groups.

A queue holds keys, never events or objects. It belongs to one event loop and needs no lock: only `get` and `idle`
await, so any other call is atomic.

All transitions of a key::

    absent      ── add ─────────► ready
    absent      ── add_after ───► delayed          delayed ── due, or add ───────► ready
    ready       ── get, take ───► processing       processing ── done ───────────► absent
    processing  ── add ─────────► again            again ── done ────────────────► ready
    processing  ── add_after ───► processing and delayed

Properties, checked against a model in ``tests/property/test_workqueue.py``:

* P1: at most one worker has a key. Between `get` and `done` the key is not handed out again.
* P2: a key added while it is processed is handed out again after `done`. No add is lost.
* P3: a key added several times before it is handed out is handed out once.
* P4: `retry` delays a key by the limiter, which may count failures per key and overall; `forget` resets them.
* P5: after `shut_down`, dirty keys are handed out once more, new keys are ignored, delayed keys are dropped, and then
  every `get` raises `QueueShutDown`.
* P6: in each lane the groups take turns, and each group is first in, first out. A normal key behind `n` keys of its
  own group waits for at most ``n + 1`` turns, in each of which every other group hands out one key. With `m` normal
  keys before it, at most ``urgent_burst * (m + 1)`` urgent keys overtake it, so the urgent lane never starves the
  normal lane.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.queue.delaying import DelayingHeap
from apisix_ingress.runtime.queue.priority_fifo import PriorityFifo
from apisix_ingress.runtime.queue.rate_limiters import RateLimiter

K = TypeVar("K", bound=Hashable)


class QueueShutDown(Exception):
    """The queue is shut down and empty: a signal, not an error."""


class QueueObserver:
    """Receives what metrics count; this base class does nothing. Calls are synchronous: be quick and do not raise."""

    def depth(self, keys: int) -> None:
        """Record that `keys` keys are dirty now."""

    def added(self) -> None:
        """Record that a key became dirty (an add that changed nothing is not counted)."""

    def retried(self) -> None:
        """Record a call of `WorkQueue.retry`."""

    def started(self, waited: float) -> None:
        """Record that a key was handed out after it was dirty for `waited` seconds."""

    def finished(self, worked: float) -> None:
        """Record that a key was done after `worked` seconds."""


class _Again(NamedTuple):
    """A key that was added while it was processed."""

    added_at: float
    urgent: bool


class _Work(NamedTuple):
    """A key that a worker has: when it became dirty, and when it was handed out."""

    added_at: float
    started_at: float


class WorkQueue(Generic[K]):
    """A queue of keys for several workers of one event loop; P1 to P6 are in the module docstring.

    Args:
        clock: Measures delays and ages.
        limiter: Returns how long a key waits after `retry`.
        name: For the timer task, logs and metrics.
        urgent_burst: How many urgent keys in a row may overtake a waiting normal key.
        group: Returns the group of a key that becomes ready; by default all keys are in one group.
        observer: Called for depth, adds, retries, latency and work duration.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        limiter: RateLimiter[K],
        name: str = "queue",
        urgent_burst: int = 8,
        group: Callable[[K], Hashable] = lambda key: None,
        observer: QueueObserver | None = None,
    ) -> None:
        self.name = name
        self._group = group
        self._clock = clock
        self._limiter = limiter
        self._observer = observer or QueueObserver()
        # A key is dirty if and only if it is in a lane or in _again. The lanes and _processing are disjoint; _again is
        # a subset of _processing; a key in _delays is not dirty. Times are monotonic.
        self._lanes: PriorityFifo[K] = PriorityFifo(urgent_burst)
        self._again: dict[K, _Again] = {}
        self._processing: dict[K, _Work] = {}
        self._delays: DelayingHeap[K] = DelayingHeap()
        self._shut_down = False
        self._getters: deque[asyncio.Future[None]] = deque()
        self._idlers: set[asyncio.Future[None]] = set()
        self._timer: asyncio.Task[None] | None = None
        self._timer_due = 0.0

    # Putting keys in.

    def add(self, key: K, *, urgent: bool = False, since: float | None = None) -> None:
        """Make `key` dirty: it is handed out once more, now or after the `done` of the worker that has it.

        Adding a dirty key again has no effect, except that an urgent add moves it to the urgent lane. A delay of the
        key ends. Ignored after `shut_down`.

        `since` is the monotonic time at which a key of another queue became dirty that led to this one; default: now.
        """
        if self._shut_down:
            return
        delayed = self._delays.pop(key)
        urgent = urgent or (delayed is not None and delayed.urgent)
        if self._is_dirty(key):
            if urgent:
                self.expedite(key)
            return
        since = self._clock.monotonic() if since is None else since
        if key in self._processing:
            self._again[key] = _Again(since, urgent)
        else:
            self._push(key, since, urgent=urgent)
        self._observer.added()
        self._observer.depth(self._dirty_count())

    def expedite(self, key: K) -> None:
        """Move `key` to the urgent lane if it is dirty, now or after its `done`; ignore any other key."""
        if key in self._again:
            self._again[key] = self._again[key]._replace(urgent=True)
        else:
            self._lanes.expedite(key)

    def add_after(self, key: K, seconds: float, *, urgent: bool = False) -> None:
        """Add `key` after `seconds`; at once if that is zero or less.

        A key has one due time, the earliest; later ones are ignored. So is any delay of a dirty key, which will be
        handed out anyway. Ignored after `shut_down`.
        """
        if seconds <= 0:
            self.add(key, urgent=urgent)
            return
        if self._shut_down or self._is_dirty(key):
            return
        if self._delays.put(key, self._clock.monotonic() + seconds, urgent=urgent):
            self._set_timer()

    def retry(self, key: K) -> float:
        """Count a failure of `key`, add it after the limiter's delay, and return that delay."""
        delay = self._limiter.when(key)
        self._observer.retried()
        self.add_after(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """Clear the failures of `key`, after a success or when its object no longer exists. The key stays queued."""
        self._limiter.forget(key)

    # Taking keys out.

    async def get(self) -> K:
        """Wait for a key and return it; the caller owes a `done`.

        Raises:
            QueueShutDown: The queue is shut down, and no key is or will become dirty.
        """
        while True:
            self._promote()
            if self._lanes:
                return self._pop()
            if self._shut_down and not self._again:
                raise QueueShutDown(self.name)
            await self._wait_for_key()

    def take(self) -> K | None:
        """Return a ready key or None; the caller owes a `done`. For drivers without workers."""
        self._promote()
        return self._pop() if self._lanes else None

    def done(self, key: K) -> None:
        """End the work on `key`; if it was added meanwhile, it becomes ready again.

        Raises:
            ValueError: No worker has `key`, which is a bug in the caller.
        """
        work = self._processing.pop(key, None)
        if work is None:
            raise ValueError(f"done() for a key of queue {self.name} that no worker has")
        self._observer.finished(self._clock.monotonic() - work.started_at)
        again = self._again.pop(key, None)
        if again is not None:
            self._push(key, again.added_at, urgent=again.urgent)
        if self._shut_down and not self._again:
            self._wake_all_getters()
        self._wake_idlers()

    def shut_down(self) -> None:
        """Accept no more keys and drop the delayed ones; dirty keys are still handed out. Idempotent.

        `idle` returns when the last dirty key is done.
        """
        self._shut_down = True
        self._delays.clear()
        self._stop_timer()
        self._wake_all_getters()
        self._wake_idlers()

    # Inspecting the queue.

    def __len__(self) -> int:
        """Return how many keys a worker could get now."""
        self._promote()
        return len(self._lanes)

    @property
    def depth(self) -> int:
        """How many keys are dirty: ready, or added again while being processed."""
        self._promote()
        return self._dirty_count()

    @property
    def delayed(self) -> int:
        """How many keys are delayed."""
        self._promote()
        return len(self._delays)

    @property
    def is_idle(self) -> bool:
        """Whether no key is dirty, processed, or delayed and due by now."""
        self._promote()
        return not self._lanes and not self._processing

    async def idle(self) -> None:
        """Return once the queue is idle; keys delayed into the future are ignored."""
        while not self.is_idle:
            waiter = asyncio.get_running_loop().create_future()
            self._idlers.add(waiter)
            try:
                await waiter
            finally:
                self._idlers.discard(waiter)

    def dirty_since(self, key: K) -> float:
        """Return when a key that a worker has became dirty (monotonic); for any other key, the current time."""
        work = self._processing.get(key)
        return self._clock.monotonic() if work is None else work.added_at

    def oldest_age(self, now: float) -> float:
        """Return for how many seconds the oldest dirty key has waited at monotonic time `now`; 0 without dirty keys."""
        times = [*self._lanes.times(), *(a.added_at for a in self._again.values())]
        return max(0.0, now - min(times)) if times else 0.0

    # Internals.

    def _is_dirty(self, key: K) -> bool:
        return key in self._lanes or key in self._again

    def _dirty_count(self) -> int:
        return len(self._lanes) + len(self._again)

    def _push(self, key: K, added_at: float, *, urgent: bool) -> None:
        """Put `key` into its lane, behind the others of its group, and wake one getter."""
        self._lanes.push(key, self._group(key), added_at, urgent=urgent)
        self._wake_getter()

    def _pop(self) -> K:
        """Hand out the next key. At least one lane must have a key."""
        key, added_at = self._lanes.pop()
        now = self._clock.monotonic()
        self._processing[key] = _Work(added_at, now)
        self._observer.started(now - added_at)
        self._observer.depth(self._dirty_count())
        return key

    def _promote(self) -> None:
        """Add the delayed keys that are due, in the order of their due times."""
        if not self._delays:
            return
        now = self._clock.monotonic()
        while (key := self._delays.ripe(now)) is not None:
            self.add(key)

    async def _wait_for_key(self) -> None:
        """Wait until `get` should check again."""
        waiter = asyncio.get_running_loop().create_future()
        self._getters.append(waiter)
        self._set_timer()
        try:
            await waiter
        except asyncio.CancelledError:
            # Another getter must get the wake-up that this one cannot use.
            if waiter.done() and not waiter.cancelled() and self._lanes:
                self._wake_getter()
            raise
        finally:
            if waiter in self._getters:
                self._getters.remove(waiter)
            if not self._getters:
                self._stop_timer()

    def _wake_getter(self) -> None:
        while self._getters:
            waiter = self._getters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _wake_all_getters(self) -> None:
        while self._getters:
            self._wake_getter()

    def _wake_idlers(self) -> None:
        if self._idlers and self.is_idle:
            for waiter in self._idlers:
                if not waiter.done():
                    waiter.set_result(None)
            self._idlers.clear()

    def _set_timer(self) -> None:
        """Start a timer that wakes a getter when the first delayed key is due; without getters there is no timer."""
        if not self._getters or not self._delays:
            return
        due = self._delays.look_at()
        if self._timer is None or self._timer.done() or self._timer_due > due:
            self._stop_timer()
            self._timer = asyncio.get_running_loop().create_task(self._tick(), name=f"{self.name}-timer")
            self._timer_due = due

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _tick(self) -> None:
        """Move delayed keys into their lanes as they become due, until there are none."""
        while self._delays:
            self._timer_due = self._delays.look_at()
            await self._clock.sleep(self._timer_due - self._clock.monotonic())
            self._promote()
