"""Records whose last write failed: with which error, when each is tried again, and from when on nobody waits for it.

Here is one record's own backoff. Whether the cluster as a whole is at fault is known to `gate`; what a gateway rejected
for its body is in `quarantine`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from http import HTTPStatus

from apisix_ingress.errors import GatewayError
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.runtime.queue.rate_limiters import ExponentialBackoff

RETRY_BASE, RETRY_CAP, RETRY_JITTER = 0.2, 5.0, 0.5
"""Seconds a record waits after a failure that may pass: first, at most, and the share that is drawn at random."""

PATIENCE = 3
"""After so many failures in a row of one record its state says so, and deletes stop waiting for it."""

CRASH_REMEDY = (
    "see the gateway's error log for the reason, and whether something in the object, or in the record made of it,"
    " brings it about"
)
"""What to do about a record that a gateway goes on answering with 500: some do at a mistake that others reject."""


class RetryTracker:
    """The failed writes of one cluster, by record; iterates over the records."""

    def __init__(self, *, rng: random.Random) -> None:
        self.limiter: ExponentialBackoff[RecordKey] = ExponentialBackoff(RETRY_BASE, RETRY_CAP, RETRY_JITTER, rng=rng)
        self._errors: dict[RecordKey, GatewayError] = {}

    def __iter__(self) -> Iterator[RecordKey]:
        """Yield the records that are to be tried again."""
        return iter(self._errors)

    def note(self, key: RecordKey, error: GatewayError) -> float:
        """Note that a write failed; return the seconds until the record is to be tried again."""
        self._errors[key] = error
        return max(self.limiter.when(key), getattr(error, "retry_after", None) or 0.0)

    def failures(self, key: RecordKey) -> int:
        """Return how often in a row a record failed."""
        return self.limiter.failures(key)

    def lasting(self, key: RecordKey) -> GatewayError | None:
        """Return the last error of a record that failed too often to be waited for; None of any other."""
        return self._errors.get(key) if self.failures(key) >= PATIENCE else None

    def ease(self, key: RecordKey) -> None:
        """Count the failures of a record anew, since what it failed for has changed."""
        self.limiter.forget(key)

    def settle(self, key: RecordKey) -> None:
        """Forget a record: nothing is outstanding for it."""
        if self._errors.pop(key, None) is not None:
            self.limiter.forget(key)


def is_crash(error: GatewayError) -> bool:
    """Say whether a gateway itself failed at a request, rather than something before or behind it."""
    return error.status == HTTPStatus.INTERNAL_SERVER_ERROR


def told(error: GatewayError) -> str:
    """Return the words of a failure that lasts, with what to do about it where it can be said."""
    return f"{error}; {CRASH_REMEDY}" if is_crash(error) else str(error)
