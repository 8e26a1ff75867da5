"""The difference between another machine's clock and this one's, from the Date header, accurate to a second."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def skew_seconds(date: str, now: datetime) -> float | None:
    """Return the seconds that the sender of an HTTP date is ahead of `now`; None without a valid date."""
    try:
        sent = parsedate_to_datetime(date)
    except (TypeError, ValueError):
        return None
    if sent.tzinfo is None:
        sent = sent.replace(tzinfo=UTC)
    # It cuts off the fraction of its second.
    return (sent - now.replace(microsecond=0)).total_seconds()
