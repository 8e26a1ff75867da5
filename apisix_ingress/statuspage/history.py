"""Recent events in the gateway clusters for the status page, and a revision number that grows with each change.

Filled by the sync engines and by `wiring/fanout.py`, on the hot path: each call is a few assignments.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from apisix_ingress.gateway.backend import ObservedRecord
from apisix_ingress.gateway.sync.observer import Body, Change, RecordState, SyncObserver
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.records import Record
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.state.world import Report

REMEMBERED = 50
"""Maximum number of drift repairs kept for each cluster."""

MOST_CHANGES = 1_000
"""Maximum number of records whose latest change is kept, in all clusters together."""

LARGEST_BODY = 16 * 1024
"""Maximum size of a body that is kept to describe a change, in bytes."""

HOUR = timedelta(hours=1)
"""How long changes are shown; those of earlier leaders are read from the gateways."""

_NO_NODES = (b'"nodes":[]', b'"nodes":{}')

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
        before: Its digest before the last change; empty: it did not exist, is too large, or is not known.
        after: Its digest after that, in the same way.
    """

    at: datetime
    cluster: str
    key: RecordKey
    change: Change
    name: str
    times: int = 1
    before: bytes = b""
    after: bytes = b""


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
        self._is_ready = False
        self._problems: OrderedDict[ObjectKey, dict[str, datetime | None]] = OrderedDict()
        self._rejected: OrderedDict[tuple[str, RecordKey], datetime] = OrderedDict()
        self._emptied: OrderedDict[tuple[str, RecordKey], datetime] = OrderedDict()
        self._announced: dict[tuple[ObjectKey, str], datetime] = {}
        self._bodies = (b"", b"")
        self._drifted: set[tuple[str, RecordKey]] = set()

    def of(self, cluster: str) -> ClusterHistory:
        """Return what happened in a cluster."""
        return self._clusters.setdefault(cluster, ClusterHistory())

    def stands(self, standing: object) -> None:
        """Record state that no engine reports; a change of it increases the revision."""
        if self._standing not in (None, standing):
            self.revision += 1
        self._standing = standing

    def leading(self) -> None:
        """Record the start of a term: from now on, this process knows what changes."""
        self.began = self._clock.now()

    def changes(self) -> Iterator[RecordChange]:
        """Yield the latest change of each record, the newest first."""
        return reversed(self._changes.values())

    def ready(self) -> None:
        """Record that every object was translated once: problems from now on are new."""
        self._is_ready = True

    def since(self, owner: ObjectKey, code: str) -> datetime | None:
        """Return since when an object has a problem, as far as this process or Events of earlier leaders know."""
        return self._problems.get(owner, {}).get(code) or self._announced.get((owner, code))

    def rejected(self, cluster: str, key: RecordKey) -> datetime | None:
        """Return when a cluster rejected a record first, as far as this is known."""
        return self._rejected.get((cluster, key))

    def emptied(self, cluster: str, key: RecordKey) -> datetime | None:
        """Return since when an upstream has no nodes in a cluster, as far as this is known."""
        return self._emptied.get((cluster, key))

    def announced(self, times: Mapping[tuple[ObjectKey, str], datetime]) -> None:
        """Record since when objects have problems according to the Events of earlier leaders."""
        self._announced.update(times)
        self.revision += 1

    def reported(self, owner: ObjectKey) -> None:
        """Record that an object has a new report."""
        self.revision += 1
        report, known = self._reports.get(owner), self._problems.pop(owner, {})
        if report is not None and report.problems:
            now = self._clock.now() if self._is_ready else None
            self._problems[owner] = {each.code: known.get(each.code, now) for each in report.problems}
            _shrink(self._problems)

    def outcome(self, cluster: str, key: RecordKey, state: RecordState) -> None:
        """Record that a record's state may have changed."""
        self.revision += 1
        _note(self._rejected, (cluster, key), self._clock.now(), holds=state.kind == "rejected")

    def replaced(self, cluster: str, key: RecordKey, before: Body, after: Record | None) -> None:
        """Remember the bodies of a change, and whether an upstream has nodes."""
        self._bodies = (_kept(before), _kept(after))
        if key.kind == "upstreams":
            is_empty = after is not None and _is_empty(after.payload)
            _note(self._emptied, (cluster, key), self._clock.now(), holds=is_empty)

    def inherited(self, cluster: str, records: Mapping[RecordKey, ObservedRecord]) -> None:
        """Remember what earlier leaders changed in the last hour, and which upstreams had no nodes."""
        now = self._clock.now()
        earliest = (now - HOUR).timestamp()
        for key, found in records.items():
            if key.kind == "upstreams" and found.updated and _is_empty(found.digest):
                _note(self._emptied, (cluster, key), _moment(found.updated, now), holds=True)
            if found.updated >= earliest and (cluster, key) not in self._changes:
                change: Change = "created" if found.created == found.updated else "updated"
                at = _moment(found.updated, now)
                self._changes[cluster, key] = RecordChange(at, cluster, key, change, found.name)
        latest = sorted(self._changes.items(), key=lambda pair: pair[1].at)[-MOST_CHANGES:]
        self._changes = OrderedDict(latest)
        self.revision += 1

    def written(self, cluster: str, key: RecordKey, change: Change, name: str, status: str) -> None:
        """Remember a change that the gateway carried out; an earlier one of the same record is forgotten."""
        if status != "ok":
            return
        if (cluster, key) in self._drifted:
            self._drifted.discard((cluster, key))
            change = "deleted" if change == "deleted" else "restored"
        known = self._changes.pop((cluster, key), None)
        times = known.times + 1 if known is not None else 1
        self._changes[cluster, key] = RecordChange(self._clock.now(), cluster, key, change, name, times, *self._bodies)
        self._bodies = (b"", b"")
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

    def drifted(self, cluster: str, key: RecordKey) -> None:
        """Remember that the next write of a record repairs it."""
        if len(self._drifted) < MOST_CHANGES:
            self._drifted.add((cluster, key))

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


_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def _note(times: OrderedDict[_Key, datetime], what: _Key, at: datetime, *, holds: bool) -> None:
    """Keep the time when something began, until it no longer holds."""
    if holds:
        times.setdefault(what, at)
        _shrink(times)
    else:
        times.pop(what, None)


def _shrink(times: OrderedDict[_Key, _Value]) -> None:
    if len(times) > MOST_SINCE:
        times.popitem(last=False)


def _kept(body: Body) -> bytes:
    """Return the digest of a body; empty without one, and for a large one, whose digest may take long."""
    if isinstance(body, Record) and body.size > LARGEST_BODY:
        return b""
    return body.digest if body is not None and len(body.digest) <= LARGEST_BODY else b""


def _is_empty(text: bytes) -> bool:
    """Return whether the JSON of an upstream has no nodes; one with service discovery has no list of them."""
    return any(each in text for each in _NO_NODES)


def _moment(seconds: int, now: datetime) -> datetime:
    """Return a time of a gateway, which is not in the future even if its clock is."""
    return min(datetime.fromtimestamp(seconds, UTC), now)
