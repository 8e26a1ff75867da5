"""What is told about a record and a cluster, to conditions and to metrics. Nothing here decides or writes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from apisix_ingress.model.keys import RecordKey, RecordKind

StateKind = Literal["applied", "pending", "waiting", "rejected", "unreachable"]
Operation = Literal["put", "delete"]
Change = Literal["created", "updated", "deleted"]
OutageReason = Literal["unreachable", "failing", "unauthorized", "redirected"]


@dataclass(frozen=True, slots=True)
class RecordState:
    """How far a record is in one cluster.

    Attributes:
        kind: applied: the cluster has it as wanted; pending: on its way; waiting: for another record; rejected: the
            gateway will not take it; unreachable: the cluster does not answer.
        message: Why it is not applied, in the gateway's words where it spoke; no secrets.
        is_away: Nothing but a cluster that does not answer, or not now, is in the way: it may pass by itself.
    """

    kind: StateKind
    message: str = ""
    is_away: bool = False


@dataclass(frozen=True, slots=True)
class Outage:
    """A cluster that can't be written to.

    Attributes:
        reason: unreachable: no answer; failing: an answer that is an error; unauthorized: the admin key or client is
            refused; redirected: something else is at its address.
        cause: The error, for people: which address, what happened, and what to do where that is known.
        since: When the first request failed.
    """

    reason: OutageReason
    cause: str
    since: datetime

    @property
    def headline(self) -> str:
        """The outage in one line."""
        return f"{HEADLINES[self.reason]} since {self.since:%Y-%m-%dT%H:%M:%SZ}: {self.cause}"


HEADLINES: dict[OutageReason, str] = {
    "unreachable": "not reachable",
    "failing": "failing",
    "unauthorized": "unauthorized",
    "redirected": "redirected",
}

APPLIED = RecordState("applied")
PENDING = RecordState("pending")


class SyncObserver:
    """Watches gateway clusters; this one does nothing. Called synchronously: be quick and do not raise."""

    def marked(self, cluster: str, keys: Collection[RecordKey], since: float) -> None:
        """Note that records have to be written because of a change that was seen at monotonic time `since`."""

    def outcome(self, cluster: str, key: RecordKey, state: RecordState) -> None:
        """Note the state of a record after something happened to it; it may be the same as before."""

    def written(self, cluster: str, kind: RecordKind, op: Operation, seconds: float, status: str) -> None:
        """Note a write and how it ended: `ok`, or the name of the error."""

    def changed(self, cluster: str, key: RecordKey, change: Change, name: str) -> None:
        """Note that the gateway carried out a write: what changed, and the name of the record, empty if unknown."""

    def compared(self, cluster: str, ok: bool) -> None:
        """Note that the cluster was read and compared with what is wanted, or could not be read."""

    def drift(self, cluster: str, records: int) -> None:
        """Note that an audit found so many records changed, missing or added by others."""

    def held(self, cluster: str, records: int) -> None:
        """Note that the deletion of so many records is held back now, since it would be unusual."""

    def breaker(self, cluster: str, is_open: bool) -> None:
        """Note that writing to the cluster stopped (the breaker is open) or goes on."""


class SyncObservers(SyncObserver):
    """Passes everything on to several observers, in their order."""

    def __init__(self, *observers: SyncObserver) -> None:
        self._observers = observers

    def marked(self, cluster: str, keys: Collection[RecordKey], since: float) -> None:
        """Pass it on."""
        for each in self._observers:
            each.marked(cluster, keys, since)

    def outcome(self, cluster: str, key: RecordKey, state: RecordState) -> None:
        """Pass it on."""
        for each in self._observers:
            each.outcome(cluster, key, state)

    def written(self, cluster: str, kind: RecordKind, op: Operation, seconds: float, status: str) -> None:
        """Pass it on."""
        for each in self._observers:
            each.written(cluster, kind, op, seconds, status)

    def changed(self, cluster: str, key: RecordKey, change: Change, name: str) -> None:
        """Pass it on."""
        for each in self._observers:
            each.changed(cluster, key, change, name)

    def compared(self, cluster: str, ok: bool) -> None:
        """Pass it on."""
        for each in self._observers:
            each.compared(cluster, ok)

    def drift(self, cluster: str, records: int) -> None:
        """Pass it on."""
        for each in self._observers:
            each.drift(cluster, records)

    def held(self, cluster: str, records: int) -> None:
        """Pass it on."""
        for each in self._observers:
            each.held(cluster, records)

    def breaker(self, cluster: str, is_open: bool) -> None:
        """Pass it on."""
        for each in self._observers:
            each.breaker(cluster, is_open)
