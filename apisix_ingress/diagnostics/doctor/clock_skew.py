"""How far another machine's clock is from ours, by the Date of its answers, which is good to a second."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def skew_seconds(date: str, now: datetime) -> float | None:
    """Return the seconds that the sender of an HTTP date is ahead of `now`; None if it sent none that can be read."""
    try:
        sent = parsedate_to_datetime(date)
    except (TypeError, ValueError):
        return None
    if sent.tzinfo is None:
        sent = sent.replace(tzinfo=UTC)
    # It cuts off the fraction of its second.
    return (sent - now.replace(microsecond=0)).total_seconds()
