"""Faults of records: what makes it unsafe to publish one, and where."""

from __future__ import annotations

from typing import NamedTuple

Steps = tuple[str | int, ...]


class Fault(NamedTuple):
    """One fault.

    Attributes:
        steps: The field of the record.
        what: What is wrong with it, as the rest of a sentence that begins with the field, and the remedy. It does not
            contain the value, which may come from a Secret.
    """

    steps: Steps
    what: str


def dotted(steps: Steps) -> str:
    """Return the path of a field as in messages: `plugins.proxy-rewrite.regex_uri[1]`."""
    parts = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return "".join(parts).removeprefix(".")
