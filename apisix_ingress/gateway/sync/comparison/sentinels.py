"""The few records of one cluster that show whether a gateway still has what was written to it.

The record that was written last tells: a gateway that lost its data does not have it, and one that was restored from a
backup has an older revision of it. One record of each kind is kept in mind, so that no kind can be lost unnoticed, and
the record that was deleted last. Nothing is read here.
"""

from __future__ import annotations

from collections.abc import Collection, Container

from apisix_ingress.gateway.backend import ClusterListing, ObservedRecord
from apisix_ingress.gateway.sync.records.observed import Applied, ObservedState
from apisix_ingress.model.keys import RecordKey, RecordKind

_DIFFERING = 2
"""If so many bodies in a row differ from what was written, the gateway changes what it keeps: bodies do not count."""


class Sentinels:
    """Which records to look at, and what they should be.

    Args:
        holdings: What the cluster is known to hold.
        in_doubt: Writes that nobody answered: their records may change later.
    """

    def __init__(self, holdings: ObservedState, in_doubt: Container[RecordKey]) -> None:
        self._holdings = holdings
        self._in_doubt = in_doubt
        self._newest: dict[RecordKind, RecordKey] = {}
        """Kind → the record of it that was written last; the kind that was written last comes last."""
        self._deleted: RecordKey | None = None
        self._turn = 0
        self._seen: dict[RecordKey, tuple[Applied | None, int]] = {}
        """Record → what was known of it when its revision was seen, and that revision."""
        self._differed = 0
        """How many bodies in a row differed from what was written: some gateways change what they keep."""

    def landed(self, key: RecordKey, *, gone: bool) -> None:
        """Note that a record was written or deleted."""
        if gone:
            self._deleted = key
            if self._newest.get(key.kind) == key:
                del self._newest[key.kind]
        else:
            self._newest.pop(key.kind, None)
            self._newest[key.kind] = key
            if self._deleted == key:
                self._deleted = None

    def listed(self, listing: ClusterListing, touched: Collection[RecordKey]) -> None:
        """Take over what a list shows, but for records that were written while it was read."""
        newest: dict[RecordKind, RecordKey] = {}
        for key, found in listing.owned.items():
            known = newest.get(key.kind)
            if known is None or found.revision > listing.owned[known].revision:
                newest[key.kind] = key
        ranked = sorted(newest.items(), key=lambda pair: listing.owned[pair[1]].revision)
        ours = {kind: key for kind, key in self._newest.items() if key in touched}
        self._newest = {**{kind: key for kind, key in ranked if kind not in ours}, **ours}
        applied = self._holdings.applied
        listed = ((key, listing.owned.get(key)) for key in self._newest.values() if key not in touched)
        self._seen = {key: (applied.get(key), found.revision) for key, found in listed if found is not None}
        if any(self._deleted in shown for shown in (listing.owned, listing.unclaimed, listing.foreign)):
            self._deleted = None

    def due(self) -> tuple[RecordKey, ...]:
        """Return the records to look at now: the last change, and one record of each kind in turn."""
        there = [key for key in self._newest.values() if self._is_settled(key) and key in self._holdings.applied]
        due = dict.fromkeys(there[-1:])
        if there:
            self._turn += 1
            due[there[self._turn % len(there)]] = None
        if self._deleted is not None and self._is_settled(self._deleted):
            due[self._deleted] = None
        return tuple(due)

    def known(self, key: RecordKey) -> Applied | None:
        """Return what the cluster is known to hold under a key: another object after each write."""
        return self._holdings.applied.get(key)

    def is_as_left(self, key: RecordKey, before: Applied | None, found: ObservedRecord | None) -> bool | None:
        """Say whether a record is as it was left; None: its body tells, since no revision was seen since its write.

        Args:
            key: The record.
            before: What was known of it when it was asked for.
            found: What the gateway has.
        """
        if self.known(key) is not before or not self._is_settled(key):
            return True  # written meanwhile
        if found is None:
            return before is None
        known, revision = self._seen.get(key, (None, -1))
        was_seen = revision >= 0 and known is before
        self._seen[key] = before, found.revision
        if was_seen and revision and found.revision:
            return found.revision == revision
        if before is None:
            return was_seen
        return None if self._differed < _DIFFERING else True

    def compared(self, *, is_expected: bool) -> bool:
        """Note whether a body is what was written; return whether the record counts as it was left."""
        self._differed = 0 if is_expected else self._differed + 1
        return is_expected or self._differed >= _DIFFERING

    def _is_settled(self, key: RecordKey) -> bool:
        holdings = self._holdings
        if key not in holdings.flying and key not in holdings.unknown and key not in self._in_doubt:
            return True
        self._seen.pop(key, None)
        return False
