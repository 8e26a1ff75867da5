"""The ledger of one gateway cluster: which records without labels are ours. It stands between sync engine and backend.

Gateways take no labels on global rules and keep none on plugin metadata, so that nothing in a gateway says whose such a
record is. The ledger does, over restarts and changes of the leader. Write-ahead: a record is in the ledger before it is
in the gateway, and leaves it after. Where a ledger is kept is elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

import structlog

from apisix_ingress.errors import GatewayRejected, IngressError
from apisix_ingress.gateway.backend import Backend, ClusterListing, DependencyPending, NotTried, ObservedRecord
from apisix_ingress.model.keys import RECORD_KINDS, RecordKey, RecordKind
from apisix_ingress.model.records import UNLABELLED, Record

log = structlog.get_logger()


class Ledger(Protocol):
    """Keys of records that are ours, by gateway cluster. Every call raises an IngressError if it did not succeed."""

    def renew(self) -> None:
        """Forget what is remembered: a term begins, and others may have led since the last one."""

    async def keys(self, cluster: str) -> frozenset[RecordKey]:
        """Return the records of a cluster; read once a term."""

    async def note(self, cluster: str, keys: Collection[RecordKey]) -> bool:
        """Add records; say whether that took a write."""

    async def forget(self, cluster: str, keys: Collection[RecordKey]) -> None:
        """Take records out; those that are not in it are no error."""


class MemoryLedger:
    """A ledger for one process: what is deleted while none runs is not noticed by the next one."""

    def __init__(self) -> None:
        self._keys: dict[str, set[RecordKey]] = {}

    def renew(self) -> None:
        """Nobody else writes it."""

    async def keys(self, cluster: str) -> frozenset[RecordKey]:
        """Return the records of a cluster."""
        return frozenset(self._keys.get(cluster, ()))

    async def note(self, cluster: str, keys: Collection[RecordKey]) -> bool:
        """Add records."""
        self._keys.setdefault(cluster, set()).update(keys)
        return False

    async def forget(self, cluster: str, keys: Collection[RecordKey]) -> None:
        """Take records out."""
        self._keys.setdefault(cluster, set()).difference_update(keys)


class LedgeredBackend:
    """A backend that accounts for records without labels.

    Args:
        backend: The gateway cluster.
        ledger: Shared by all clusters.
        cluster: The cluster's name in the settings.
    """

    def __init__(self, backend: Backend, ledger: Ledger, cluster: str) -> None:
        self._backend = backend
        self._ledger = ledger
        self._cluster = cluster
        self._written: set[RecordKey] = set()
        """Records that this process wrote or is about to write."""
        self._held: set[RecordKey] = set()
        """Records of ours that the gateway has, or may have."""
        self._log = log.bind(cluster=cluster)

    @property
    def timeout(self) -> float:
        """Seconds that a write to the gateway takes at most."""
        return self._backend.timeout

    async def list_managed(
        self, ledger: Collection[RecordKey], kinds: Collection[RecordKind] = RECORD_KINDS
    ) -> ClusterListing:
        """Read every record of some kinds; those that the ledger names are ours."""
        if UNLABELLED.isdisjoint(kinds):
            return await self._backend.list_managed(ledger, kinds)
        noted = await self._noted()
        if noted is None:
            return await self._backend.list_managed(ledger, kinds)
        listing = await self._backend.list_managed({*ledger, *noted}, kinds)
        self._held.update(key for key in listing.owned if key.kind in UNLABELLED)
        await self._tidy(listing, noted)
        return listing

    async def put(self, record: Record) -> bool:
        """Create or replace a record; say whether a copy of the write may be carried out later.

        Raises:
            NotTried: It had to be noted first. The write is left to the next try: its time, which the lease bounds,
                began before the ledger was written.
        """
        if record.key.kind in UNLABELLED:
            self._written.add(record.key)
            try:
                took_write = await self._ledger.note(self._cluster, (record.key,))
            except IngressError as error:
                raise NotTried(f"the ledger cannot be written: {error}") from error
            if took_write:
                raise NotTried("the ledger was written first", at_once=True)
        return await self._put(record)

    async def delete(self, key: RecordKey) -> bool:
        """Delete a record; one that is not there counts as deleted. Say whether a copy may be carried out later."""
        in_doubt = await self._backend.delete(key)
        if key.kind in UNLABELLED:
            self._written.discard(key)
            self._held.discard(key)
            await self._forget(key)
        return in_doubt

    async def read(self, path: str) -> bytes:
        """Return what the gateway says about something that is no record."""
        return await self._backend.read(path)

    async def look(self, key: RecordKey) -> ObservedRecord | None:
        """Read one record."""
        return await self._backend.look(key)

    async def probe(self) -> None:
        """Find out cheaply whether the cluster would serve a call."""
        await self._backend.probe()

    def credentials_changed(self) -> bool:
        """Say whether other credentials are at hand than those that the last call used."""
        return self._backend.credentials_changed()

    async def _put(self, record: Record) -> bool:
        key = record.key
        if key.kind not in UNLABELLED:
            return await self._backend.put(record)
        try:
            in_doubt = await self._backend.put(record)
        except (GatewayRejected, DependencyPending):
            if key not in self._held:
                await self._disown(key)
            raise
        except BaseException:
            self._held.add(key)  # it may have been carried out
            raise
        self._held.add(key)
        return in_doubt

    async def _disown(self, key: RecordKey) -> None:
        """Take a record out that the gateway refused: one of this id that comes later is somebody else's."""
        self._written.discard(key)
        await self._forget(key)

    async def _forget(self, key: RecordKey) -> None:
        try:
            await self._ledger.forget(self._cluster, (key,))
        except IngressError as error:
            # The next list shows that it is gone.
            self._log.warning("ledger.unwritable", record=str(key), error=str(error))

    async def _noted(self) -> frozenset[RecordKey] | None:
        """Return what the ledger names, or None if it can't be read: then nothing is ours for its sake."""
        try:
            return await self._ledger.keys(self._cluster)
        except IngressError as error:
            self._log.error("ledger.unreadable", error=str(error))
            return None

    async def _tidy(self, listing: ClusterListing, noted: frozenset[RecordKey]) -> None:
        """Note records that were taken over without a write; forget those that are gone."""
        taken_over = {key for key in listing.owned if key.kind in UNLABELLED} - noted
        gone = {key for key in noted - listing.owned.keys() - self._written if key.kind not in listing.disabled}
        try:
            if taken_over:
                await self._ledger.note(self._cluster, taken_over)
            if gone:
                await self._ledger.forget(self._cluster, gone)
        except IngressError as error:
            self._log.warning("ledger.unwritable", error=str(error))
