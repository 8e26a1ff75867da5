"""What the event loop reports of errors that nobody awaits: each kind a few times a minute, and how many were left out.

While no file is free an accept fails a hundred times a second, and each would be a traceback.
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
"""Reports of one kind in so many seconds."""

_KINDS = 64


@dataclass(slots=True)
class _Tally:
    since: float
    count: int = 0


class LoopErrors:
    """An exception handler for an event loop, see `asyncio.loop.set_exception_handler`.

    Args:
        clock: Measures.
        report: What a report goes to; by default the loop's own handler, which logs it.
    """

    def __init__(
        self, clock: Clock, report: Callable[[asyncio.AbstractEventLoop, dict[str, Any]], None] | None = None
    ) -> None:
        self._clock = clock
        self._report = report or (lambda loop, context: loop.default_exception_handler(context))
        self._tallies: dict[str, _Tally] = {}

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Report an error, unless many of its kind were reported of late."""
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
