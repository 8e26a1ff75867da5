"""Everything the sync engine knows about one record in one gateway cluster: `RecordSlot`.

There is no other per-record state; everything else keyed by record is an index over slots. `transitions` defines the
phases; nothing here decides or waits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import orjson

from apisix_ingress.errors import GatewayError
from apisix_ingress.gateway.backend import ObservedRecord
from apisix_ingress.gateway.sync.records.transitions import Phase
from apisix_ingress.model.json import FrozenJson
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.names import is_id_of, truncated
from apisix_ingress.model.records import UNKNOWN, Former, Record

WARN_AFTER = 3
"""Number of consecutive failures after which the status of a record reports them, and deletes stop waiting for it."""

FREE_SECONDS = 1.0
"""Seconds for which a list or read proves that an id is free: the first writes of a term directly follow its list."""

_NO_REFS: frozenset[RecordKey] = frozenset()


@dataclass(frozen=True, slots=True)
class Applied:
    """A record that exists in the gateway: as this process wrote it, or as a list returned it."""

    source: Record | ObservedRecord

    @property
    def refs(self) -> frozenset[RecordKey]:
        """The records that it refers to."""
        return self.source.refs

    @property
    def name(self) -> str:
        """Its name as a gateway returns it, or empty."""
        return truncated(self.source.name)

    @property
    def digest(self) -> bytes:
        """Its comparable form."""
        return self.source.digest

    @property
    def hosts(self) -> tuple[str, ...] | None:
        """The hosts whose requests or TLS handshakes it handles."""
        return self.source.hosts

    @property
    def body(self) -> FrozenJson:
        """Its body, as far as it can be compared."""
        source = self.source
        if isinstance(source, Record):
            return source.body
        found: FrozenJson = orjson.loads(source.digest) if source.digest else {}
        return found

    @property
    def secrets(self) -> tuple[str, ...]:
        """The Secrets that a record names, as namespace/name, if a list returned it."""
        return self.source.secrets if isinstance(self.source, ObservedRecord) else ()

    def matches(self, record: Record) -> bool:
        """Return whether it equals a desired record: byte by byte if this process wrote it, else by digest."""
        source = self.source
        if source is record:
            return True
        if isinstance(source, Record):
            return source.payload == record.payload
        return source.digest == record.digest


@dataclass(frozen=True, slots=True)
class Unknown:
    """A record whose last write may or may not have been carried out.

    Attributes:
        refs: The records that any of its possible bodies refers to.
        name: Its name as a gateway returns it, or empty.
        exists: Whether it certainly exists, in one version or another.
        bodies: The bodies that it may have.
        hosts: None, because they depend on which body it has.
        secrets: Empty, for the same reason.
    """

    refs: frozenset[RecordKey]
    name: str
    exists: bool
    bodies: tuple[FrozenJson, ...] = ()
    hosts: None = None
    secrets: tuple[str, ...] = ()


class Flight(NamedTuple):
    """A write in flight: the record (None: a delete), the start time, and whether it is a closing record."""

    record: Record | None
    started: float
    closes: bool = False


class Write(NamedTuple):
    """An outstanding put. `record` is None if the body is not known; `batch` is the batch in which it was ordered."""

    batch: int
    record: Record | None
    namespace: str


class Delete(NamedTuple):
    """An outstanding delete, and what the owner of the record wanted before."""

    batch: int
    former: Former = UNKNOWN


class Rejection(NamedTuple):
    """A body (None: a delete) that the gateway rejected, with its error; not sent again before `until`."""

    payload: bytes | None
    message: str
    until: float
    tries: int

    def is_of(self, record: Record | None) -> bool:
        """Return whether this write is the rejected one."""
        return self.payload == (record.payload if record is not None else None)


class UnackedWrite(NamedTuple):
    """An unacknowledged write (None: a delete), and until when it may still be carried out."""

    record: Record | None
    until: float


@dataclass(slots=True)
class RecordSlot:
    """Everything known about one record in one cluster. Times are seconds of the monotonic clock.

    Attributes:
        key: The key of the record.
        phase: The phase in `transitions`.
        observed: The record in the gateway; None if there is none, or another client created it.
        is_foreign: Whether the gateway has a record of another client under this key.
        refs: The records that any body it may have refers to.
        revision: The gateway's revision of it when it was last seen after its last write; -1 if not seen since.
        flight: The write in flight.
        ended: The number of flights in the session that had ended when the last flight of this record did.
        order: The outstanding write or delete; deletes wait for a write only while it is counted (`WriteOrder`).
        next_order: The write or delete that was ordered during the flight.
        blocked_on: The record that has to change first.
        blocked_by_rival: Whether it is blocked because an older record wants one of its exclusive keys.
        holder: The record that still had one of its exclusive keys when the gateway rejected it.
        release: Whether to write it without new exclusive keys first (see `unique_keys`).
        released_at: When that was last done.
        urgent: Whether it precedes others when it is queued again.
        error: The last failure; None once a write succeeded or nothing is outstanding.
        failures: The number of writes that failed in a row.
        rejection: The rejected write.
        refused_closings: The payloads of its closing records that were rejected since.
        bucket_full_at: When its token bucket is full again (`rate_limit`).
        unacked: Writes that may still be carried out.
        may_be_overwritten: Until when an earlier, different write may replace it; -inf if none can.
        free_at: When its key was last seen to be free.
        is_held: Whether it is not desired, but must stay for now.
        is_withheld: Whether its deletion was held back.
    """

    key: RecordKey
    phase: Phase = Phase.IDLE
    observed: Applied | Unknown | None = None
    is_foreign: bool = False
    refs: frozenset[RecordKey] = field(default=_NO_REFS)
    revision: int = -1
    flight: Flight | None = None
    ended: int = 0
    order: Write | Delete | None = None
    next_order: Write | Delete | None = None
    blocked_on: RecordKey | None = None
    blocked_by_rival: bool = False
    holder: RecordKey | None = None
    release: bool = False
    released_at: float = -math.inf
    urgent: bool = False
    error: GatewayError | None = None
    failures: int = 0
    rejection: Rejection | None = None
    refused_closings: tuple[bytes, ...] = ()
    bucket_full_at: float = -math.inf
    unacked: tuple[UnackedWrite, ...] = ()
    may_be_overwritten: float = -math.inf
    free_at: float = -math.inf
    is_held: bool = False
    is_withheld: bool = False

    @property
    def applied(self) -> Applied | None:
        """The record as it certainly exists, or None."""
        return self.observed if isinstance(self.observed, Applied) else None

    @property
    def bodies(self) -> tuple[FrozenJson | None, ...]:
        """Every body that it may have; None: it may not exist."""
        known = self.observed
        found: tuple[FrozenJson | None, ...] = (None,)
        if isinstance(known, Applied):
            found = (known.body,)
        elif known is not None:
            found = known.bodies if known.exists else (*known.bodies, None)
        if self.flight is not None:
            found += (self.flight.record.body if self.flight.record is not None else None,)
        return found

    @property
    def exists(self) -> bool:
        """Whether another record may rely on this one: it certainly exists and is not being deleted."""
        known = self.observed
        if known is None:
            return self.is_foreign
        if self.flight is not None and self.flight.record is None:
            return False
        return isinstance(known, Applied) or known.exists

    @property
    def is_uncertain(self) -> bool:
        """Whether it may differ from what is expected because an earlier write was not acknowledged."""
        return bool(self.unacked) or self.may_be_overwritten > -math.inf

    @property
    def persistent_error(self) -> GatewayError | None:
        """The last error, if the record has failed too often for others to wait for it."""
        return self.error if self.failures >= WARN_AFTER else None

    @property
    def namespace(self) -> str:
        """The namespace of the owner that caused its order; empty if unknown or if there is no order."""
        if isinstance(self.order, Write):
            return self.order.namespace
        return self.order.former.namespace if self.order is not None else ""

    def names(self) -> tuple[str, ...]:
        """Return the names under which an owned record exists, or may exist; a name that the gateway omits is empty."""
        flying = self.flight.record if self.flight is not None else None
        found = (self.observed.name if self.observed else None, truncated(flying.name) if flying else None)
        return tuple(name for name in found if name is not None)

    def is_of_another(self, name: str) -> bool:
        """Return whether the existing record was generated for another name whose short id is the same."""
        other = self.observed.name if self.observed is not None else ""
        return bool(other) and other != truncated(name) and is_id_of(self.key.id, other)

    def rejected(self, record: Record | None) -> str | None:
        """Return why this write was rejected, or None if it was not."""
        entry = self.rejection
        return entry.message if entry is not None and entry.is_of(record) else None

    def expire(self, now: float) -> bool:
        """Drop what has expired; return whether nothing is left that may expire."""
        if self.bucket_full_at <= now:
            self.bucket_full_at = -math.inf
        if self.free_at < now - FREE_SECONDS:
            self.free_at = -math.inf
        if self.unacked and self.flight is None:  # a flight may have begun before one of them expired
            self.unacked = tuple(each for each in self.unacked if each.until > now)
        return (
            self.bucket_full_at == self.free_at == -math.inf
            and not self.is_uncertain
            and self.rejection is None
            and not self.is_held
        )

    @property
    def is_empty(self) -> bool:
        """Whether the slot can be dropped, provided that `expire` returned True."""
        at_rest = self.phase is Phase.IDLE and self.flight is None and self.holder is None and self.error is None
        return at_rest and self.observed is None and not self.is_foreign and not self.is_withheld
