"""All slots of one gateway cluster, with indexes over them.

While a write is in flight, both the old and the new body are taken into account: for records that must not be deleted,
and for records that others must not rely on. Nothing here decides what to write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from apisix_ingress.gateway.backend import ObservedRecord
from apisix_ingress.gateway.sync.records.slot import Applied, Flight, RecordSlot, Unknown
from apisix_ingress.model.json import FrozenJson
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.names import truncated
from apisix_ingress.model.records import Record

_NO_REFS: frozenset[RecordKey] = frozenset()

Links = dict[RecordKey, dict[RecordKey, None]]
"""Record → the records that point to it, in insertion order."""


class RecordTable:
    """The slots of one cluster by key. A record without a slot does not exist, and nothing is outstanding for it.

    Attributes:
        in_flight: The slots with a write in flight.
        blocked: Record → the records that wait for it (index of `RecordSlot.blocked_on`).
        successors: Record → the records that are to get one of its exclusive keys (index of `RecordSlot.holder`).
        timed: The slots with something that expires or becomes due.
        ended: The number of flights that have ended.
    """

    def __init__(self) -> None:
        self._slots: dict[RecordKey, RecordSlot] = {}
        self._referrers: Links = {}
        self.in_flight: dict[RecordKey, RecordSlot] = {}
        self.blocked: Links = {}
        self.successors: Links = {}
        self.timed: dict[RecordKey, RecordSlot] = {}
        self.ended = 0

    def __iter__(self) -> Iterator[RecordSlot]:
        """Yield all slots."""
        return iter(self._slots.values())

    def get(self, key: RecordKey) -> RecordSlot:
        """Return the slot of a record to read; an empty one, which is not stored, if it has none."""
        return self._slots.get(key) or RecordSlot(key)

    def slot(self, key: RecordKey) -> RecordSlot:
        """Return the slot of a record to change; an empty one is stored if it has none."""
        slot = self._slots.get(key)
        if slot is None:
            slot = self._slots[key] = RecordSlot(key)
        return slot

    def tick(self, now: float) -> Iterator[RecordSlot]:
        """Drop what has expired, and empty slots; yield the remaining slots in `timed`."""
        for key, slot in list(self.timed.items()):
            if not slot.expire(now):
                yield slot
            elif slot.flight is None:
                del self.timed[key]
                if slot.is_empty:
                    self._slots.pop(key, None)

    # Records in the gateway.

    def records(self) -> set[RecordKey]:
        """Return the keys of all owned records that exist or may exist."""
        return {key for key, slot in self._slots.items() if slot.observed is not None}

    def referrers(self, key: RecordKey) -> Iterable[RecordKey]:
        """Return the records that refer to this one, or may refer to it."""
        return self._referrers.get(key, ())

    # Writes.

    def write_started(self, slot: RecordSlot, record: Record | None, now: float = 0.0, *, closes: bool = False) -> None:
        """Record that a write (None: a delete) starts: from now on both bodies are taken into account."""
        slot.flight = Flight(record, now, closes)
        slot.revision = -1
        self.in_flight[slot.key] = slot
        if record is not None:
            self._refer(slot, slot.refs | record.refs if slot.refs else record.refs)

    def write_succeeded(self, slot: RecordSlot) -> None:
        """Record that the write was carried out."""
        record = self._end_flight(slot).record
        slot.observed = None if record is None else Applied(record)
        self._refer(slot, _NO_REFS if record is None else record.refs)

    def write_failed(self, slot: RecordSlot) -> None:
        """Record that the write was certainly not carried out."""
        self._end_flight(slot)
        self._refer(slot, slot.observed.refs if slot.observed is not None else _NO_REFS)

    def write_unknown(self, slot: RecordSlot) -> None:
        """Record that the write may have been carried out."""
        existed, bodies = slot.exists, tuple(body for body in slot.bodies if body is not None)
        record, known = self._end_flight(slot).record, slot.observed
        name = truncated(record.name) if record is not None else known.name if known is not None else ""
        slot.observed = Unknown(slot.refs, name, existed and record is not None, _distinct(bodies))

    def _end_flight(self, slot: RecordSlot) -> Flight:
        flight, slot.flight = slot.flight, None
        assert flight is not None
        del self.in_flight[slot.key]
        self.ended += 1
        slot.ended = self.ended
        self.timed[slot.key] = slot
        return flight

    def compare_by_digest(self, slot: RecordSlot) -> None:
        """Compare a record as if a list had returned it: its body was not translated, so its bytes may differ."""
        if (known := slot.applied) is not None:
            slot.observed = Applied(ObservedRecord(known.digest, known.refs, known.name))

    # Lists.

    def found(self, slot: RecordSlot, found: ObservedRecord) -> None:
        """Record what a list or read returned for an owned record."""
        known = slot.applied
        slot.is_foreign = False
        slot.revision = found.revision
        if known is None or known.digest != found.digest:
            slot.observed = Applied(found)
            self._refer(slot, found.refs)

    def missing(self, slot: RecordSlot) -> None:
        """Record that a list does not contain an owned record."""
        slot.observed = None
        slot.is_foreign = False
        self._refer(slot, _NO_REFS)
        self.timed[slot.key] = slot

    def foreign(self, slot: RecordSlot) -> None:
        """Record that another client has created a record under this key."""
        self.missing(slot)
        slot.is_foreign = True

    def reported_missing(self, slot: RecordSlot) -> None:
        """Record that the gateway did not find a record that was believed to exist."""
        slot.is_foreign = False
        known = slot.applied
        if known is not None:
            slot.observed = Unknown(known.refs, known.name, exists=False, bodies=(known.body,))

    # Records that must stay, whatever their phase is.

    def hold(self, slot: RecordSlot) -> None:
        """Record that a record is not desired, but has to stay for now; `tick` yields it until it is released."""
        slot.is_held = True
        self.timed[slot.key] = slot

    def set_withheld(self, slot: RecordSlot, *, is_withheld: bool) -> None:
        """Record whether the deletion of a record is held back: an audit found an unusual number of deletes."""
        slot.is_withheld = is_withheld
        self.timed[slot.key] = slot  # it may be empty now

    # Links between records.

    def block(self, slot: RecordSlot, on: RecordKey) -> None:
        """Record that a record waits for another one."""
        self.unblock(slot)
        slot.blocked_on = on
        self.blocked.setdefault(on, {})[slot.key] = None

    def unblock(self, slot: RecordSlot) -> None:
        """Record that a record waits for no other one."""
        _unlink(self.blocked, slot.blocked_on, slot.key)
        slot.blocked_on, slot.blocked_by_rival = None, False

    def set_holder(self, slot: RecordSlot, holder: RecordKey | None) -> None:
        """Record which record still has an exclusive key of this one; None if unknown."""
        _unlink(self.successors, slot.holder, slot.key)
        slot.holder = holder
        if holder is not None:
            self.successors.setdefault(holder, {})[slot.key] = None

    def _refer(self, slot: RecordSlot, refs: frozenset[RecordKey]) -> None:
        """Set the records that the bodies of a record refer to."""
        before, slot.refs = slot.refs, refs
        if before == refs:
            return
        for ref in before - refs:
            _unlink(self._referrers, ref, slot.key)
        for ref in refs - before:
            self._referrers.setdefault(ref, {})[slot.key] = None


def _distinct(bodies: tuple[FrozenJson, ...]) -> tuple[FrozenJson, ...]:
    """Return bodies without repetitions: a write may be repeated often."""
    return tuple(body for place, body in enumerate(bodies) if body not in bodies[:place])


def _unlink(links: Links, to: RecordKey | None, key: RecordKey) -> None:
    if to is None:
        return
    others = links[to]
    del others[key]
    if not others:
        del links[to]
