"""The few records of one cluster that show whether a gateway still has what was written to it.

A gateway that lost its data does not have the last written record, and one that was restored from a backup has an older
revision of it. Sentinels are the last written record of each kind, so that no kind can be lost unnoticed, and the last
deleted record. Nothing is read here.
"""

from __future__ import annotations

from collections.abc import Callable

from apisix_ingress.gateway.backend import ClusterListing, ObservedRecord
from apisix_ingress.gateway.sync.records.slot import Applied, Unknown
from apisix_ingress.gateway.sync.records.table import RecordTable
from apisix_ingress.model.keys import RecordKey, RecordKind

_DIFFERING = 2
"""Number of consecutive bodies that differ from what was written after which bodies are ignored: the gateway modifies
them."""


class Sentinels:
    """Selects the records of a cluster to read, and checks whether they are as this process left them."""

    def __init__(self, table: RecordTable) -> None:
        self._table = table
        self._newest: dict[RecordKind, RecordKey] = {}
        """Kind → its last written record; the kind that was written last comes last."""
        self._deleted: RecordKey | None = None
        self._deleted_revision = -1
        """The revision with which the last deleted record was seen to exist again; -1 if it was not."""
        self._turn = 0
        self._differed = 0
        """Number of consecutive bodies that differed from what was written: some gateways modify bodies."""

    def written(self, key: RecordKey, *, deleted: bool) -> None:
        """Record that a record was written or deleted."""
        if deleted:
            self._deleted, self._deleted_revision = key, -1
            if self._newest.get(key.kind) == key:
                del self._newest[key.kind]
        else:
            self._newest.pop(key.kind, None)
            self._newest[key.kind] = key
            if self._deleted == key:
                self._deleted = None

    def listed(self, listing: ClusterListing, is_touched: Callable[[RecordKey], bool]) -> None:
        """Update the sentinels from a list, except for records that were written while it was read."""
        newest: dict[RecordKind, RecordKey] = {}
        for key, found in listing.owned.items():
            known = newest.get(key.kind)
            if known is None or found.revision > listing.owned[known].revision:
                newest[key.kind] = key
        ranked = sorted(newest.items(), key=lambda pair: listing.owned[pair[1]].revision)
        ours = {kind: key for kind, key in self._newest.items() if is_touched(key)}
        self._newest = {**{kind: key for kind, key in ranked if kind not in ours}, **ours}
        if any(self._deleted in shown for shown in (listing.owned, listing.unclaimed, listing.foreign)):
            self._deleted = None

    def due(self) -> tuple[RecordKey, ...]:
        """Return the records to read now: the last written and deleted ones, and the other kinds in turn."""
        existing = [key for key in self._newest.values() if self._is_settled(key) and self.known(key) is not None]
        due = dict.fromkeys(existing[-1:])
        if existing:
            self._turn += 1
            due[existing[self._turn % len(existing)]] = None
        if self._deleted is not None and self._is_settled(self._deleted):
            due[self._deleted] = None
        return tuple(due)

    def known(self, key: RecordKey) -> Applied | None:
        """Return the applied record under a key; it is a different Python object after each write."""
        return self._table.get(key).applied

    def is_unchanged(self, key: RecordKey, before: Applied | None, found: ObservedRecord | None) -> bool | None:
        """Return whether a record is as it was left; None: compare the body, as no revision was seen after its write.

        Args:
            key: The record.
            before: The applied record when the read was started.
            found: The record in the gateway.
        """
        if self.known(key) is not before or not self._is_settled(key):
            return True  # written meanwhile
        if found is None:
            return before is None
        revision = self._replace_revision(key, found.revision)
        if revision > 0 and found.revision:
            return found.revision == revision
        if before is None:
            return revision >= 0
        return None if self._differed < _DIFFERING else True

    def compared(self, *, is_expected: bool) -> bool:
        """Record whether a body is what was written; return whether to treat the record as it was left."""
        self._differed = 0 if is_expected else self._differed + 1
        return is_expected or self._differed >= _DIFFERING

    def _replace_revision(self, key: RecordKey, revision: int) -> int:
        """Store the revision of a record; return the previous one, -1 if there was none."""
        slot = self._table.get(key)
        if slot.observed is not None:
            before, slot.revision = slot.revision, revision
        else:
            before, self._deleted_revision = self._deleted_revision, revision
        return before

    def _is_settled(self, key: RecordKey) -> bool:
        slot = self._table.get(key)
        if slot.flight is None and not isinstance(slot.observed, Unknown) and not slot.is_uncertain:
            return True
        slot.revision = -1
        if key == self._deleted:
            self._deleted_revision = -1
        return False
