"""The ledger of one gateway cluster: which records without labels this controller created.

Gateways reject labels on global rules and drop them from plugin metadata, so nothing in the gateway shows who created
such a record. The ledger does, across restarts and changes of the leader. It is a write-ahead log: a record is added
before it is written to the gateway, and removed after it is deleted there. `kube/config_map_ledger.py` stores it.
"""

from __future__ import annotations

from collections.abc import Collection, Coroutine
from dataclasses import replace
from typing import Any, Protocol

import structlog

from apisix_ingress.errors import GatewayRejected, IngressError
from apisix_ingress.gateway.backend import Backend, ClusterListing, DependencyPending, Fence, NotTried, ObservedRecord
from apisix_ingress.model.keys import RECORD_KINDS, RecordKey, RecordKind
from apisix_ingress.model.records import UNLABELLED, Record

log = structlog.get_logger()


class Ledger(Protocol):
    """Keys of records that this controller created, by gateway cluster; a failed call raises an IngressError."""

    def renew(self) -> None:
        """Clear the cache: a term begins, and another replica may have led since the last one."""

    async def keys(self, cluster: str) -> frozenset[RecordKey]:
        """Return the records of a cluster; read once per term."""

    async def note(self, cluster: str, keys: Collection[RecordKey]) -> bool:
        """Add records; return whether the ledger had to be written."""

    async def forget(self, cluster: str, keys: Collection[RecordKey]) -> None:
        """Remove records; keys that are not in the ledger are ignored."""


class MemoryLedger:
    """A ledger for one process: records whose objects are deleted while it is down are not deleted later."""

    def __init__(self) -> None:
        self._keys: dict[str, set[RecordKey]] = {}

    def renew(self) -> None:
        """Do nothing: only this process writes it."""

    async def keys(self, cluster: str) -> frozenset[RecordKey]:
        """Return the records of a cluster."""
        return frozenset(self._keys.get(cluster, ()))

    async def note(self, cluster: str, keys: Collection[RecordKey]) -> bool:
        """Add records."""
        self._keys.setdefault(cluster, set()).update(keys)
        return False

    async def forget(self, cluster: str, keys: Collection[RecordKey]) -> None:
        """Remove records."""
        self._keys.setdefault(cluster, set()).difference_update(keys)


class LedgeredBackend:
    """A backend that keeps the ledger of records without labels.

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
        """Records that this process has written or is about to write."""
        self._held: set[RecordKey] = set()
        """Records in the ledger that the gateway has, or may have."""
        self._log = log.bind(cluster=cluster)

    @property
    def timeout(self) -> float:
        """The maximum duration of a write to the gateway in seconds."""
        return self._backend.timeout

    def attend(self, term: Fence) -> Coroutine[Any, Any, None]:
        """Begin a term; return what has to run during it."""
        return self._backend.attend(term)

    async def list_managed(
        self, ledger: Collection[RecordKey], kinds: Collection[RecordKind] = RECORD_KINDS
    ) -> ClusterListing:
        """Read every record of some kinds; records in the ledger are owned."""
        if UNLABELLED.isdisjoint(kinds):
            return await self._backend.list_managed(ledger, kinds)
        noted = await self._noted()
        if noted is None:
            return replace(await self._backend.list_managed(ledger, kinds), lacks_ledger=True)
        listing = await self._backend.list_managed({*ledger, *noted}, kinds)
        self._held.update(key for key in listing.owned if key.kind in UNLABELLED)
        await self._tidy(listing, noted)
        return listing

    async def put(self, record: Record) -> bool:
        """Create or replace a record; return whether a copy of the write may be carried out later.

        Raises:
            NotTried: The record had to be added to the ledger first. The write is left to the next attempt: its
                deadline, which the lease limits, was set before the ledger was written.
        """
        if record.key.kind not in UNLABELLED:
            return await self._backend.put(record)
        self._written.add(record.key)
        try:
            took_write = await self._ledger.note(self._cluster, (record.key,))
        except IngressError as error:
            raise NotTried(f"the ledger cannot be written: {error}") from error
        if took_write:
            raise NotTried("the ledger was written first", at_once=True)
        return await self._put_unlabelled(record)

    async def delete(self, key: RecordKey) -> bool:
        """Delete a record, missing or not; return whether a copy of the request may be carried out later."""
        in_doubt = await self._backend.delete(key)
        if key.kind in UNLABELLED:
            self._written.discard(key)
            self._held.discard(key)
            await self._forget(key)
        return in_doubt

    async def read(self, path: str) -> bytes:
        """Return the response for a path that is not a record."""
        return await self._backend.read(path)

    async def get(self, key: RecordKey) -> ObservedRecord | None:
        """Read one record."""
        return await self._backend.get(key)

    async def filled(self) -> None:
        """Return once gateways have the records whose writes have ended."""
        await self._backend.filled()

    async def probe(self) -> None:
        """Check with a cheap request whether the cluster serves calls."""
        await self._backend.probe()

    def credentials_changed(self) -> bool:
        """Return whether the credentials have changed since the last call used them."""
        return self._backend.credentials_changed()

    async def _put_unlabelled(self, record: Record) -> bool:
        key = record.key
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
        """Remove a record that the gateway rejected: another client may create one with this id later."""
        self._written.discard(key)
        await self._forget(key)

    async def _forget(self, key: RecordKey) -> None:
        try:
            await self._ledger.forget(self._cluster, (key,))
        except IngressError as error:
            # The next list will show that the record is gone.
            self._log.warning("ledger.unwritable", record=str(key), error=str(error))

    async def _noted(self) -> frozenset[RecordKey] | None:
        """Return the records in the ledger, or None if it cannot be read; then no record is owned because of it."""
        try:
            return await self._ledger.keys(self._cluster)
        except IngressError as error:
            self._log.error("ledger.unreadable", error=str(error))
            return None

    async def _tidy(self, listing: ClusterListing, noted: frozenset[RecordKey]) -> None:
        """Add records that were taken over without a write; remove records that are gone."""
        taken_over = {key for key in listing.owned if key.kind in UNLABELLED} - noted
        gone = {key for key in noted - listing.owned.keys() - self._written if key.kind not in listing.disabled}
        try:
            if taken_over:
                await self._ledger.note(self._cluster, taken_over)
            if gone:
                await self._ledger.forget(self._cluster, gone)
        except IngressError as error:
            self._log.warning("ledger.unwritable", error=str(error))
