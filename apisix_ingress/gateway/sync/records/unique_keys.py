"""Exclusive keys: what a gateway lets one record alone have, a plugin of global rules, a credential of consumers.

A gateway looks for another record that has it in its memory, which lags behind its store: of writes at one time it
would accept all. So they are sent one after the other, the one of the oldest owner first. A record whose key another
one still has is refused, and tried again once that one was written. If records wait for each other in a circle, none
could ever be written: one is written without the keys that it is to get (it *releases*), and then as it is wanted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from apisix_ingress.gateway.sync.ordering.write_order import WriteOrder
from apisix_ingress.gateway.sync.plan import Wanted
from apisix_ingress.gateway.sync.records.slot import Applied, RecordSlot
from apisix_ingress.gateway.sync.records.table import RecordTable
from apisix_ingress.model.json import mapping_in
from apisix_ingress.model.keys import RecordKey, RecordKind
from apisix_ingress.model.records import Record, taken

MEMORY_SECONDS = 0.5
"""After so long what was written is in a gateway's memory, which most often takes milliseconds."""

RELEASE_INTERVAL = 60.0
"""Seconds between two releases of one record, if the first one was not followed by what it wants."""


class UniqueKeys:
    """Which writes wait for others, and for how long after those."""

    def __init__(self, cluster: str, wanted: Wanted, table: RecordTable, order: WriteOrder) -> None:
        self._cluster = cluster
        self._wanted = wanted
        self._table = table
        self._order = order
        # Exclusive key → to whom it was given lately, and when. What time makes void is dropped by `prune`.
        self._given: dict[tuple[RecordKind, tuple[str, str]], dict[RecordKey, float]] = {}

    def rival(self, record: Record) -> RecordKey | None:
        """Return a record whose write has to end before the one of this record may begin, or None.

        Those that are not in flight yet wait in a line, each for the one before it: when a write ends, one record is
        looked at again, not each of thousands that are to have the same.
        """
        for other, slot in self._table.in_flight.items():
            # Also one that is to have something else by now, or nothing.
            sent = slot.flight.record if slot.flight is not None else None
            is_rival = sent is not None and bool(sent.takes & record.takes)
            if other.kind == record.key.kind and other != record.key and (is_rival or self._is_rival(other, record)):
                return other
        for other in self._wanted.older_takers(record.key, self._cluster):
            if self._is_in_line(other) and self._is_rival(other, record):
                return other
        return None

    def _is_in_line(self, key: RecordKey) -> bool:
        return self._table.get(key).blocked_by_rival or self._order.is_counted(key)

    def _is_rival(self, other: RecordKey, record: Record) -> bool:
        wanted = self._wanted.get(other, self._cluster)
        return wanted is not None and bool(wanted.takes & record.takes)

    def delay(self, record: Record, now: float) -> float:
        """Return the seconds until the gateway knows what others were given."""
        # Also to who is to have something else by now: it may not get that, and then it keeps what it has.
        given = (self._given.get((record.key.kind, each), {}) for each in record.takes)
        times = (at for each in given for other, at in each.items() if other != record.key)
        return max(times, default=-math.inf) + MEMORY_SECONDS - now

    def written(self, record: Record, now: float) -> None:
        """Note that a record was written, or may have been."""
        for each in record.takes:
            self._given.setdefault((record.key.kind, each), {})[record.key] = now

    def prune(self, now: float) -> None:
        """Forget the writes that a gateway knows of."""
        self._given = {each: young for each, given in self._given.items() if (young := _young(given, now))}

    def circle(self, slot: RecordSlot) -> tuple[RecordSlot, ...]:
        """Return the records that wait for each other in a circle with this one, itself included; else nothing."""
        seen: dict[RecordKey, RecordSlot] = {}
        holder = slot.holder
        while holder is not None and holder not in seen:
            other = seen[holder] = self._table.get(holder)
            holder = other.holder
        return tuple(seen.values()) if slot.key in seen else ()

    def may_release(self, slot: RecordSlot, now: float) -> bool:
        """Say whether a record keeps failing in a circle, and did not release its keys in vain a short time ago."""
        is_due = slot.persistent_error is not None and now - slot.released_at >= RELEASE_INTERVAL
        return is_due and bool(self.circle(slot))


def released(record: Record, applied: Applied | None) -> Record:
    """Return a record without the plugins whose exclusive keys it does not have yet.

    What it has and keeps nobody waits for, with whatever configuration, and it goes on guarding requests.
    """
    held, wanted = applied.exclusive_keys if applied else frozenset(), mapping_in(record.body.get("plugins"))
    kept = {name: config for name, config in wanted.items() if taken(record.key.kind, {name: config}) <= held}
    return replace(record, body={**record.body, "plugins": kept})


def _young(written: Mapping[RecordKey, float], now: float) -> dict[RecordKey, float]:
    return {key: at for key, at in written.items() if at + MEMORY_SECONDS > now}
