"""How fast one record may be written: a burst of a few writes, then two a second; the last state wins.

A token bucket, kept as the instant at which it is full again. A flapping object costs little that way.
"""

from __future__ import annotations

from apisix_ingress.gateway.sync.records.slot import RecordSlot

BURST = 4
INTERVAL = 0.5
"""Seconds from write to write once the burst is used up."""


def rate_delay(slot: RecordSlot, now: float) -> float:
    """Return the seconds until the record may be written; if zero, the write is counted."""
    full_at = max(slot.bucket_full_at, now)
    wait = full_at - now - (BURST - 1) * INTERVAL
    if wait > 0:
        return wait
    slot.bucket_full_at = full_at + INTERVAL
    return 0.0
