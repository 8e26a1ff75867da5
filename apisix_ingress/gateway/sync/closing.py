"""Decides when a record is closed: when its closing record is written because the record itself cannot be.

A record is *stuck* if the gateway rejects it, if it keeps failing, or if it refers to such a record. If the gateway has
no earlier version of it, its requests would reach other routes, which may lack its protection. Its closing record,
under the same id, refuses them until the record can be written. `translation.closing` defines closing records.
"""

from __future__ import annotations

from collections.abc import Callable

from apisix_ingress.gateway.backend import DependencyPending
from apisix_ingress.gateway.sync.config import Closing
from apisix_ingress.gateway.sync.plan import Step, WantedAt
from apisix_ingress.gateway.sync.records.retries import is_crash
from apisix_ingress.gateway.sync.records.slot import RecordSlot
from apisix_ingress.gateway.sync.records.table import RecordTable
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Record


class Closings:
    """The closing records of one cluster.

    Args:
        table: What the cluster has.
        wanted_at: Returns the record that the cluster should have under a key, or None.
        closing: What closing records contain.
        now: Returns the monotonic time.
    """

    def __init__(self, table: RecordTable, wanted_at: WantedAt, closing: Closing, *, now: Callable[[], float]) -> None:
        self._table = table
        self._wanted_at = wanted_at
        self._closing = closing
        self._now = now
        self._suspects: frozenset[RecordKey] = frozenset()
        self._orphans: frozenset[RecordKey] = frozenset()

    def instead_of(self, step: Step) -> Step:
        """Return what to do instead of a write that is not possible: to close the record, if it has to be."""
        record = step.record
        if record is None or record.key.kind != "routes":  # only routes have closing records
            return step
        if step.act not in ("put", "wait") or not self._is_stuck(step):
            return step
        closing = self._due(record)
        return Step("close", closing) if closing is not None else step

    def is_given_up(self, step: Step) -> bool:
        """Return whether neither the record of a step, which does not exist, nor a closing record is written soon."""
        if step.record is None or step.act not in ("put", "wait"):
            return True
        if self._is_stuck(step):
            return self._due(step.record) is None
        return self._table.get(step.record.key).persistent_error is not None

    def is_closed(self, slot: RecordSlot) -> bool:
        """Return whether the gateway has a record that only refuses requests."""
        known = slot.applied
        return known is not None and slot.key.kind == "routes" and self._closing.is_closed(known.body)

    def note(self, slot: RecordSlot) -> str:
        """Return how the requests of a record that is not applied are handled; empty if it is not closed."""
        record = self._wanted_at(slot.key)
        if record is None or not self.is_closed(slot):
            return ""
        return f"until then, requests for {self._closing.requests_of(record.body)} get the response 503"

    def overdue(self) -> list[RecordKey]:
        """Return, once, the records that wait for one that is not desired since the last call.

        The object of such a record was not translated: it may be next in the queue, or have an error.
        """
        found = {
            waiter
            for ref, waiters in self._table.blocked.items()
            if self._wanted_at(ref) is None and not self._table.get(ref).exists
            for waiter in waiters
        }
        before, self._orphans = self._orphans, frozenset(found & self._suspects)
        self._suspects = frozenset(found)
        return sorted(self._orphans - before)

    def _due(self, record: Record) -> Record | None:
        """Return the closing record to write; None if an earlier version or a closing record exists, or none may."""
        slot = self._table.get(record.key)
        is_earlier = slot.exists and not self.is_closed(slot)
        if is_earlier or slot.is_of_another(record.name):
            return None
        closings = list(self._closing.closings(record))
        if slot.applied is not None and any(slot.applied.matches(each) for each in closings):
            return None
        return next((each for each in closings if each.payload not in slot.refused_closings), None)

    def _is_stuck(self, step: Step) -> bool:
        """Return whether the write of a step is not possible for long."""
        record = step.record
        assert record is not None
        slot = self._table.get(record.key)
        if step.act == "put" and slot.rejection is None and not slot.failures:
            return False  # nearly always
        if step.act == "wait" and step.on is not None:
            return record.key in self._orphans or self._is_hopeless(step.on)
        is_resting = slot.rejection is not None and slot.rejection.is_of(record) and self._now() < slot.rejection.until
        return is_resting or _is_failing(slot)

    def _is_hopeless(self, key: RecordKey | None) -> bool:
        """Return whether a record that others wait for, or one that it waits for itself, is not written for long."""
        seen: set[RecordKey] = set()
        while key is not None and key not in seen:
            seen.add(key)
            record, slot = self._wanted_at(key), self._table.get(key)
            if record is None:
                return slot.observed is not None  # it is to be deleted, which may take until others are written
            if slot.is_foreign or slot.rejected(record) is not None or _is_failing(slot):
                return True
            key = slot.blocked_on
        return False


def _is_failing(slot: RecordSlot) -> bool:
    """Return whether writes keep failing because of this record, not because the gateway cannot be reached."""
    error = slot.persistent_error
    return error is not None and (is_crash(error) or isinstance(error, DependencyPending))
