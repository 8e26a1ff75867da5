"""Recent events in the gateway clusters for the status page, and a revision number that grows with each change.

Filled by the sync engines and by `wiring/fanout.py`, on the hot path: each call is a few assignments.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from apisix_ingress.gateway.sync.observer import Change, RecordState, SyncObserver
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.state.world import Report

REMEMBERED = 50
"""Maximum number of drift repairs kept for each cluster."""

MOST_CHANGES = 1_000
"""Maximum number of records whose latest change is kept, in all clusters together."""

MOST_SINCE = 20_000
"""Maximum number of objects and records for which it is known since when they have problems."""


@dataclass(slots=True)
class RecordChange:
    """The latest change of a record in one cluster.

    Attributes:
        at: When the gateway confirmed it.
        cluster: The gateway cluster.
        key: The record.
        change: What happened to it.
        name: The name of the record, empty if unknown.
        times: How often it changed since it is remembered.
    """

    at: datetime
    cluster: str
    key: RecordKey
    change: Change
    name: str
    times: int = 1


@dataclass(frozen=True, slots=True)
class Repair:
    """An audit that found records changed, missing or added by someone else."""

    at: datetime
    records: int


@dataclass(slots=True)
class ClusterHistory:
    """What is known about one cluster.

    Attributes:
        compared_at: When it was last read and compared with the desired records.
        failed_at: When that last failed; None if it has succeeded since.
        held: The number of deletes that are held back because there are unusually many.
        repairs: The latest repairs of drift, the oldest first.
    """

    compared_at: datetime | None = None
    failed_at: datetime | None = None
    held: int = 0
    repairs: deque[Repair] = field(default_factory=lambda: deque(maxlen=REMEMBERED))


class History(SyncObserver):
    """Listens to the sync engines of all clusters. `revision` grows whenever a page may look different.

    Args:
        clock: The clock.
        reports: The report of each object, to note since when it has problems.
    """

    def __init__(self, clock: Clock, reports: Mapping[ObjectKey, Report] | None = None) -> None:
        self.revision = 0
        self.began = clock.now()
        self._reports = reports if reports is not None else {}
        self._standing: object = None
        self._clock = clock
        self._clusters: dict[str, ClusterHistory] = {}
        self._changes: OrderedDict[tuple[str, RecordKey], RecordChange] = OrderedDict()
        self._since: OrderedDict[ObjectKey | tuple[str, RecordKey], datetime] = OrderedDict()

    def of(self, cluster: str) -> ClusterHistory:
        """Return what happened in a cluster."""
        return self._clusters.setdefault(cluster, ClusterHistory())

    def stands(self, standing: object) -> None:
        """Record state that no engine reports; a change of it increases the revision."""
        if self._standing not in (None, standing):
            self.revision += 1
        self._standing = standing

    def changes(self) -> Iterator[RecordChange]:
        """Yield the latest change of each record, the newest first."""
        return reversed(self._changes.values())

    def since(self, what: ObjectKey | tuple[str, RecordKey]) -> datetime | None:
        """Return when an object got problems, or a cluster rejected a record first, as far as this process knows."""
        return self._since.get(what)

    def reported(self, owner: ObjectKey) -> None:
        """Record that an object has a new report."""
        self.revision += 1
        report = self._reports.get(owner)
        self._note(owner, wrong=report is not None and bool(report.problems))

    def outcome(self, cluster: str, key: RecordKey, state: RecordState) -> None:
        """Record that a record's state may have changed."""
        self.revision += 1
        self._note((cluster, key), wrong=state.kind == "rejected")

    def _note(self, what: ObjectKey | tuple[str, RecordKey], *, wrong: bool) -> None:
        if not wrong:
            self._since.pop(what, None)
        elif what not in self._since:
            self._since[what] = self._clock.now()
            if len(self._since) > MOST_SINCE:
                self._since.popitem(last=False)

    def written(self, cluster: str, key: RecordKey, change: Change, name: str, status: str) -> None:
        """Remember a change that the gateway carried out; an earlier one of the same record is forgotten."""
        if status != "ok":
            return
        known = self._changes.pop((cluster, key), None)
        times = known.times + 1 if known is not None else 1
        self._changes[cluster, key] = RecordChange(self._clock.now(), cluster, key, change, name, times)
        if len(self._changes) > MOST_CHANGES:
            self._changes.popitem(last=False)

    def compared(self, cluster: str, ok: bool) -> None:
        """Record when a cluster was compared."""
        found = self.of(cluster)
        if ok:
            found.compared_at, found.failed_at = self._clock.now(), None
        else:
            found.failed_at = self._clock.now()
        self.revision += 1

    def drift(self, cluster: str, records: int) -> None:
        """Record a repair."""
        if records:
            self.of(cluster).repairs.append(Repair(self._clock.now(), records))
            self.revision += 1

    def held(self, cluster: str, records: int) -> None:
        """Record how many deletes are held back."""
        self.of(cluster).held = records
        self.revision += 1

    def breaker(self, cluster: str, is_open: bool) -> None:
        """Record the start or end of an outage."""
        self.revision += 1
