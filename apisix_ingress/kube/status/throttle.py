"""When a condition may be written: bad news only when they last, new words for the same not too often, many slowly.

What it says, and to whom it is written, is decided in `status`.
"""

from __future__ import annotations

from collections.abc import Set

from apisix_ingress.model.condition import Condition
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.runtime.clock import Clock

BAD_NEWS_SECONDS = 0.5
"""A condition becomes False after so long: kinds are watched apart, what an object names may come after it."""
REWORD_SECONDS = 5.0
"""A condition of which only the words differ is not written more often than this."""
RATE = 300.0
"""Writes a second: without a bound the thousands of a start fill this process and the API server, and changes wait."""
RATE_BESIDE_NEWS = 25.0
"""Writes a second while there are changes: more of them may come, and each is delayed by what is under way then."""
CREDIT_SECONDS = 0.5
"""What was not written for so long may be written at once."""


class StatusThrottle:
    """When the condition of each object turned bad and when it was written, and how many were lately."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._paid_until = 0.0
        self._doubted_at: dict[ObjectKey, float] = {}
        self._written_at: dict[ObjectKey, float] = {}

    def until_settled(self, key: ObjectKey, condition: Condition | None) -> float:
        """Return the seconds until a condition counts, 0 if it does: what is missing is most often on its way."""
        if condition is None or condition.status != "False":
            self._doubted_at.pop(key, None)
            return 0.0
        now = self._clock.monotonic()
        return max(0.0, self._doubted_at.setdefault(key, now) + BAD_NEWS_SECONDS - now)

    def until_reworded(self, key: ObjectKey, differs: Set[str]) -> float:
        """Return the seconds to wait if only the words differ and they were written a moment ago, else 0."""
        if differs != {"message"}:
            return 0.0
        written_at = self._written_at.get(key, -REWORD_SECONDS)
        return max(0.0, written_at + REWORD_SECONDS - self._clock.monotonic())

    def wrote(self, key: ObjectKey) -> None:
        """Note that a condition was written."""
        self._written_at[key] = self._clock.monotonic()

    def until_next(self, *, news: bool) -> float:
        """Count a write; return the seconds for which its writer leaves room to others, 0 unless much was written."""
        now = self._clock.monotonic()
        cost = 1 / (RATE_BESIDE_NEWS if news else RATE)
        self._paid_until = max(self._paid_until, now - CREDIT_SECONDS) + cost
        return max(0.0, self._paid_until - now)

    def forget(self, key: ObjectKey) -> None:
        """Forget an object that is gone."""
        self._doubted_at.pop(key, None)
        self._written_at.pop(key, None)
