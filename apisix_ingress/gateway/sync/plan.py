"""Plans the writes to a gateway cluster: the difference between desired and existing records. Pure functions.

Make before break: a record is written once all records that it refers to exist, and deleted once no record refers to
it. An id passes from one name to another only when no record refers to the former name by it. `decide` decides about
one record at the moment when it could be written; a `Plan` has the decisions about many, in the order of the writes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal, NamedTuple, Protocol

from apisix_ingress.gateway.sync.records.slot import Applied, Unknown
from apisix_ingress.gateway.sync.records.table import RecordTable
from apisix_ingress.model.keys import RecordKey, RecordKind
from apisix_ingress.model.record_owner import source_of
from apisix_ingress.model.records import UPSERT_RANK, Record

UNUSUAL_SHARE = 0.3
UNUSUAL_COUNT = 20
"""A sweep is held back if it would delete more than both, of records that were never desired in this process."""

FOREIGN_REMEDY = "another client created the record with this id, so it is not overwritten: delete it in the gateway"

_ID = attrgetter("id")

Act = Literal["nothing", "put", "delete", "wait", "hold", "refuse", "close"]
IsHeld = Callable[[RecordKey, str, tuple[str, ...] | None, tuple[str, ...]], bool]
IsRefused = Callable[[RecordKey, str], bool]
WantedAt = Callable[[RecordKey], Record | None]


class Wanted(Protocol):
    """The part of the desired records that the engine reads."""

    def get(self, key: RecordKey, cluster: str) -> Record | None:
        """Return the record that a cluster should have under a key, or None."""

    def namespace(self, key: RecordKey, cluster: str) -> str:
        """Return the namespace of a desired record's owner; empty if it has none or the record is not desired."""

    def is_held(self, key: RecordKey, name: str, hosts: tuple[str, ...] | None, sources: tuple[str, ...]) -> bool:
        """Return whether a record that is not desired must stay."""

    def is_refused(self, key: RecordKey, name: str) -> bool:
        """Return whether the object of a record that is not desired explains its deletion."""

    def keys(self) -> Iterable[RecordKey]:
        """Return the keys of all desired records, of any cluster."""

    def counts(self, cluster: str) -> Counter[RecordKind]:
        """Return how many records of each kind a cluster should have."""

    def older_takers(self, key: RecordKey, cluster: str) -> Iterator[RecordKey]:
        """Yield records of older owners that may want the same exclusive keys, the youngest owner first."""


class Step(NamedTuple):
    """What to do about one record.

    Attributes:
        act: nothing; put; delete; wait for another record; hold: it stays although it differs; refuse: it is desired,
            but must not be written; close: it cannot be written, so its closing record is (`closing`).
        record: The desired record, or its closing record; None if the existing one is to be deleted, also to free its
            id.
        on: The record to wait for.
    """

    act: Act
    record: Record | None = None
    on: RecordKey | None = None


NOTHING = Step("nothing")
HOLD = Step("hold")
DELETE = Step("delete")


@dataclass(frozen=True, slots=True)
class Plan:
    """The records to write and to delete in a cluster, each in the order of their requests."""

    upserts: tuple[RecordKey, ...] = ()
    deletes: tuple[RecordKey, ...] = ()
    held: tuple[RecordKey, ...] = ()
    refused: tuple[RecordKey, ...] = ()

    @classmethod
    def of(cls, steps: Iterable[tuple[RecordKey, Step]], wanted_at: WantedAt) -> Plan:
        """Return the plan of decisions about many records; records that have to wait have their place in it as well.

        Args:
            steps: What to do about each record.
            wanted_at: Returns the record that the cluster should have under a key, or None.
        """
        found: dict[Act, list[RecordKey]] = {"put": [], "delete": [], "hold": [], "refuse": [], "nothing": []}
        for key, step in steps:
            act = step.act
            if act in ("wait", "delete", "close"):
                act = "put" if wanted_at(key) is not None else "delete"
            found[act].append(key)
        return cls(
            tuple(_in_order(found["put"], 1)),
            tuple(in_order_of_deletes(found["delete"])),
            tuple(found["hold"]),
            tuple(found["refuse"]),
        )


def decide(key: RecordKey, wanted_at: WantedAt, table: RecordTable, is_held: IsHeld) -> Step:
    """Return what to do about one record now.

    Args:
        key: The record.
        wanted_at: Returns the record that the cluster should have under a key, or None.
        table: What the cluster has.
        is_held: Whether a record that is not desired must stay; called with its key, name, hosts, and the objects that
            it was generated from.
    """
    record = wanted_at(key)
    if record is None:
        return _removal(key, table, is_held=is_held, wanted_at=wanted_at)
    return _upsert(key, record, table, is_held=is_held, wanted_at=wanted_at)


def must_stay(key: RecordKey, wanted_at: WantedAt, table: RecordTable, is_held: IsHeld) -> bool:
    """Return whether a record that exists, but is not desired, must stay; the arguments are those of `decide`."""
    slot = table.get(key)
    if (known := slot.observed) is None:
        return False
    return slot.is_withheld or is_held(key, known.name, known.hosts, tuple(_sources(known, wanted_at, table)))


