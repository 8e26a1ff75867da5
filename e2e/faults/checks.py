"""Invariants of a journal under any faults: one writer at a time, no forced write, no desired record deleted."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from e2e.faults.proxies.journal import Entry


def late_writes(journal: Sequence[Entry]) -> list[str]:
    """Return the writes that a process sent although a later one had begun to write.

    Processes are distinguished by their identity. The order is the order of requests, not of their responses.
    """
    writes = sorted((entry for entry in journal if entry.is_write), key=lambda entry: entry.received)
    order = list(dict.fromkeys(entry.writer for entry in writes))
    found, newest = [], 0
    for entry in writes:
        place = order.index(entry.writer)
        if place < newest:
            found.append(f"{entry.method} {entry.record} by {entry.writer} after {order[newest]} had begun")
        newest = max(newest, place)
    return found


def forced(journal: Sequence[Entry]) -> list[str]:
    """Return the requests that ask the gateway to skip its own checks."""
    return [f"{entry.method} {entry.path}" for entry in journal if "force" in entry.path.partition("?")[2]]


def deleted(journal: Sequence[Entry], wanted: Collection[str]) -> list[str]:
    """Return the records that were deleted although they were always desired."""
    return [entry.record for entry in journal if entry.method == "DELETE" and entry.record in wanted]


def dangling(journal: Sequence[Entry]) -> list[str]:
    """Return the writes that the gateway rejected for their order: missing references, or records in use."""
    return [
        f"{entry.method} {entry.record}: {entry.status}" for entry in journal if entry.is_write and entry.status == 400
    ]
