"""Verdicts: how closely a gateway serves what an annotation or a ConfigMap key asks for. Data, no behaviour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Level: TypeAlias = Literal["exact", "approximate", "no effect", "refused"]
"""`exact`: clients and backends see what they saw with ingress-nginx. `approximate`: with the difference that the
verdict names. `no effect`: it did nothing in ingress-nginx either, or nothing that clients and backends see.
`refused`: it is not served; where it protects something, the path is closed."""

RANKS: dict[Level, int] = {"no effect": 0, "exact": 1, "approximate": 2, "refused": 3}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of one value.

    Attributes:
        level: How closely it is served.
        reason: One sentence on the difference; empty for an exact one.
        protects: Whether serving the path without it would open something.
    """

    level: Level
    reason: str = ""
    protects: bool = False


EXACT = Verdict("exact")


def approximate(reason: str) -> Verdict:
    """Return the verdict on what is served with a difference."""
    return Verdict("approximate", reason)


def no_effect(reason: str) -> Verdict:
    """Return the verdict on what changes nothing."""
    return Verdict("no effect", reason)


def refused(reason: str, *, protects: bool = False) -> Verdict:
    """Return the verdict on what is not served."""
    return Verdict("refused", reason, protects)
