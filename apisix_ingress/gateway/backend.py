"""The interface between the sync engine and a gateway cluster; `adminapi` and `standalone` implement it."""

from __future__ import annotations

from collections.abc import Collection, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from apisix_ingress.errors import GatewayUnavailable
from apisix_ingress.model.keys import RECORD_KINDS, RecordKey, RecordKind
from apisix_ingress.model.records import Record


class DependencyPending(GatewayUnavailable):
    """The gateway rejected a write because of another record; body and cluster are not the cause.

    Either a referenced record is missing, or a record that refers to this one is still in the gateway's memory, which
    lags behind its store (contract: Admin API facts 11 and 12), or another record still has an exclusive key of this
    one (fact 14).

    Attributes:
        missing: The referenced record that the gateway does not find, if that is the cause.
        holder: The record that still has the exclusive key, if that is the cause.
    """

    def __init__(self, message: str, *, missing: RecordKey | None = None, holder: RecordKey | None = None) -> None:
        super().__init__(message, status=400, sent=False)
        self.missing = missing
        self.holder = holder


class NotTried(GatewayUnavailable):
    """A write was not sent, for a reason outside the gateway.

    Attributes:
        at_once: Whether to retry it without a delay.
    """

    def __init__(self, message: str, *, at_once: bool = False) -> None:
        super().__init__(message, sent=False)
        self.at_once = at_once


@dataclass(frozen=True, slots=True)
class ObservedRecord:
    """A record as a gateway has it.

    Attributes:
        digest: `records.comparable` of its body.
        refs: The records that it refers to.
        name: Its `name`, or empty.
        takes: Its exclusive keys: no other record of its kind may have them at the same time.
        revision: The etcd revision of its last write (`modifiedIndex`); 0 if the gateway does not return it.
        hosts: The hosts whose requests or TLS handshakes it handles.
        ours: Whether its labels name this controller as its creator.
        secrets: The Secrets that its labels name, as namespace/name.
        created: When it was created, in seconds since 1970 by the gateway's clock; 0 if the gateway does not return it.
        updated: When it was last written, in the same form.
    """

    digest: bytes
    refs: frozenset[RecordKey] = frozenset()
    name: str = ""
    takes: frozenset[tuple[str, str]] = frozenset()
    revision: int = field(default=0, compare=False)
    hosts: tuple[str, ...] = field(default=(), compare=False)
    ours: bool = field(default=True, compare=False)
    secrets: tuple[str, ...] = field(default=(), compare=False)
    created: int = field(default=0, compare=False)
    updated: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ClusterListing:
    """All records of a gateway cluster.

    Attributes:
        owned: The records that this controller created.
        foreign: Keys of all others, which must not be written or deleted.
        unclaimed: Records of kinds without labels that are not in the ledger. Desired ones are taken over,
            because 1.8 kept no ledger. The others must not be written or deleted.
        disabled: Kinds that this gateway does not serve.
        version: The `Server` header of the gateway, or empty.
        lacks_ledger: The ledger could not be read, so records of kinds without labels may be missing from `owned`.
    """

    owned: Mapping[RecordKey, ObservedRecord] = field(default_factory=dict)
    foreign: frozenset[RecordKey] = frozenset()
    unclaimed: Mapping[RecordKey, ObservedRecord] = field(default_factory=dict)
    disabled: frozenset[RecordKind] = frozenset()
    version: str = ""
    lacks_ledger: bool = False


class Fence(Protocol):
    """The right to write during a term of leadership; `runtime.term.Term` is one."""

    def check(self, seconds: float = 0.0) -> None:
        """Raise LeadershipLost unless the term lasts longer than `seconds`, the timeout of the write to start."""


class Backend(Protocol):
    """One gateway cluster. Every call ends, and raises a GatewayError if it fails.

    `timeout` limits every call except a list, which has its own limit for each kind.

    A write returns whether an earlier copy of it was cut off and may still be carried out.

    An error's `sent` says whether the gateway may have carried out the call nevertheless. A cancelled call may have
    been carried out as well.
    """

    @property
    def timeout(self) -> float:
        """The maximum duration of a `put` or `delete` in seconds."""

    def attend(self, term: Fence) -> Coroutine[Any, Any, None]:
        """Begin a term; return what has to run during the term beside the other calls, until it is cancelled.

        What other terms have read is forgotten at once.
        """

    async def list_managed(
        self, ledger: Collection[RecordKey], kinds: Collection[RecordKind] = RECORD_KINDS
    ) -> ClusterListing:
        """Read every record of some kinds. A record is owned if it has the labels, or is in the ledger.

        The ledger is for records that cannot have labels, or whose labels someone removed.
        """

    async def put(self, record: Record) -> bool:
        """Create or replace a record."""

    async def delete(self, key: RecordKey) -> bool:
        """Delete a record, without `force`; a missing record is not an error."""

    async def read(self, path: str) -> bytes:
        """Return the response for a path that is not a record, such as `schema/route`."""

    async def get(self, key: RecordKey) -> ObservedRecord | None:
        """Read one record, owned or not; None if it does not exist."""

    async def filled(self) -> None:
        """Return, in a term, once gateways have the records whose writes have ended; until then they may have none."""

    async def probe(self) -> None:
        """Check with a cheap request whether the cluster serves calls."""

    def credentials_changed(self) -> bool:
        """Return whether the credentials have changed since the last call used them."""
