"""Exclusive keys: values that only one record may have, such as a plugin of global rules or a credential of consumers.

A gateway checks its memory for another record with the key, and its memory lags behind its store, so it would accept
concurrent writes with the same key. Such writes are therefore sent one after the other, the oldest owner first. A
record is rejected while another one still has the key, and retried once the other one has been written. If records wait
for each other in a cycle, one of them is first written without its new keys (it *releases* its keys), then as desired.
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
"""Seconds until a written record is in a gateway's memory, which usually takes milliseconds."""

RELEASE_INTERVAL = 60.0
"""Seconds between two releases of one record, if the first one did not help."""


class UniqueKeys:
    """The order of writes that want the same exclusive keys, and the delays between them."""

    def __init__(self, cluster: str, wanted: Wanted, table: RecordTable, order: WriteOrder) -> None:
        self._cluster = cluster
        self._wanted = wanted
        self._table = table
        self._order = order
        # Exclusive key → the records that it was recently given to, and when. `prune` drops expired entries.
        self._written: dict[tuple[RecordKind, tuple[str, str]], dict[RecordKey, float]] = {}

    def rival(self, record: Record) -> RecordKey | None:
        """Return a record whose write has to end before the write of this record may begin, or None.

        Records that are not in flight form a queue, in which each waits for its predecessor: when a write ends, one
        record is checked again, not thousands that want the same key.
        """
        for other, slot in self._table.in_flight.items():
            # The flight may differ from what is desired now.
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
        """Return the seconds until the gateway's memory contains the records that got the keys recently."""
        # Including records that want other keys now: if they do not get these, they keep what they have.
        given = (self._written.get((record.key.kind, each), {}) for each in record.takes)
        times = (at for each in given for other, at in each.items() if other != record.key)
        return max(times, default=-math.inf) + MEMORY_SECONDS - now

    def written(self, record: Record, now: float) -> None:
        """Record that a record was written, or may have been."""
        for each in record.takes:
            self._written.setdefault((record.key.kind, each), {})[record.key] = now

    def prune(self, now: float) -> None:
        """Forget writes that are in the gateway's memory by now."""
        self._written = {each: recent for each, given in self._written.items() if (recent := _recent(given, now))}

    def cycle(self, slot: RecordSlot) -> tuple[RecordSlot, ...]:
        """Return the records of the cycle of waiting records that this one belongs to; empty if there is none."""
        seen: dict[RecordKey, RecordSlot] = {}
        holder = slot.holder
        while holder is not None and holder not in seen:
            other = seen[holder] = self._table.get(holder)
            holder = other.holder
        return tuple(seen.values()) if slot.key in seen else ()

    def may_release(self, slot: RecordSlot, now: float) -> bool:
        """Return whether a record keeps failing in a cycle, and has not recently released its keys."""
        is_due = slot.persistent_error is not None and now - slot.released_at >= RELEASE_INTERVAL
        return is_due and bool(self.cycle(slot))


def without_new_keys(record: Record, applied: Applied | None) -> Record:
    """Return a record without the plugins whose exclusive keys it does not have yet.

    Plugins whose keys it has stay, with their new configuration: no other record waits for them.
    """
    held, wanted = applied.source.takes if applied else frozenset(), mapping_in(record.body.get("plugins"))
    kept = {name: config for name, config in wanted.items() if taken(record.key.kind, {name: config}) <= held}
    return replace(record, body={**record.body, "plugins": kept})


def _recent(written: Mapping[RecordKey, float], now: float) -> dict[RecordKey, float]:
    return {key: at for key, at in written.items() if at + MEMORY_SECONDS > now}
