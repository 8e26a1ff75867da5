"""What one gateway cluster is known or believed to hold, and which of its records name which others.

A record is *applied* when a reply or a list said so, *unknown* while a write of it was lost, *flying* while a write is
under way. A lost write may have been carried out: both the old and the new body then count, for what must not be
deleted and for what must not be relied on. Nothing here decides what to write.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from apisix_ingress.gateway.backend import ObservedRecord
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.names import is_id_of, told
from apisix_ingress.model.records import Record

_NO_REFS: frozenset[RecordKey] = frozenset()


@dataclass(frozen=True, slots=True)
class Applied:
    """A record that is there: as this process wrote it, or as a list showed it."""

    source: Record | ObservedRecord

    @property
    def refs(self) -> frozenset[RecordKey]:
        """The records that it names."""
        return self.source.refs

    @property
    def name(self) -> str:
        """Its name as a gateway tells it, or empty."""
        return told(self.source.name)

    @property
    def digest(self) -> bytes:
        """Its comparable form."""
        return self.source.digest

    @property
    def takes(self) -> frozenset[tuple[str, str]]:
        """What no other record of its kind may have while it has it."""
        return self.source.takes

    @property
    def hosts(self) -> tuple[str, ...] | None:
        """The hosts that it takes requests or handshakes for."""
        return self.source.hosts

    def matches(self, record: Record) -> bool:
        """Say whether it is what is wanted: to the byte if we wrote it, else as far as a gateway shows it."""
        source = self.source
        if source is record:
            return True
        if isinstance(source, Record):
            return source.payload == record.payload
        return source.digest == record.digest


@dataclass(frozen=True, slots=True)
class Unknown:
    """A record of which a write was lost.

    Attributes:
        refs: What any of its possible bodies names.
        name: Its name as a gateway tells it, or empty.
        exists: Whether it is there for certain, in one version or another.
        hosts: None: those of any of its possible bodies.
    """

    refs: frozenset[RecordKey]
    name: str
    exists: bool
    hosts: None = None


class ObservedState:
    """Applied, unknown and flying records of one cluster. A key is applied or unknown or neither."""

    def __init__(self) -> None:
        self.applied: dict[RecordKey, Applied] = {}
        self.unknown: dict[RecordKey, Unknown] = {}
        self.flying: dict[RecordKey, Record | None] = {}
        """Writes under way; None stands for a delete."""
        self.foreign: set[RecordKey] = set()
        self._refs: dict[RecordKey, frozenset[RecordKey]] = {}
        self._referrers: dict[RecordKey, dict[RecordKey, None]] = {}

    def records(self) -> set[RecordKey]:
        """Return the keys of all records of ours that are there or may be."""
        return {*self.applied, *self.unknown}

    def get(self, key: RecordKey) -> Applied | Unknown | None:
        """Return what is known of a record."""
        return self.applied.get(key) or self.unknown.get(key)

    def exists(self, key: RecordKey) -> bool:
        """Say whether another record may rely on this one: it is there for certain, and not being deleted."""
        if key in self.flying and self.flying[key] is None:
            return False
        if key in self.applied or key in self.foreign:
            return True
        unknown = self.unknown.get(key)
        return unknown is not None and unknown.exists

    def names(self, key: RecordKey) -> tuple[str, ...]:
        """Return the names under which a record of ours is there, or may be; one that nothing tells is empty."""
        known, flying = self.get(key), self.flying.get(key)
        found = (known.name if known is not None else None, told(flying.name) if flying is not None else None)
        return tuple(name for name in found if name is not None)

    def is_of_another(self, key: RecordKey, name: str) -> bool:
        """Say whether the record that is there was made for another name: one whose short id is the same."""
        known = self.get(key)
        other = known.name if known is not None else ""
        return bool(other) and other != told(name) and is_id_of(key.id, other)

    def referrers(self, key: RecordKey) -> Iterable[RecordKey]:
        """Return the records that name this one, or may name it."""
        return self._referrers.get(key, ())

    def referrer(self, key: RecordKey) -> RecordKey | None:
        """Return a record that names this one, or may name it; None if there is none."""
        return next(iter(self.referrers(key)), None)

    # Writes.

    def take_off(self, key: RecordKey, record: Record | None) -> None:
        """Note that a write starts: from now on both bodies count."""
        self.flying[key] = record
        if record is not None:
            before = self._refs.get(key, _NO_REFS)
            self._count(key, before | record.refs if before else record.refs)

    def landed(self, key: RecordKey) -> None:
        """Note that the write was carried out."""
        record = self.flying.pop(key)
        self.unknown.pop(key, None)
        if record is None:
            self.applied.pop(key, None)
            self._count(key, _NO_REFS)
        else:
            self.applied[key] = Applied(record)
            self._count(key, record.refs)

    def refused(self, key: RecordKey) -> None:
        """Note that the write was certainly not carried out."""
        del self.flying[key]
        known = self.get(key)
        self._count(key, known.refs if known else _NO_REFS)

    def lost(self, key: RecordKey) -> None:
        """Note that nobody knows whether the write was carried out."""
        record = self.flying.pop(key)
        known = self.get(key)
        existed = self.exists(key)
        name = told(record.name) if record is not None else known.name if known else ""
        self.applied.pop(key, None)
        self.unknown[key] = Unknown(self._refs.get(key, _NO_REFS), name, existed and record is not None)

    # Lists.

    def observe(self, key: RecordKey, found: ObservedRecord) -> bool:
        """Take over what a list shows of a record; say whether it is news."""
        known = self.applied.get(key)
        self.unknown.pop(key, None)
        self.foreign.discard(key)
        if known is not None and known.digest == found.digest:
            return False
        self.applied[key] = Applied(found)
        self._count(key, found.refs)
        return True

    def vanished(self, key: RecordKey) -> None:
        """Note that a list does not show a record (any more)."""
        self.applied.pop(key, None)
        self.unknown.pop(key, None)
        self._count(key, _NO_REFS)

    def doubt(self, key: RecordKey) -> None:
        """Note that the gateway does not find a record that was taken to be there."""
        self.foreign.discard(key)
        known = self.applied.pop(key, None)
        if known is not None:
            self.unknown[key] = Unknown(known.refs, known.name, exists=False)

    def _count(self, key: RecordKey, refs: frozenset[RecordKey]) -> None:
        """Make the index of referrers follow."""
        before = self._refs.get(key, _NO_REFS)
        if before == refs:
            return
        for ref in before - refs:
            referrers = self._referrers[ref]
            del referrers[key]
            if not referrers:
                del self._referrers[ref]
        for ref in refs - before:
            self._referrers.setdefault(ref, {})[key] = None
        if refs:
            self._refs[key] = refs
        else:
            self._refs.pop(key, None)
