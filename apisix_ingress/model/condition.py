"""Conditions: what an object's status says, as data. How they are written belongs to `kube.status.writer`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CONDITION_TYPE = "ResourcesAvailable"
SYNCED = "ResourcesSynced"
ABORTED = "ResourceSyncAborted"
AWAY = "waits for a gateway that does not answer: "
"""Start of a message without any other problem: the reason is that of every failure, as in 1.8."""
SYNCED_MESSAGE = "Sync Successfully"


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of an object for one generation of it (v1-behaviour.md §7)."""

    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str
    generation: int
    type: str = CONDITION_TYPE


def synced(generation: int, *notes: str) -> Condition:
    """Return the condition of an object whose records every gateway cluster has, with what its author should know."""
    return Condition("True", SYNCED, "; ".join((SYNCED_MESSAGE, *notes)), generation)


def aborted(generation: int, message: str, *, away: bool = False) -> Condition:
    """Return the condition of an object that is not, or not wholly, in effect; `away`: gateways do not answer."""
    return Condition("False", ABORTED, f"{AWAY if away else ''}{message}", generation)


def is_away(message: str) -> bool:
    """Say whether a condition only reports gateways that do not answer, which may be temporary."""
    return message.startswith(AWAY)
