"""The backoff of a record after a failure or a rejection, and the message of a failure that persists."""

from __future__ import annotations

import random
from http import HTTPStatus

from apisix_ingress.errors import GatewayError
from apisix_ingress.gateway.sync.records.slot import RecordSlot, Rejection
from apisix_ingress.model.records import Record
from apisix_ingress.runtime.queue.rate_limiters import Backoff

RETRY = Backoff(0.2, 5.0, 0.5)
REJECTED = Backoff(60.0, 600.0, 0.2)
"""Retries of a rejected record, for causes outside its body, such as a plugin that has been enabled since."""

OFFERED = float("-inf")
"""`Rejection.until` of a record that is queued for its retry."""

CRASH_REMEDY = (
    "check the gateway's error log for the reason, which may be a field of the object or of the record generated from"
    " it"
)
"""The remedy if a gateway keeps replying 500 to a record: some do for mistakes that others reject."""


def note_failure(slot: RecordSlot, error: GatewayError, rng: random.Random) -> float:
    """Count a failure of a record; return the seconds until its retry."""
    delay = RETRY.delay(slot.failures, rng)
    slot.error, slot.failures = error, slot.failures + 1
    return max(delay, getattr(error, "retry_after", None) or 0.0)


def note_rejection(slot: RecordSlot, record: Record | None, message: str, now: float, rng: random.Random) -> None:
    """Record that a write (None: a delete) was rejected."""
    tries = slot.rejection.tries + 1 if slot.rejection is not None else 0
    payload = record.payload if record is not None else None
    slot.rejection = Rejection(payload, message, now + REJECTED.delay(tries, rng), tries)


def is_rejected(slot: RecordSlot, record: Record | None, now: float) -> bool:
    """Return whether this write must not be sent now because it was rejected. A different body ends the rejection."""
    if slot.rejection is not None and not slot.rejection.is_of(record):
        slot.rejection = None
    return slot.rejection is not None and now < slot.rejection.until


def offer_again(slot: RecordSlot, now: float) -> bool:
    """Return True, once, when a rejected record may be retried."""
    entry = slot.rejection
    if entry is None or not OFFERED < entry.until <= now:
        return False
    slot.rejection = entry._replace(until=OFFERED)
    return True


def is_crash(error: GatewayError) -> bool:
    """Return whether the gateway itself failed, rather than a proxy in front of it or etcd behind it."""
    return error.status == HTTPStatus.INTERNAL_SERVER_ERROR


def with_remedy(error: GatewayError) -> str:
    """Return the message of a failure that persists, with a remedy if one is known."""
    return f"{error}; {CRASH_REMEDY}" if is_crash(error) else str(error)
