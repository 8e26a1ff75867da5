"""Unacknowledged writes: they may still be carried out, even after later writes.

The Admin API has no compare-and-set, so an earlier body, or an earlier delete, can replace a later one. This module
tracks until when that may happen; the gateway is audited afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from apisix_ingress.gateway.sync.records.slot import RecordSlot, UnackedWrite
from apisix_ingress.gateway.sync.records.table import RecordTable
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Record


class UnackedWrites:
    """When an audit is due because earlier writes may have replaced later ones. Times are monotonic."""

    def __init__(self, table: RecordTable) -> None:
        self._table = table
        self._due = math.inf

    def note(self, slot: RecordSlot, record: Record | None, until: float) -> None:
        """Record that a write (None: a delete) was not acknowledged and may be carried out until a time."""
        slot.unacked = (*(each for each in slot.unacked if each.record != record), UnackedWrite(record, until))
        self._table.timed[slot.key] = slot

    def acknowledged(self, slot: RecordSlot, record: Record | None, started: float) -> None:
        """Record that a write that started at a time was carried out: earlier, different ones may replace it."""
        until = max((each.until for each in slot.unacked if each.record != record), default=-math.inf)
        if until > started:
            slot.may_be_overwritten = max(until, slot.may_be_overwritten)
            self._table.timed[slot.key] = slot
            self._due = until if self._due == math.inf else max(self._due, until)

    def come_due(self, now: float) -> bool:
        """Return True, once, when every write that might replace a later one has been carried out or never will be.

        New unacknowledged writes postpone it, to avoid audits that are not useful yet.
        """
        if now < self._due:
            return False
        self._due = math.inf
        return True

    def audited(self, began: float, wanted: Callable[[RecordKey], Record | None]) -> None:
        """Forget writes whose time was over when an audit began; the others need another audit."""
        for slot in list(self._table.timed.values()):
            if slot.may_be_overwritten <= began:
                slot.may_be_overwritten = -math.inf
            if slot.unacked:
                self.acknowledged(slot, wanted(slot.key), began)
