"""How long ago a time is, in its largest unit, for reports and the status page."""

from __future__ import annotations

from datetime import UTC, datetime

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))

UNKNOWN = "-"


def age(text: str, now: datetime) -> str:
    """Return the time since a moment such as 2026-11-22T08:55:30Z, e.g. `5 min`; a dash for any other text."""
    seconds = _seconds(text, now)
    return UNKNOWN if seconds is None else in_words(max(0, seconds))


def until(text: str, now: datetime) -> str:
    """Return the time until or since a moment, e.g. `in 5 days` or `5 days ago`; a dash for any other text."""
    seconds = _seconds(text, now)
    if seconds is None:
        return UNKNOWN
    return f"in {in_words(-seconds)}" if seconds < 0 else f"{in_words(seconds)} ago"


def _seconds(text: str, now: datetime) -> int | None:
    try:
        moment = datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None
    return round((now - moment).total_seconds())


def in_words(seconds: int) -> str:
    """Return a duration in its largest unit."""
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= size), (1, "s"))
    number = seconds // size
    return f"{number} days" if unit == "d" and number > 1 else "1 day" if unit == "d" else f"{number} {unit}"
