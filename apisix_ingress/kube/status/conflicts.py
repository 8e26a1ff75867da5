"""Detects other clients that overwrite our part of a status, and delays restoring it.

Two clients that undo each other's writes would overload the API server. So each restore waits longer than the
previous one (`schedule.CONFLICT_SECONDS`), and a warning is logged once per object.
"""

from __future__ import annotations

import random
from collections import deque

import structlog

from apisix_ingress.kube.status.schedule import CONFLICT_SECONDS, conflict_limiter
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.runtime.clock import Clock

log = structlog.get_logger()

_CONTESTED = 4
"""Number of consecutive conflicts after which a warning is logged."""
_QUIET_SECONDS = 3 * CONFLICT_SECONDS[1]
_MOST_IN_FLIGHT = 8
"""Writes of one status that may still arrive in the watch; older ones were lost or had no effect."""

_REMEDY = "let only one controller write the status of this object: check their classes and selectors"


class StatusConflicts:
    """Tracks what this controller wrote to each status, and how often another client overwrote it."""

    def __init__(self, *, clock: Clock, rng: random.Random) -> None:
        self._clock = clock
        self._limiter = conflict_limiter(rng)
        self._written: dict[ObjectKey, object] = {}
        self._sent: dict[ObjectKey, deque[object]] = {}
        self._lost_at: dict[ObjectKey, float] = {}

    def sending(self, key: ObjectKey, part: object) -> None:
        """Record what is about to be written: the watch may return it before the response arrives."""
        self._sent.setdefault(key, deque(maxlen=_MOST_IN_FLIGHT)).append(part)

    def forget_sent(self, key: ObjectKey) -> None:
        """Forget what was sent, because a write has no outcome: carried out later, it overwrites a newer status."""
        self._sent.pop(key, None)

    def written(self, key: ObjectKey, part: object) -> None:
        """Record the current value of our part of a status."""
        self._written[key] = part

    def overwritten(self, key: ObjectKey, part: object) -> float | None:
        """Return the seconds until our part is restored; None if no client changed it, or it was never written."""
        if self._is_own_write(key, part) or key not in self._written or self._written[key] == part:
            return None
        now = self._clock.monotonic()
        if now - self._lost_at.get(key, now) > _QUIET_SECONDS:
            self._limiter.forget(key)
        self._lost_at[key] = now
        delay = self._limiter.when(key)
        if self._limiter.failures(key) == _CONTESTED:
            log.warning("status.contested", object=str(key), remedy=_REMEDY)
        return delay

    def _is_own_write(self, key: ObjectKey, part: object) -> bool:
        """Return whether this is one of our writes; earlier ones have arrived already or never will."""
        sent = self._sent.get(key)
        if sent is None or part not in sent:
            return False
        while sent.popleft() != part:
            pass
        return True

    def forget(self, key: ObjectKey) -> None:
        """Forget a deleted object."""
        self._written.pop(key, None)
        self._sent.pop(key, None)
        self._lost_at.pop(key, None)
        self._limiter.forget(key)

    def clear(self) -> None:
        """Forget what was written in an earlier term."""
        self._written.clear()
        self._sent.clear()
