"""When a status is written: every deliberate delay between a condition and its write is in this module.

A condition is at most `MAX_DELAY_SECONDS` late, counted from the moment it is known until the request that writes it
starts. The delays below run one after the other in the worst case, and add up to that:

========== ====== ============================================================================================
debounce   0.02 s one check for all changes of an object within that time
settle     0.5 s  a condition becomes False only if it stays False for so long: an object often appears a moment
                  before the objects that it refers to
rewrite    1.5 s  a status that keeps changing without an edit of its object is written at most this often
pace       0.98 s writes are spread, so that they never delay changes of gateways
========== ====== ============================================================================================

A condition can be later in four cases only:

* More conditions change at once than the rates below allow. Failures come before successes, and namespaces take turns.
  While gateways are being changed, 98 queued conditions keep the bound. If more are queued, or in a bulk, which is more
  than a few dozen records queued for sync, as many failures keep it, and successes are written at a low rate.
* At the start of a term, statuses are checked once the gateways have been compared, or after `app.STATUS_SECONDS`.
* Another client keeps overwriting our condition: it is restored after `CONFLICT_SECONDS`, which grow with each time.
* The API server rejects the write or does not respond: it is retried after `RETRY_SECONDS`, which grow with each time.
"""

from __future__ import annotations

import random
from collections.abc import Set
from typing import NamedTuple

from apisix_ingress.kube.status.interface import Load
from apisix_ingress.model.condition import Condition
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.queue.rate_limiters import ExponentialBackoff

MAX_DELAY_SECONDS = 3.0
"""Maximum time in seconds from a known condition to its write."""

DEBOUNCE_SECONDS = 0.02
"""Seconds from the first change of an object to the check of its status: several times that of a gateway write."""
SETTLE_SECONDS = 0.5
"""Seconds that a condition must be False before it is written."""
REWRITE_SECONDS = 1.5
"""Seconds between two writes of the status of an object of the same generation, after a burst."""
REWRITE_BURST = 3
"""Writes of one status that may follow each other immediately; a new message alone never does."""
PACE_SECONDS = MAX_DELAY_SECONDS - DEBOUNCE_SECONDS - SETTLE_SECONDS - REWRITE_SECONDS
"""While gateways are being changed, queued statuses are written within this time, if `HIGH_RATE` allows."""

FULL_RATE = 600.0
"""Writes per second while gateways are not being changed. Without a limit, a start would overload the API server."""
HIGH_RATE = 100.0
"""Maximum writes per second while gateways are being changed."""
LOW_RATE = 10.0
"""Writes per second while gateways are being changed and few statuses are queued."""
LATE_RATE = 5.0
"""Writes per second of successes that are late anyway, while gateways are being changed. A write costs up to 1 ms of
CPU here and 5 ms in the API server, as much as a change of endpoints: at 10 per second every twentieth change waited
for one."""
CREDIT_SECONDS = 0.5
"""Seconds for which unused writes accumulate to a burst."""

CONFLICT_SECONDS = (0.5, 60.0)
"""Delays before a status that another client has overwritten is restored: the first, and the maximum."""
RETRY_SECONDS = (0.1, 60.0)
"""Delays before a rejected write is retried: the first, and the maximum."""


_BURST_SECONDS = (REWRITE_BURST - 1) * REWRITE_SECONDS


class _Written(NamedTuple):
    """When the status of an object was last written, and until when its writes use up `REWRITE_SECONDS` each."""

    at: float
    paid_until: float


class StatusSchedule:
    """Decides when the status of each object may be written."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._paid_until = 0.0
        self._false_since: dict[ObjectKey, float] = {}
        self._written: dict[ObjectKey, _Written] = {}

    def until_settled(self, key: ObjectKey, condition: Condition | None) -> float:
        """Return the seconds until a condition may be written; 0 unless it became False a moment ago."""
        if condition is None or condition.status != "False":
            if condition is not None:
                self._false_since.pop(key, None)
            return 0.0
        now = self._clock.monotonic()
        return max(0.0, self._false_since.setdefault(key, now) + SETTLE_SECONDS - now)

    def until_rewrite(self, key: ObjectKey, differs: Set[str]) -> float:
        """Return the seconds until a condition with changes in these fields may be written again; 0 means now."""
        last = self._written.get(key)
        if last is None or "observedGeneration" in differs:
            return 0.0
        due = last.at + REWRITE_SECONDS if differs == {"message"} else last.paid_until - _BURST_SECONDS
        return max(0.0, due - self._clock.monotonic())

    def wrote(self, key: ObjectKey) -> None:
        """Record a write of the status of an object."""
        now = self._clock.monotonic()
        last = self._written.get(key)
        # New generations are always written immediately: nothing waits longer than one rewrite for them.
        paid_until = min(max(last.paid_until, now), now + _BURST_SECONDS) if last is not None else now
        self._written[key] = _Written(now, paid_until + REWRITE_SECONDS)

    def until_next(self, load: Load, *, queued: int, is_failure: bool) -> float:
        """Count a write; return the seconds that the worker has to pause afterwards.

        Args:
            load: The load of the gateways.
            queued: The number of queued statuses.
            is_failure: Whether the write reported a failure.
        """
        now = self._clock.monotonic()
        self._paid_until = max(self._paid_until, now - CREDIT_SECONDS) + 1 / _rate(load, queued, is_failure)
        return max(0.0, self._paid_until - now)

    def forget(self, key: ObjectKey) -> None:
        """Forget a deleted object."""
        self._false_since.pop(key, None)
        self._written.pop(key, None)


def _rate(load: Load, queued: int, is_failure: bool) -> float:
    """Return the allowed writes per second."""
    if load == "idle":
        return FULL_RATE
    if not is_failure and queued > HIGH_RATE * PACE_SECONDS:
        return LATE_RATE
    if not is_failure and load == "bulk":
        return LOW_RATE
    return min(max(LOW_RATE, queued / PACE_SECONDS), HIGH_RATE)


def retry_limiter(rng: random.Random) -> ExponentialBackoff[ObjectKey]:
    """Return the backoff of failed writes."""
    return ExponentialBackoff(*RETRY_SECONDS, 0.5, rng=rng)


def conflict_limiter(rng: random.Random) -> ExponentialBackoff[ObjectKey]:
    """Return the backoff of statuses that another client has overwritten."""
    return ExponentialBackoff(*CONFLICT_SECONDS, 0.2, rng=rng)
