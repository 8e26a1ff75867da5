"""How long a record waits after a failure or a rejection, and what is said of a failure that persists."""

from __future__ import annotations

import random
from http import HTTPStatus
from typing import NamedTuple

from apisix_ingress.errors import GatewayError
from apisix_ingress.gateway.sync.records.slot import RecordSlot, Rejection
from apisix_ingress.model.records import Record


class Backoff(NamedTuple):
    """`base` seconds, doubled with each failure, up to `cap`; a share of it (`jitter`) is drawn at random."""

    base: float
    cap: float
    jitter: float

    def delay(self, failures: int, rng: random.Random) -> float:
        """Return the seconds to wait after so many failures before this one."""
        return min(self.cap, self.base * 2.0 ** min(failures, 40)) * (1 - self.jitter * rng.random())


RETRY = Backoff(0.2, 5.0, 0.5)
REJECTED = Backoff(60.0, 600.0, 0.2)
"""A rejected record is sent again that rarely: for causes outside its body, such as a plugin that was enabled since."""

OFFERED = float("-inf")
"""`Rejection.until` of a record that was queued for its new try."""

CRASH_REMEDY = (
    "see the gateway's error log for the reason, and whether something in the object, or in the record made of it,"
    " brings it about"
)
"""What to do about a record that a gateway goes on answering with 500: some do at a mistake that others reject."""


def note_failure(slot: RecordSlot, error: GatewayError, rng: random.Random) -> float:
    """Count a failure of a record; return the seconds until it is to be tried again."""
    delay = RETRY.delay(slot.failures, rng)
    slot.error, slot.failures = error, slot.failures + 1
    return max(delay, getattr(error, "retry_after", None) or 0.0)


def note_rejection(slot: RecordSlot, record: Record | None, message: str, now: float, rng: random.Random) -> None:
    """Note that a write (None: a delete) was rejected."""
    tries = slot.rejection.tries + 1 if slot.rejection is not None else 0
    payload = record.payload if record is not None else None
    slot.rejection = Rejection(payload, message, now + REJECTED.delay(tries, rng), tries)


def is_rejected(slot: RecordSlot, record: Record | None, now: float) -> bool:
    """Say whether this very write must not be sent now, since it was rejected. Another body ends the rejection."""
    if slot.rejection is not None and not slot.rejection.is_of(record):
        slot.rejection = None
    return slot.rejection is not None and now < slot.rejection.until


def offer_again(slot: RecordSlot, now: float) -> bool:
    """Say, once, that a rejected record may be tried again by now."""
    entry = slot.rejection
    if entry is None or not OFFERED < entry.until <= now:
        return False
    slot.rejection = entry._replace(until=OFFERED)
    return True


def is_crash(error: GatewayError) -> bool:
    """Say whether a gateway itself failed at a request, rather than something before or behind it."""
    return error.status == HTTPStatus.INTERNAL_SERVER_ERROR


def explained(error: GatewayError) -> str:
    """Return the message of a failure that persists, with what to do about it where that is known."""
    return f"{error}; {CRASH_REMEDY}" if is_crash(error) else str(error)
