"""The rate limit of one record: a burst of a few writes, then two per second; the last state wins.

It is a token bucket, stored as the time at which it is full again. It makes flapping objects cheap.
"""

from __future__ import annotations

from apisix_ingress.gateway.sync.records.slot import RecordSlot

BURST = 4
INTERVAL = 0.5
"""Seconds between two writes once the burst is used up."""


def rate_delay(slot: RecordSlot, now: float) -> float:
    """Return the seconds until the record may be written; if zero, take a token."""
    full_at = max(slot.bucket_full_at, now)
    wait = full_at - now - (BURST - 1) * INTERVAL
    if wait > 0:
        return wait
    slot.bucket_full_at = full_at + INTERVAL
    return 0.0
