"""Verdicts: how closely a gateway implements an annotation or a ConfigMap key. Data without behaviour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Level: TypeAlias = Literal["exact", "approximate", "no effect", "refused"]
"""`exact`: the same behaviour for clients and backends as in ingress-nginx. `approximate`: except for the
difference that the verdict names. `no effect`: it had no effect in ingress-nginx either, or none that is visible.
`refused`: it is not served; if it protects something, the path is closed."""

RANKS: dict[Level, int] = {"no effect": 0, "exact": 1, "approximate": 2, "refused": 3}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one value.

    Attributes:
        level: How closely it is implemented.
        reason: One sentence on the difference; empty for an exact one.
        protects: Whether the path would be unprotected without it.
    """

    level: Level
    reason: str = ""
    protects: bool = False


EXACT = Verdict("exact")


def approximate(reason: str) -> Verdict:
    """Return the verdict on a value that is served with a difference."""
    return Verdict("approximate", reason)


def no_effect(reason: str) -> Verdict:
    """Return the verdict on a value without effect."""
    return Verdict("no effect", reason)


def refused(reason: str, *, protects: bool = False) -> Verdict:
    """Return the verdict on a value that is not served."""
    return Verdict("refused", reason, protects)
