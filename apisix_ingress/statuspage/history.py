"""Recent events in the gateway clusters for the status page, and a revision number that grows with each change.

Filled by the sync engines and by `wiring/fanout.py`, on the hot path: each call is a few assignments.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime

from apisix_ingress.gateway.sync.observer import RecordState, SyncObserver
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.runtime.clock import Clock

REMEMBERED = 50
"""Maximum number of drift repairs kept for each cluster."""


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
    """Listens to the sync engines of all clusters. `revision` grows whenever a page may look different."""

    def __init__(self, clock: Clock) -> None:
        self.revision = 0
        self._standing: object = None
        self._clock = clock
        self._clusters: dict[str, ClusterHistory] = {}

    def of(self, cluster: str) -> ClusterHistory:
        """Return what happened in a cluster."""
        return self._clusters.setdefault(cluster, ClusterHistory())

    def stands(self, standing: object) -> None:
        """Record state that no engine reports; a change of it increases the revision."""
        if self._standing not in (None, standing):
            self.revision += 1
        self._standing = standing

    def reported(self, owner: ObjectKey) -> None:
        """Record that an object has a new report."""
        self.revision += 1

    def outcome(self, cluster: str, key: RecordKey, state: RecordState) -> None:
        """Record that a record's state may have changed."""
        self.revision += 1

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
