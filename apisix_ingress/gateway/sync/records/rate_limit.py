"""How fast one record may be written: a burst of a few writes, then two a second; the last state wins.

A flapping object costs little that way. This module says when; it never waits.
"""

from __future__ import annotations

from apisix_ingress.model.keys import RecordKey

BURST = 4
INTERVAL = 0.5
"""Seconds from write to write once the burst is used up."""


class RecordRateLimit:
    """A token bucket for each record, as the one instant at which it would be full again."""

    def __init__(self) -> None:
        self._full_at: dict[RecordKey, float] = {}

    def delay(self, key: RecordKey, now: float) -> float:
        """Return the seconds until the record may be written; if zero, the write is counted."""
        full_at = max(self._full_at.get(key, now), now)
        wait = full_at - now - (BURST - 1) * INTERVAL
        if wait > 0:
            return wait
        self._full_at[key] = full_at + INTERVAL
        return 0.0

    def forget(self, key: RecordKey) -> None:
        """Let the next writes of a record through as if it had been at rest."""
        self._full_at.pop(key, None)

    def prune(self, now: float) -> None:
        """Forget the records whose bucket is full."""
        self._full_at = {key: full_at for key, full_at in self._full_at.items() if full_at > now}
