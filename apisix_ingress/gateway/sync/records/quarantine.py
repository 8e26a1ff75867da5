"""Records that a gateway rejected: they are not sent again until their body changes, but for a rare new try.

That try is for causes outside the body: a plugin was enabled, a duplicate removed. Who carries it out is elsewhere.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace

from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Record
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.queue.rate_limiters import ExponentialBackoff

FIRST_TRY, LONGEST = 60.0, 600.0
"""Seconds until the first new try, and between tries at most."""

_OFFERED = -math.inf


@dataclass(frozen=True, slots=True)
class _Entry:
    payload: bytes | None
    message: str
    until: float


class Quarantine:
    """Rejected records with the gateway's words."""

    def __init__(self, *, clock: Clock, rng: random.Random) -> None:
        self._clock = clock
        self._entries: dict[RecordKey, _Entry] = {}
        self._backoff: ExponentialBackoff[RecordKey] = ExponentialBackoff(FIRST_TRY, LONGEST, 0.2, rng=rng)

    def __len__(self) -> int:
        """Return how many records are in it."""
        return len(self._entries)

    def keys(self) -> tuple[RecordKey, ...]:
        """Return the records that are in it."""
        return tuple(self._entries)

    def add(self, key: RecordKey, record: Record | None, message: str) -> None:
        """Put a rejected write (None: a delete) into quarantine."""
        until = self._clock.monotonic() + self._backoff.when(key)
        self._entries[key] = _Entry(record.payload if record is not None else None, message, until)

    def lift(self, key: RecordKey) -> None:
        """Forget a record: it was written, or is not wanted any more."""
        if self._entries.pop(key, None) is not None:
            self._backoff.forget(key)

    def words(self, key: RecordKey, record: Record | None) -> str | None:
        """Return why this very write was rejected, None if it was not."""
        entry = self._entries.get(key)
        if entry is None or entry.payload != (record.payload if record is not None else None):
            return None
        return entry.message

    def blocks(self, key: RecordKey, record: Record | None) -> bool:
        """Say whether this very write must not be tried now. Another body ends the quarantine."""
        entry = self._entries.get(key)
        if entry is None:
            return False
        if self.words(key, record) is None:
            self.lift(key)
            return False
        return self._clock.monotonic() < entry.until

    def due(self) -> list[RecordKey]:
        """Return the records that may be tried again by now, each of them once."""
        now = self._clock.monotonic()
        keys = [key for key, entry in self._entries.items() if _OFFERED < entry.until <= now]
        for key in keys:
            self._entries[key] = replace(self._entries[key], until=_OFFERED)
        return keys
