"""What the sync engine asks of a gateway cluster, and the answers. How the cluster is talked to lives elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from apisix_ingress.errors import GatewayUnavailable
from apisix_ingress.model.keys import RECORD_KINDS, RecordKey, RecordKind
from apisix_ingress.model.records import Record


class DependencyPending(GatewayUnavailable):
    """The gateway refuses a write for the sake of another record; it says nothing about the body or the cluster.

    Either a record that this one names is not there, or one that names this one is still in the gateway's memory,
    which lags behind its store (contract: Admin API facts 11 and 12), or another one still has what this one takes over
    (fact 14).

    Attributes:
        missing: The named record that the gateway does not find, if it is that.
        holder: The record that still has what this one takes over, if it is that.
    """

    def __init__(self, message: str, *, missing: RecordKey | None = None, holder: RecordKey | None = None) -> None:
        super().__init__(message, status=400, sent=False)
        self.missing = missing
        self.holder = holder


class NotTried(GatewayUnavailable):
    """A write was not sent, for a reason outside the gateway.

    Attributes:
        at_once: Whether to try it again without a pause.
    """

    def __init__(self, message: str, *, at_once: bool = False) -> None:
        super().__init__(message, sent=False)
        self.at_once = at_once


@dataclass(frozen=True, slots=True)
class ObservedRecord:
    """One record of ours as a gateway holds it.

    Attributes:
        digest: `records.comparable` of its body.
        refs: The records that it names.
        name: Its `name`, or empty.
        takes: What no other record of its kind may have while it has it.
        revision: When it was last written, in revisions of etcd (`modifiedIndex`); 0: the gateway does not say.
        hosts: The hosts that it takes requests or handshakes for.
        ours: Whether its labels say that it is ours.
    """

    digest: bytes
    refs: frozenset[RecordKey] = frozenset()
    name: str = ""
    takes: frozenset[tuple[str, str]] = frozenset()
    revision: int = field(default=0, compare=False)
    hosts: tuple[str, ...] = field(default=(), compare=False)
    ours: bool = field(default=True, compare=False)


@dataclass(frozen=True, slots=True)
class ClusterListing:
    """Everything that a gateway cluster holds.

    Attributes:
        owned: The records of ours.
        foreign: Keys of all others; never to be written or deleted.
        unclaimed: Records of kinds without labels that the ledger does not name. One that is wanted is ours: a gateway
            that the 1.8 line filled has no ledger. The others must not be touched.
        disabled: Kinds that this gateway does not serve.
        version: What the gateway calls itself, or empty.
    """

    owned: Mapping[RecordKey, ObservedRecord] = field(default_factory=dict)
    foreign: frozenset[RecordKey] = frozenset()
    unclaimed: Mapping[RecordKey, ObservedRecord] = field(default_factory=dict)
    disabled: frozenset[RecordKind] = frozenset()
    version: str = ""


class Backend(Protocol):
    """One gateway cluster. Every call ends, and raises a GatewayError if it did not succeed.

    A list may take longer than `timeout`, which bounds the other calls: it has a bound of its own for each kind.

    A write returns whether an earlier copy of it was cut off, and may be carried out again later.

    An error's `sent` says whether the gateway may have carried the call out all the same. A cancelled call may have
    been carried out.
    """

    @property
    def timeout(self) -> float:
        """Seconds that a `put` or `delete` takes at most."""

    async def list_managed(
        self, ledger: Collection[RecordKey], kinds: Collection[RecordKind] = RECORD_KINDS
    ) -> ClusterListing:
        """Read every record of some kinds. A record is ours if its labels say so, or if the ledger names it.

        The ledger is for records that can't carry labels, or that lost them behind our back.
        """

    async def put(self, record: Record) -> bool:
        """Create or replace a record."""

    async def delete(self, key: RecordKey) -> bool:
        """Delete a record, never by force; one that is not there counts as deleted."""

    async def read(self, path: str) -> bytes:
        """Return what it says about something that is no record, such as `schema/route`."""

    async def look(self, key: RecordKey) -> ObservedRecord | None:
        """Read one record, ours or not; None: there is none."""

    async def probe(self) -> None:
        """Find out cheaply whether the cluster would serve a call."""

    def credentials_changed(self) -> bool:
        """Say whether other credentials are at hand than those that the last call used."""
