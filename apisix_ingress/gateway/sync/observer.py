"""The state of records and clusters as reported to observers: conditions, metrics and the status page."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Literal

from apisix_ingress.gateway.backend import ObservedRecord
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Record

StateKind = Literal["applied", "unknown", "pending", "waiting", "rejected", "unreachable"]
Change = Literal["created", "restored", "updated", "deleted"]
Body = Record | ObservedRecord | None
"""A record as this process wrote it, or as a list returned it."""
OutageReason = Literal["unreachable", "failing", "unauthorized", "redirected"]


@dataclass(frozen=True, slots=True)
class RecordState:
    """The sync state of a record in one cluster.

    Attributes:
        kind: A word of `model.states.RecordStatus`.
        message: Why it is not applied: the gateway's error if there was one; without secrets.
        is_away: Whether the only cause is a cluster that does not respond, which may be temporary.
        is_closed: Whether the cluster has a record in its place that responds with 503.
    """

    kind: StateKind
    message: str = ""
    is_away: bool = False
    is_closed: bool = False


@dataclass(frozen=True, slots=True)
class Outage:
    """A cluster that cannot be written to.

    Attributes:
        reason: unreachable: no response; failing: an error response; unauthorized: the admin key or the client is
            rejected; redirected: the server at the address redirects requests.
        cause: The error as text: the address, what happened, and what to do if that is known.
        since: When the first request failed.
    """

    reason: OutageReason
    cause: str
    since: datetime

    @property
    def is_away(self) -> bool:
        """Whether the cluster does not respond, or fails, which may be temporary."""
        return self.reason in ("unreachable", "failing")

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
    """Observes gateway clusters; this base class does nothing. Methods are called synchronously and must not raise."""

    def marked(self, cluster: str, keys: Collection[RecordKey], since: float) -> None:
        """Handle records that have to be written because of a change that was seen at monotonic time `since`."""

    def outcome(self, cluster: str, key: RecordKey, state: RecordState) -> None:
        """Handle the state of a record after an event; it may be the same as before."""

    def written(self, cluster: str, key: RecordKey, change: Change, name: str, status: str) -> None:
        """Handle the end of a write.

        Args:
            cluster: The cluster.
            key: The record.
            change: What the write does if the gateway carries it out.
            name: The name of the record, empty if unknown.
            status: `ok`, or the name of the error.
        """

    def replaced(self, cluster: str, key: RecordKey, before: Body, after: Record | None) -> None:
        """Handle the bodies of a write that the gateway carried out, before `written` reports it.

        Args:
            cluster: The cluster.
            key: The record.
            before: What the gateway had; None: nothing, or it is not known.
            after: What it has now; None: nothing.
        """

    def inherited(self, cluster: str, records: Mapping[RecordKey, ObservedRecord]) -> None:
        """Handle the records of this controller that the cluster had at the start of a session."""

    def compared(self, cluster: str, ok: bool) -> None:
        """Handle the end of an audit; `ok` is False if the cluster could not be read."""

    def drifted(self, cluster: str, key: RecordKey) -> None:
        """Handle a record that an audit found changed, missing or added by another client; it is repaired next."""

    def drift(self, cluster: str, records: int) -> None:
        """Handle the number of records that an audit found changed, missing or added by other clients."""

    def held(self, cluster: str, records: int) -> None:
        """Handle the number of records whose deletion is held back, because they are unusually many."""

    def breaker(self, cluster: str, is_open: bool) -> None:
        """Handle that writes to the cluster stopped (the breaker is open) or resumed."""


class SyncObservers(SyncObserver):
    """Forwards every call to several observers, in their order."""

    def __init__(self, *observers: SyncObserver) -> None:
        for name in vars(SyncObserver):
            if not name.startswith("_"):
                setattr(self, name, partial(_call_each, [getattr(each, name) for each in observers]))


def _call_each(functions: Iterable[Callable[..., None]], *arguments: object, **options: object) -> None:
    for function in functions:
        function(*arguments, **options)
