"""A group of standalone gateways as one gateway cluster.

Writes of the sync engine are collected and sent together, since each document contains all records. A write is done
when every gateway that responds has accepted the document.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from typing import Any

import structlog

from apisix_ingress.errors import GatewayError, GatewayUnavailable
from apisix_ingress.gateway.adminapi.error_text import scrub
from apisix_ingress.gateway.adminapi.responses import found_of, rejection
from apisix_ingress.gateway.backend import ClusterListing, Fence, NotTried, ObservedRecord
from apisix_ingress.gateway.standalone.document import GENERATION, Document, item_of, parsed, record_in
from apisix_ingress.gateway.standalone.endpoint import REFUSED
from apisix_ingress.gateway.standalone.fleet import CHECK_SECONDS, Fleet
from apisix_ingress.model.keys import RECORD_KINDS, RecordKey, RecordKind
from apisix_ingress.model.names import is_owned
from apisix_ingress.model.records import UNLABELLED, Record
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.tasks import ends_within, in_daemon

log = structlog.get_logger()

GATHER_SECONDS = 0.01
"""Writes that begin within this time are sent in one document."""

LOADING_SECONDS = 0.3
"""Workers load a document within this time, each kind at another moment: earlier, a record may lack what it needs."""

LONGEST_FILL = 10.0
"""Gateways without records get the first ones at most this many seconds later, even while others are being written."""

LONGEST_PAUSE = 1.0
"""Gateways get as much time between two documents as they took for the last one, up to this many seconds."""


@dataclass(eq=False, slots=True)
class Change:
    """A write that is not done yet; `record` None: a delete."""

    record: Record | None
    item: bytes | None
    done: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    @property
    def takes(self) -> frozenset[tuple[str, str]]:
        """The exclusive keys of its record."""
        return self.record.takes if self.record is not None else frozenset()

    def end(self, error: GatewayError | None = None) -> None:
        """End it, unless its caller has given up."""
        if self.done.done():
            return
        if error is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(error)


Changes = Mapping[RecordKey, Change]


class StandaloneGroup:
    """The standalone gateways of one cluster; a `Backend`.

    Args:
        name: The name of the cluster, for the log.
        fleet: Its gateways.
        controller: The name of this controller, which the labels of its records contain.
        timeout: Seconds for one write.
        clock: The clock.
    """

    def __init__(self, name: str, fleet: Fleet, *, controller: str, timeout: float, clock: Clock) -> None:
        self._fleet = fleet
        self._controller = controller
        self._timeout = timeout
        self._clock = clock
        self._ours: set[RecordKey] = set()
        """Records that this controller created, or removed."""
        self._pending: dict[RecordKey, Change] = {}
        self._unsure: dict[RecordKey, bytes | None] = {}
        """Record → its item before a write whose outcome is unknown: gateways may get it at any time."""
        self._staged: dict[RecordKey, Change] | None = None
        """Valid records for gateways that have none; None once gateways have some."""
        self._staged_since = self._staged_last = 0.0
        self._filled = asyncio.Event()
        self._wake = asyncio.Event()
        self._log = log.bind(cluster=name)

    @property
    def timeout(self) -> float:
        """The maximum duration of a write in seconds."""
        return self._timeout

    def attend(self, term: Fence) -> Coroutine[Any, Any, None]:
        """Forget what other terms have read, and return what sends documents during a term, until it is cancelled."""
        self._fleet.intend(None)
        self._ours.clear()
        self._pending.clear()
        self._unsure.clear()
        self._staged = None
        self._filled.clear()
        return self._attend(term)

    async def list_managed(
        self, ledger: Collection[RecordKey], kinds: Collection[RecordKind] = RECORD_KINDS
    ) -> ClusterListing:
        """Return every record of some kinds. The gateways are read at the start of a term; then they are checked."""
        if self._fleet.document is None:
            await self._take_over()
        self._fleet.require_contact()
        assert self._fleet.document is not None
        staged = {key: each.item for key, each in (self._staged or {}).items()}
        document = self._fleet.document.changed({**self._unsure, **staged})
        owned, unclaimed = dict[RecordKey, ObservedRecord](), dict[RecordKey, ObservedRecord]()
        foreign = set[RecordKey]()
        for kind in kinds:
            for id_, item in document.items[kind].items():
                key = RecordKey(kind, id_)
                found = self._observed(key, item)
                if found.ours or key in ledger:
                    owned[key] = found
                elif kind in UNLABELLED:
                    unclaimed[key] = found
                else:
                    foreign.add(key)
        self._ours.update(owned)
        version = next((each.version for each in self._fleet.endpoints.values() if each.version), "")
        return ClusterListing(owned, frozenset(foreign), unclaimed, version=version)

    async def put(self, record: Record) -> bool:
        """Create or replace a record."""
        return await self._change(record.key, Change(record, item_of(record.key, record.body)))

    async def delete(self, key: RecordKey) -> bool:
        """Delete a record, missing or not."""
        return await self._change(key, Change(None, None))

    async def get(self, key: RecordKey) -> ObservedRecord | None:
        """Return a record of the document that the gateways have."""
        self._fleet.require_contact()
        item = self._item(key)
        return self._observed(key, item) if item is not None else None

    async def filled(self) -> None:
        """Return once gateways have a document, in this term."""
        await self._filled.wait()

    async def probe(self) -> None:
        """Check whether a gateway responds and accepts the key."""
        await self._fleet.probe()

    async def read(self, path: str) -> bytes:
        """Raise: standalone gateways have no other paths."""
        raise GatewayUnavailable(f"GET {path}: standalone gateways do not serve it", sent=False)

    def credentials_changed(self) -> bool:
        """Return whether the file of the admin key has changed since it was read."""
        return any(each.admin.credentials_changed() for each in self._fleet.endpoints.values())

    async def _change(self, key: RecordKey, change: Change) -> bool:
        if self._fleet.document is None:
            raise NotTried("the gateways have not been read yet")
        if key not in self._unsure and self._item(key) == change.item:
            return False
        self._pending[key] = change
        self._wake.set()
        try:
            async with asyncio.timeout(self._timeout):
                await change.done
        except TimeoutError:
            sent = self._pending.get(key) is not change
            raise GatewayUnavailable(f"no gateway accepted {key} within {self._timeout:g} s", sent=sent) from None
        finally:
            if self._pending.get(key) is change:
                del self._pending[key]
        if key in (self._staged or ()):
            return True
        await self._clock.sleep(LOADING_SECONDS)
        return False

    def _item(self, key: RecordKey) -> bytes | None:
        if (staged := (self._staged or {}).get(key)) is not None:
            return staged.item
        if key in self._unsure:
            return self._unsure[key]
        return self._fleet.document.get(key) if self._fleet.document is not None else None

    async def _attend(self, term: Fence) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._fleet.keep(term), name="standalone-keep")
            while True:
                if await ends_within(self._wake.wait(), CHECK_SECONDS, clock=self._clock):
                    await self._clock.sleep(GATHER_SECONDS)
                self._wake.clear()
                changes, self._pending = self._pending, {}
                began = self._clock.monotonic()
                await self._send(changes, term)
                await self._clock.sleep(min(self._clock.monotonic() - began, LONGEST_PAUSE))

    async def _send(self, changes: Changes, term: Fence) -> None:
        """Send some writes, in a newer document if another client has written one."""
        self._ours.update(changes)
        try:
            if self._fleet.is_outdated:
                await self._overtake()
            if self._staged is None:
                await self._apply(changes, term)
            else:
                if changes:
                    await self._stage(changes, self._staged)
                if self._staged and self._is_complete:
                    await self._fill(self._staged, term)
        except GatewayError as error:
            _end(changes, error)

    @property
    def _is_complete(self) -> bool:
        """Whether no record was staged for a second, or the first one long ago; rejected ones are retried meanwhile."""
        now = self._clock.monotonic()
        return now - self._staged_last >= CHECK_SECONDS or now - self._staged_since > LONGEST_FILL

    async def _stage(self, changes: Changes, staged: dict[RecordKey, Change]) -> None:
        """End writes to gateways without records as soon as they are validated; `_fill` sends them.

        The first document makes a gateway ready, so it has to be complete. But the engine writes a record only after
        the records that it refers to.

        Raises:
            GatewayError: No gateway has validated them.
        """
        for key, text in (await self._validated(changes)).items():
            changes[key].end(_rejection(changes[key], text))
        now = self._clock.monotonic()
        self._staged_since = self._staged_since if staged else now
        for key, text in _repeated(staged, changes):
            changes[key].end(_rejection(changes[key], text))
        valid = {key: change for key, change in changes.items() if not change.done.done()}
        self._staged_last = now if valid else self._staged_last
        staged.update(valid)
        _end(changes)

    async def _fill(self, staged: Changes, term: Fence) -> None:
        """Send the first document; the audit that follows staged writes finds what gateways reject nevertheless.

        Raises:
            GatewayError: No gateway has certainly accepted them.
        """
        sent = {key: Change(change.record, change.item) for key, change in staged.items()}
        await self._apply(sent, term)
        self._staged = None
        self._filled.set()
        for key, change in sent.items():
            if (error := change.done.exception()) is not None:
                self._log.warning("standalone.not_filled", record=str(key), error=str(error))

    async def _apply(self, changes: Changes, term: Fence) -> None:
        """Send some writes; rejected ones are found, and the others are sent without them.

        Raises:
            GatewayError: No gateway has certainly accepted them.
        """
        changes = {key: change for key, change in changes.items() if not change.done.done()}
        document = self._fleet.document
        if not changes or document is None:
            return
        try:
            await self._fleet.push(document.changed({key: each.item for key, each in changes.items()}), term)
        except REFUSED as error:
            self._forget_unsure()
            await self._isolate(changes, error, term)
        except GatewayError:
            self._unsure = {key: document.get(key) for key in changes} | self._unsure
            raise
        else:
            self._unsure.clear()
            _end(changes)

    def _forget_unsure(self) -> None:
        """Withdraw writes whose outcome is unknown, one of which gateways may reject; the engine repeats them."""
        if self._unsure and self._fleet.document is not None:
            self._fleet.intend(self._fleet.document.changed(self._unsure))
            self._unsure.clear()

    async def _isolate(self, changes: Changes, error: GatewayError, term: Fence) -> None:
        """End the writes that the gateways reject with their errors, and send the others."""
        rejected = dict.fromkeys(changes, error)
        if len(changes) > 1:
            try:
                rejected = {
                    key: _rejection(changes[key], text) for key, text in (await self._validated(changes)).items()
                }
            except GatewayUnavailable:
                rejected = {}
        for key, found in rejected.items():
            changes[key].end(found)
        rest = [(key, change) for key, change in changes.items() if key not in rejected]
        if rejected:
            await self._apply(dict(rest), term)
        else:
            await self._apply(dict(rest[: len(rest) // 2]), term)
            await self._apply(dict(rest[len(rest) // 2 :]), term)

    async def _validated(self, changes: Changes) -> dict[RecordKey, str]:
        """Return the records that a gateway says are invalid.

        Raises:
            GatewayUnavailable: No gateway has validated them.
        """
        records = [change.record for change in changes.values() if change.record is not None]
        for endpoint in self._fleet.endpoints.values():
            try:
                if endpoint.error is None or isinstance(endpoint.error, REFUSED):
                    return await endpoint.admin.validate(records)
            except GatewayError as error:
                self._log.info("standalone.not_validated", url=endpoint.url, error=str(error))
        raise GatewayUnavailable("no gateway has validated the records", sent=False)

    async def _take_over(self) -> None:
        """Read the gateways: the newest document counts, with the records of other clients in the others."""
        newest, *others = await self._read()
        for other in others:
            newest = newest.with_items(other, [key for key, item in other if not self._observed(key, item).ours])
        self._fleet.intend(newest.raised(newest.highest + GENERATION))
        self._staged = {} if newest.is_empty else None
        if self._staged is None:
            self._filled.set()

    async def _overtake(self) -> None:
        """Replace the document of another client by a newer one, which keeps the client's records."""
        documents = await self._read()
        document = self._fleet.document or Document()
        for other in documents:
            # What this controller has not written in this term, it may have deleted in an earlier one.
            document = document.with_items(other, [key for key, item in other if self._is_theirs(key, item)])
        self._fleet.intend(document.raised(documents[0].highest + GENERATION))

    async def _read(self) -> list[Document]:
        """Return the documents of all gateways that respond, the newest first."""
        contents = await self._fleet.read()
        documents = [await in_daemon(partial(parsed, each), name="standalone-document") for each in contents]
        return sorted(documents, key=lambda each: each.highest, reverse=True)

    def _is_theirs(self, key: RecordKey, item: bytes) -> bool:
        return key not in self._ours and not self._observed(key, item).ours

    def _observed(self, key: RecordKey, item: bytes) -> ObservedRecord:
        body, index = record_in(item)
        found = found_of(key.kind, body, index)
        return found if is_owned(body.get("labels"), self._controller) else replace(found, ours=False)


def _repeated(staged: Changes, changes: Changes) -> Iterator[tuple[RecordKey, str]]:
    """Yield the records with an exclusive key of an earlier one, with the gateway's error.

    A gateway only compares records with its own records: it accepts a document with both, and none after it.
    """
    holders = {(key.kind, each): key for key, change in staged.items() for each in change.takes}
    for key, change in changes.items():
        for plugin, value in () if change.done.done() else sorted(change.takes):
            holder = holders.setdefault((key.kind, (plugin, value)), key)
            if holder != key and key.kind == "consumers":
                yield key, f"duplicate key of plugin {plugin} found with consumer: {holder.id}"
            elif holder != key:
                yield key, f"plugin '{plugin}' already exists in global rule with id '{holder.id}'"


def _rejection(change: Change, text: str) -> GatewayError:
    """Return the error for a write that a gateway would reject with this text."""
    body = change.record.body if change.record is not None else None
    return rejection(HTTPStatus.BAD_REQUEST, text, scrub(text, body), "PUT")


def _end(changes: Changes, error: GatewayError | None = None) -> None:
    for change in changes.values():
        change.end(error)