def _sources(known: Applied | Unknown, wanted_at: WantedAt, table: RecordTable) -> Iterator[str]:
    """Yield the objects (namespace/name) that a record was generated from, as far as the gateway shows them.

    They are the Secrets that its labels name, the owners of the records that it refers to, and the Secrets of those
    records unless they are about to get their desired body.
    """
    yield from known.secrets
    for ref in known.refs:
        if (found := table.get(ref).observed) is not None:
            if source := source_of(ref.kind, found.name):
                yield source
            if found.secrets and wanted_at(ref) is None:
                yield from found.secrets


def unusual(deletes: Iterable[RecordKey], known: Collection[RecordKey], owned: int) -> frozenset[RecordKey]:
    """Return the deletes to hold back: none, or those of all records that were never desired in this process.

    A large number at once is more often caused by incomplete lists or a wrong setting than intended.

    Args:
        deletes: The records that a sweep would delete.
        known: Records that were desired at any time since this process started: the deletion of their objects was seen.
        owned: The number of owned records in the cluster.
    """
    orphans = frozenset(key for key in deletes if key not in known)
    return orphans if len(orphans) > max(UNUSUAL_COUNT, UNUSUAL_SHARE * owned) else frozenset()


def explained(deletes: Iterable[RecordKey], table: RecordTable, is_refused: IsRefused) -> frozenset[RecordKey]:
    """Return the deletes that listed objects explain: settings refuse their records, or nothing else refers to them.

    Args:
        deletes: In the order of requests: records before the records that they refer to.
        table: What the cluster has.
        is_refused: Whether the object of a record explains its deletion; called with its key and name.
    """
    found: set[RecordKey] = set()
    for key in deletes:
        known, referrers = table.get(key).observed, [*table.referrers(key)]
        if (referrers and found.issuperset(referrers)) or (known is not None and is_refused(key, known.name)):
            found.add(key)
    return frozenset(found)


def _upsert(key: RecordKey, record: Record, table: RecordTable, *, is_held: IsHeld, wanted_at: WantedAt) -> Step:
    slot = table.get(key)
    if (applied := slot.applied) is not None and applied.matches(record):
        return NOTHING
    if slot.is_foreign:
        return Step("refuse", record)
    if slot.is_of_another(record.name):
        step = _vacate(key, record, table, is_held=is_held, wanted_at=wanted_at)
        if step is not None:
            return step
    if record.existing_only and not slot.exists:
        return NOTHING
    missing = [ref for ref in record.refs if not _is_there(ref, record, table)]
    # The smallest key, so that every replica names the same one in the condition of an object.
    return Step("wait", record, min(missing)) if missing else Step("put", record)


def _is_there(ref: RecordKey, record: Record, table: RecordTable) -> bool:
    """Return whether a record may rely on another one: it exists, and under the name that is meant."""
    slot = table.get(ref)
    return slot.exists and not (ref in record.meant and slot.is_of_another(record.meant[ref]))


def _vacate(key: RecordKey, record: Record, table: RecordTable, *, is_held: IsHeld, wanted_at: WantedAt) -> Step | None:
    """Return what has to be done before a record takes the id of another name; None: it may be written.

    Records that refer to this id may mean the other name. So the existing record is deleted first, so that the gateway
    can reject the delete if records of other clients refer to it. It is overwritten only if every record that refers
    to it is to mean the new name, as in a gateway that was restored from a backup.
    """
    if record.existing_only:
        return NOTHING
    if must_stay(key, wanted_at, table, is_held):
        return Step("hold", record)
    is_meant = False
    for referrer in table.referrers(key):
        wanted = wanted_at(referrer)
        if wanted is None or key not in wanted.refs or wanted.meant.get(key, record.name) != record.name:
            return Step("wait", record, referrer)
        is_meant = True
    return None if is_meant else DELETE


def _removal(key: RecordKey, table: RecordTable, *, is_held: IsHeld, wanted_at: WantedAt) -> Step:
    if table.get(key).observed is None:
        return NOTHING
    if must_stay(key, wanted_at, table, is_held):
        return HOLD
    referrer = next(iter(table.referrers(key)), None)
    return DELETE if referrer is None else Step("wait", None, referrer)


def in_order_of_deletes(keys: Iterable[RecordKey]) -> list[RecordKey]:
    """Return keys in the order of deletes: records before the records that they refer to."""
    return _in_order(keys, -1)


def _in_order(keys: Iterable[RecordKey], sign: int) -> list[RecordKey]:
    """Return keys by the rank of their kind. Sorting each kind separately takes a third of the time."""
    kinds: defaultdict[RecordKind, list[RecordKey]] = defaultdict(list)
    for key in keys:
        kinds[key.kind].append(key)
    ranked = sorted(kinds, key=lambda kind: (sign * UPSERT_RANK[kind], kind))
    return [key for kind in ranked for key in sorted(kinds[kind], key=_ID)]
