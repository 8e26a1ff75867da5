"""Measures the lag of the event loop: how long due tasks and received data had to wait.

Every iteration of the loop is measured, in the selector, where the loop waits. A task that sleeps and looks at the
clock would wake an idle process ten times a second, a quarter of its CPU time, and miss most short stalls.

A leader whose loop was blocked too long steps down anyway, because every write checks the term's deadline first.
"""

from __future__ import annotations

import asyncio
import selectors
import time

WINDOW = 60.0
"""The longest stall is remembered for at least this many seconds, and at most twice as long."""


class LoopLagWatch:
    """Remembers the longest stall of the last minute."""

    def __init__(self) -> None:
        self._now = self._before = 0.0
        self._window_ends = time.monotonic() + WINDOW

    def longest(self) -> float:
        """Return the longest recent stall in seconds."""
        self._turn(time.monotonic())
        return max(self._now, self._before)

    def record(self, now: float, seconds: float) -> None:
        """Record a stall that ends now (`time.monotonic`)."""
        if now >= self._window_ends:
            self._turn(now)
        if seconds > self._now:
            self._now = seconds

    def _turn(self, now: float) -> None:
        """Begin a new window if the current one has ended."""
        if now < self._window_ends:
            return
        self._before = self._now if now < self._window_ends + WINDOW else 0.0
        self._now, self._window_ends = 0.0, now + WINDOW


class WatchedLoop(asyncio.SelectorEventLoop):
    """An event loop that reports its stalls once it is watched."""

    def __init__(self) -> None:
        self._watched = _WatchedSelector()
        super().__init__(self._watched)

    def report_to(self, watch: LoopLagWatch) -> None:
        """Report every stall from now on."""
        self._watched.report_to(watch)


class _WatchedSelector(selectors.DefaultSelector):
    """Measures the time between two waits, in which tasks run, and by how much a wait takes longer than requested."""

    def __init__(self) -> None:
        super().__init__()
        self._watch: LoopLagWatch | None = None
        self._returned_at = 0.0

    def report_to(self, watch: LoopLagWatch) -> None:
        self._watch, self._returned_at = watch, time.monotonic()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self._watch is None:
            return super().select(timeout)
        began = time.monotonic()
        self._watch.record(began, began - self._returned_at)
        found = super().select(timeout)
        self._returned_at = now = time.monotonic()
        if timeout is not None:
            self._watch.record(now, now - began - max(timeout, 0.0))
        return found


def watch_running_loop() -> LoopLagWatch:
    """Watch the running loop if it is a `WatchedLoop`; no other loop reports stalls."""
    watch, loop = LoopLagWatch(), asyncio.get_running_loop()
    if isinstance(loop, WatchedLoop):
        loop.report_to(watch)
    return watch
