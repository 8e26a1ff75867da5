"""Durations as Go writes them: ``500ms``, ``5s``, ``1m30s``, ``1h``; always seconds inside the program."""

from apisix_ingress.model.formats.patterns import LONGEST_VALUE, TextPattern, ValuePattern

LONGEST = 2**63 / 1e9
"""The longest duration in Go in seconds, 292 years."""

_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = TextPattern(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_NUMBER = ValuePattern(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")


def parse_duration(value: str | float) -> float:
    """Return the seconds of a Go duration, or of a plain number of seconds (as text, too).

    Raises:
        ValueError: it is neither, or negative or not finite.
    """
    if isinstance(value, str):
        value = _parse_text(value.strip())
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"a duration is a text such as 500ms, 5s or 1h, not {type(value).__name__}")
    if not 0 <= value <= LONGEST:
        raise ValueError(f"a duration is finite and not negative, got {value}")
    return float(value)


def _parse_text(text: str) -> float:
    if _NUMBER.fits(text):
        return float(text)
    parts = list(_PART.finditer(text)) if len(text) <= LONGEST_VALUE else []
    if not parts or "".join(part[0] for part in parts) != text:
        raise ValueError(f"{text!r} is not a duration; write for instance 500ms, 5s, 1m30s or 1h")
    return sum(float(number) * _SECONDS[unit] for number, unit in (part.groups() for part in parts))
