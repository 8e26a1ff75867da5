"""Other writers of what is ours in a status: whether one overwrote it, and how long to wait before it is put right.

Two writers that undo each other's work would keep the API server busy for ever. So each time waits longer than the one
before, and the log says once who is concerned. What is written, and how, is the business of `status`.
"""

from __future__ import annotations

import random
from collections import deque

import structlog

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.queue.rate_limiters import ExponentialBackoff

log = structlog.get_logger()

FIRST_SECONDS, LONGEST_SECONDS = 0.5, 60.0
"""What was overwritten is put right after so long: at first, and when it happens again and again."""

_CONTESTED = 4
"""So many times in a row are no accident."""
_PEACE_SECONDS = 3 * LONGEST_SECONDS
_ON_ITS_WAY = 8
"""So many writes of one status may come back later than their answers; older ones were lost or changed nothing."""

_REMEDY = "let one controller alone write the status of this object: check the class and the selectors of the others"


class StatusConflicts:
    """What we said in the status of each object, and how often somebody else overwrote it."""

    def __init__(self, *, clock: Clock, rng: random.Random) -> None:
        self._clock = clock
        self._limiter: ExponentialBackoff[ObjectKey] = ExponentialBackoff(FIRST_SECONDS, LONGEST_SECONDS, 0.2, rng=rng)
        self._said: dict[ObjectKey, object] = {}
        self._sent: dict[ObjectKey, deque[object]] = {}
        self._lost_at: dict[ObjectKey, float] = {}

    def saying(self, key: ObjectKey, words: object) -> None:
        """Note what the status of an object is about to say: that may come back before the answer to it."""
        self._sent.setdefault(key, deque(maxlen=_ON_ITS_WAY)).append(words)

    def said(self, key: ObjectKey, words: object) -> None:
        """Note what the status of an object says in our place now."""
        self._said[key] = words

    def overwritten(self, key: ObjectKey, words: object) -> float | None:
        """Return the seconds to wait before our place is looked at, None if it is as we left it or none of ours."""
        if self._comes_back(key, words) or key not in self._said or self._said[key] == words:
            return None
        now = self._clock.monotonic()
        if now - self._lost_at.get(key, now) > _PEACE_SECONDS:
            self._limiter.forget(key)
        self._lost_at[key] = now
        delay = self._limiter.when(key)
        if self._limiter.failures(key) == _CONTESTED:
            log.warning("status.contested", object=str(key), remedy=_REMEDY)
        return delay

    def _comes_back(self, key: ObjectKey, words: object) -> bool:
        """Whether that is a write of ours; those before it came back earlier, or never will."""
        sent = self._sent.get(key)
        if sent is None or words not in sent:
            return False
        while sent.popleft() != words:
            pass
        return True

    def forget(self, key: ObjectKey) -> None:
        """Forget an object that is gone."""
        self._said.pop(key, None)
        self._sent.pop(key, None)
        self._lost_at.pop(key, None)
        self._limiter.forget(key)

    def clear(self) -> None:
        """Forget what was said before others led."""
        self._said.clear()
        self._sent.clear()
