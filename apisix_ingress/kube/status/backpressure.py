"""Statuses wait while records of their namespace wait for their write: they must never delay what they speak of.

Only those of that namespace wait, and only for so long: a namespace that always has something to write gets its
statuses too, and no other namespace waits for it.
"""

from __future__ import annotations

from collections.abc import Callable

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.runtime.clock import Clock

PATIENCE_SECONDS = 30.0
"""For so long a namespace may be busy before its statuses are written all the same."""
LOOK_SECONDS = 0.25
"""Until the next look at a status that waits."""


class StatusBackpressure:
    """Which statuses wait.

    Args:
        busy: Namespace → whether its records wait for their write, among many.
        clock: Measures how long that lasts.
    """

    def __init__(self, busy: Callable[[str], bool], *, clock: Clock) -> None:
        self._busy = busy
        self._clock = clock
        self._since: dict[str, float] = {}
        self._waiting: dict[ObjectKey, None] = {}

    def delay(self, key: ObjectKey) -> float:
        """Return the seconds until the status of an object is to be looked at again; 0: it may be written."""
        if not self._busy(key.namespace):
            self._since.pop(key.namespace, None)
        else:
            now = self._clock.monotonic()
            if now < self._since.setdefault(key.namespace, now) + PATIENCE_SECONDS:
                self._waiting[key] = None
                return LOOK_SECONDS
        self._waiting.pop(key, None)
        return 0.0

    def release(self) -> tuple[ObjectKey, ...]:
        """Return the objects whose statuses wait."""
        return tuple(self._waiting)
