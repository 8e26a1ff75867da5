"""Conditions of object statuses, as data. `kube.status.writer` writes them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

CONDITION_TYPE = "ResourcesAvailable"
SYNCED = "ResourcesSynced"
ABORTED = "ResourceSyncAborted"
AWAY = "waits for a gateway that does not respond: "
"""Start of a message that reports only unavailable gateways; the reason is the same for all failures, as in 1.8."""
SYNCED_MESSAGE = "Sync Successfully"


@dataclass(frozen=True, slots=True)
class Cause:
    """One of the reasons why a condition is False, for an Event of its own.

    Attributes:
        reason: A constant CamelCase word, e.g. `ServiceNotFound`.
        message: A sentence.
    """

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of an object for one generation of it (v1-behaviour.md §7).

    Attributes:
        causes: What the message reports, one by one; empty: the message as a whole.
        warning: Mistakes that do not affect the condition, for one Event about kinds without conditions.
    """

    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str
    generation: int
    type: str = CONDITION_TYPE
    causes: tuple[Cause, ...] = field(default=(), compare=False)
    warning: Cause | None = field(default=None, compare=False)


def synced(generation: int, *notes: str) -> Condition:
    """Return the condition of an object whose records are in every gateway cluster, with notes for its author."""
    return Condition("True", SYNCED, "; ".join((SYNCED_MESSAGE, *notes)), generation)


def aborted(generation: int, message: str, *, away: bool = False, causes: Iterable[Cause] = ()) -> Condition:
    """Return the condition of an object that is not, or only partly, in effect; `away`: gateways do not respond."""
    return Condition("False", ABORTED, f"{AWAY if away else ''}{message}", generation, causes=tuple(causes))


def is_away(message: str) -> bool:
    """Return whether a condition only reports gateways that do not respond, which may be temporary."""
    return message.startswith(AWAY)
