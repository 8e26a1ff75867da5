"""Rate-limits the event loop's reports of errors that no task awaits, and logs how many reports were dropped.

Without it, an accept that fails because all file descriptors are in use would log a hundred tracebacks per second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import structlog

from apisix_ingress.runtime.clock import Clock

log = structlog.get_logger()

WINDOW, MOST = 60.0, 3
"""Window in seconds, and the maximum number of reports of one kind in it."""

_KINDS = 64


@dataclass(slots=True)
class _Tally:
    since: float
    count: int = 0


class LoopErrors:
    """An exception handler for an event loop, see `asyncio.loop.set_exception_handler`.

    Args:
        clock: Measures.
        report: Receives a report; default: the loop's own handler, which logs it.
    """

    def __init__(
        self, clock: Clock, report: Callable[[asyncio.AbstractEventLoop, dict[str, Any]], None] | None = None
    ) -> None:
        self._clock = clock
        self._report = report or (lambda loop, context: loop.default_exception_handler(context))
        self._tallies: dict[str, _Tally] = {}

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Report an error, unless too many of its kind were reported in this window."""
        kind = f"{context.get('message')}: {type(context.get('exception')).__name__}"
        now, tally = self._clock.monotonic(), self._tallies.get(kind)
        if tally is None or now - tally.since >= WINDOW:
            if tally is not None and tally.count > MOST:
                log.warning("loop.errors_left_out", kind=kind, count=tally.count - MOST)
            if len(self._tallies) >= _KINDS:
                self._tallies.clear()
            tally = self._tallies[kind] = _Tally(now)
        tally.count += 1
        if tally.count <= MOST:
            self._report(loop, context)
