"""The result of one check of `doctor`, with its remedy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["OK", "WARN", "FAIL", "SKIP"]


@dataclass(frozen=True, slots=True)
class Check:
    """One finding.

    Attributes:
        name: Constant, for tools.
        level: SKIP: the check could not run, and why.
        fix: The remedy; empty if none is needed.
    """

    name: str
    level: Level
    message: str
    fix: str = ""


def ok(name: str, message: str) -> Check:
    """Return a passed check."""
    return Check(name, "OK", message)


def warn(name: str, message: str, fix: str) -> Check:
    """Return a warning: it works, but should be changed."""
    return Check(name, "WARN", message, fix)


def fail(name: str, message: str, fix: str) -> Check:
    """Return a failed check."""
    return Check(name, "FAIL", message, fix)


def skip(name: str, message: str) -> Check:
    """Return a skipped check."""
    return Check(name, "SKIP", message)
