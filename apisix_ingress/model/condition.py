"""Conditions: what an object's status says, as data. How they are written belongs to `kube.status`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CONDITION_TYPE = "ResourcesAvailable"
SYNCED = "ResourcesSynced"
ABORTED = "ResourceSyncAborted"
SYNCED_MESSAGE = "Sync Successfully"


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of an object for one generation of it (v1-behaviour.md §7)."""

    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str
    generation: int
    type: str = CONDITION_TYPE


def synced(generation: int) -> Condition:
    """Return the condition of an object whose records every gateway cluster has."""
    return Condition("True", SYNCED, SYNCED_MESSAGE, generation)


def aborted(generation: int, message: str) -> Condition:
    """Return the condition of an object that is not, or not wholly, in effect."""
    return Condition("False", ABORTED, message, generation)
