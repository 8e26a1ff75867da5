"""What one check of `doctor` found, and what can be done about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["OK", "WARN", "FAIL", "SKIP"]


@dataclass(frozen=True, slots=True)
class Check:
    """One finding.

    Attributes:
        name: Constant, for tools.
        level: SKIP: it could not be looked at, and why.
        fix: What to do; empty if nothing has to be done.
    """

    name: str
    level: Level
    message: str
    fix: str = ""


def ok(name: str, message: str) -> Check:
    """Return that something is as it should be."""
    return Check(name, "OK", message)


def warn(name: str, message: str, fix: str) -> Check:
    """Return that something works and is better changed."""
    return Check(name, "WARN", message, fix)


def fail(name: str, message: str, fix: str) -> Check:
    """Return that something can't work."""
    return Check(name, "FAIL", message, fix)


def skip(name: str, message: str) -> Check:
    """Return that something was not looked at."""
    return Check(name, "SKIP", message)
