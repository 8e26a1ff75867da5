"""Records in etcd under the keys that APISIX uses, and their watched copy in memory; their content is not checked.

A write to etcd, and a read of what another writer wrote, return when the watch has delivered it to memory, so the data
plane and the deletion guards are never older than the last record in a response of the Admin API.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson

from e2e.devgateway.etcd import EtcdClient, EtcdDown, EtcdRefused, KeyValue, decode_pair, encode, prefix_end

PREFIX = "/apisix/"
BATCH = 100
"""Maximum number of writes in one etcd transaction; etcd allows 128 operations."""
BATCH_BYTES = 1_000_000
"""By default, etcd rejects requests above 1.5 MiB; a record larger than this limit is sent alone."""
CATCH_UP_TIMEOUT = 10.0
RECONNECT_DELAY = 0.2

Body = dict[str, Any]


class Conflict(Exception):
    """The record changed between read and write."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record: `key` is the full key (`/apisix/routes/1`), `name` the part after the kind."""

    key: str
    kind: str
    name: str
    value: Body
    created: int
    modified: int

    def as_item(self) -> Body:
        """Return it as the Admin API returns it."""
        return {
            "key": self.key,
            "value": self.value,
            "createdIndex": self.created,
            "modifiedIndex": self.modified,
        }


def read_record(pair: KeyValue) -> Record | None:
    """Decode one pair; return None for a key that is not a record (`gen_id`, the directory marks)."""
    kind, slash, name = pair.key.removeprefix(PREFIX).partition("/")
    if not slash or not pair.value.startswith(b"{"):
        return None
    return Record(pair.key, kind, name, orjson.loads(pair.value), pair.created, pair.modified)


@dataclass(slots=True)
class _Write:
    """One operation waiting for its transaction."""

    key: str
    operation: Body
    done: asyncio.Future[tuple[bool, int]]

    @property
    def size(self) -> int:
        return len(self.operation.get("request_put", {}).get("value", ""))


@dataclass(slots=True)
class _Memory:
    revision: int = 0
    waiting: deque[tuple[int, asyncio.Future[None]]] = field(default_factory=deque)


Listener = Callable[[str, str, Record | None], None]


class Records:
    """The records in memory, by kind; the data plane reads them and listens for changes."""

    def __init__(self) -> None:
        self._kinds: dict[str, dict[str, Record]] = {}
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> None:
        """Call `listener(kind, name, record or None)` on every change in memory."""
        self._listeners.append(listener)

    def kind(self, kind: str) -> dict[str, Record]:
        """Return the records of a kind by name, in the order in which the data plane received them."""
        return self._kinds.setdefault(kind, {})

    async def exists(self, key: str) -> bool:
        """Return whether a record exists."""
        kind, _, name = key.removeprefix(PREFIX).partition("/")
        return name in self.kind(kind)

    def set(self, kind: str, name: str, record: Record | None) -> None:
        """Create, replace or delete (None) a record; call the listeners."""
        records = self.kind(kind)
        old = records.get(name)
        if record is None:
            if records.pop(name, None) is None:
                return
        else:
            if old is not None and old.created != record.created:
                del records[name]  # deleted and re-created: it moves to the end of the order
            records[name] = record
        for listener in self._listeners:
            listener(kind, name, record)


class Store(Records):
    """Read and write records in etcd; call `start` once and `close` at the end."""

    def __init__(self, client: EtcdClient) -> None:
        super().__init__()
        self._client = client
        self._memory = _Memory()
        self._queue: deque[_Write] = deque()
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self.connected = False

    async def start(self) -> None:
        """Load everything and watch it; raises EtcdDown if etcd does not respond."""
        await self._load()
        ready = asyncio.Event()
        self._tasks = [
            asyncio.create_task(self._follow(ready), name="devgateway.watch"),
            asyncio.create_task(self._write_batches(), name="devgateway.write"),
        ]
        await asyncio.wait_for(ready.wait(), CATCH_UP_TIMEOUT)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # Reads from etcd.

    async def get(self, key: str) -> Record | None:
        """Read one record directly from etcd; raises EtcdDown."""
        found = await self._read(key)
        return found[0] if found else None

    async def below(self, prefix: str) -> list[Record]:
        """Read every record below `prefix` directly from etcd, by key; raises EtcdDown."""
        return await self._read(prefix, end=prefix_end(prefix))

    async def exists(self, key: str) -> bool:
        """Return whether a record exists: from memory while the watch is active, else from etcd; raises EtcdDown."""
        return (self.connected and await super().exists(key)) or await self.get(key) is not None

    async def _read(self, key: str, *, end: str | None = None) -> list[Record]:
        _, pairs = await self._range(key, end=end)
        if self.connected:
            await self._caught_up(max((pair.modified for pair in pairs), default=0))
        return [record for pair in pairs if (record := read_record(pair)) is not None]

    async def _range(self, key: str, *, end: str | None = None) -> tuple[int, list[KeyValue]]:
        try:
            return await self._client.range(key, end=end)
        except EtcdRefused as error:
            raise EtcdDown(str(error)) from error

    # Writes.

    async def put(self, key: str, value: Body, *, ttl: int | None = None) -> bool:
        """Write a record; returns True if it is new; raises EtcdDown."""
        operation: Body = {"key": encode(key), "value": encode(orjson.dumps(value)), "prev_kv": True}
        if ttl is not None:
            operation["lease"] = await self._client.lease(ttl)
        return not await self._submit(key, {"request_put": operation})

    async def replace(self, key: str, value: Body, *, modified: int) -> None:
        """Write a record if it still has that revision; raises Conflict or EtcdDown."""
        compare = [
            {"key": encode(key), "target": "MOD", "result": "EQUAL", "mod_revision": str(modified)},
        ]
        operation = {"request_put": {"key": encode(key), "value": encode(orjson.dumps(value))}}
        try:
            succeeded, revision, _ = await self._client.transaction([operation], compare)
        except EtcdRefused as error:
            raise EtcdDown(str(error)) from error
        if not succeeded:
            raise Conflict(key)
        await self._caught_up(revision)

    async def delete(self, key: str, *, below: bool = False) -> bool:
        """Delete a record, or everything below a prefix; returns False if nothing existed; raises EtcdDown."""
        if not below:
            return await self._submit(key, {"request_delete_range": {"key": encode(key)}})
        operation = {"request_delete_range": {"key": encode(key), "range_end": prefix_end(key)}}
        try:
            _, revision, responses = await self._client.transaction([operation])
        except EtcdRefused as error:
            raise EtcdDown(str(error)) from error
        if existed := _existed(responses[0]):
            await self._caught_up(revision)
        return existed

    async def next_id(self) -> str:
        """Return the next generated id: a store revision of twenty digits, as APISIX does."""
        operation = {"request_put": {"key": encode(PREFIX + "gen_id"), "value": encode("1")}}
        _, revision, _ = await self._client.transaction([operation])
        return f"{revision:020d}"

    async def _submit(self, key: str, operation: Body) -> bool:
        """Queue one operation; return whether the key existed, once the change is in memory."""
        if not self.connected:
            await self._client.range(PREFIX)
        done: asyncio.Future[tuple[bool, int]] = asyncio.get_running_loop().create_future()
        self._queue.append(_Write(key, operation, done))
        self._wake.set()
        existed, revision = await done
        if existed or "request_put" in operation:
            await self._caught_up(revision)
        return existed

    async def _write_batches(self) -> None:
        """Collect operations while a transaction is in flight, so that concurrent writers share a round trip."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._queue:
                await self._write_batch(self._take_batch())

    def _take_batch(self) -> list[_Write]:
        batch: dict[str, _Write] = {}
        size = 0
        while self._queue and len(batch) < BATCH and self._queue[0].key not in batch:
            size += self._queue[0].size
            if batch and size > BATCH_BYTES:
                break
            write = self._queue.popleft()
            batch[write.key] = write
        return list(batch.values())

    async def _write_batch(self, batch: list[_Write]) -> None:
        try:
            _, revision, responses = await self._client.transaction([write.operation for write in batch])
        except Exception as error:  # any error is passed to the waiting writers
            for write in batch:
                if not write.done.done():
                    write.done.set_exception(EtcdDown(str(error)))
            return
        for write, response in zip(batch, responses, strict=True):
            if not write.done.done():
                write.done.set_result((_existed(response), revision))

    # The watched copy.

    async def _caught_up(self, revision: int) -> None:
        """Wait until memory contains `revision`."""
        if self._memory.revision >= revision:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._memory.waiting.append((revision, waiter))
        try:
            await asyncio.wait_for(waiter, CATCH_UP_TIMEOUT)
        except TimeoutError as error:
            raise EtcdDown("the watch did not bring the write back") from error

    async def _load(self) -> None:
        """Read everything again; the order in memory becomes that of the keys, as after an APISIX restart."""
        revision, pairs = await self._range(PREFIX, end=prefix_end(PREFIX))
        fresh = {record.key: record for pair in pairs if (record := read_record(pair)) is not None}
        for records in list(self._kinds.values()):
            for gone in [record for record in records.values() if record.key not in fresh]:
                self.set(gone.kind, gone.name, None)
        for record in fresh.values():
            self._watched(record)
        self._advance(revision)

    async def _follow(self, ready: asyncio.Event) -> None:
        while True:
            with contextlib.suppress(EtcdDown, EtcdRefused, aiohttp.ClientError, OSError, TimeoutError):
                if not ready.is_set() or not self.connected:
                    await self._load()
                async for events in self._client.watch(PREFIX, self._memory.revision + 1):
                    self.connected = True
                    ready.set()
                    for event in events:
                        self._apply(event)
                    if events:
                        self._advance(int(events[-1]["kv"]["mod_revision"]))
            self.connected = False
            await asyncio.sleep(RECONNECT_DELAY)

    def _apply(self, event: Body) -> None:
        pair = decode_pair(event["kv"])
        if event.get("type") == "DELETE":
            kind, _, name = pair.key.removeprefix(PREFIX).partition("/")
            self.set(kind, name, None)
        elif (record := read_record(pair)) is not None:
            self._watched(record)

    def _watched(self, record: Record) -> None:
        old = self.kind(record.kind).get(record.name)
        if old is None or old.modified < record.modified:
            self.set(record.kind, record.name, record)

    def _advance(self, revision: int) -> None:
        memory = self._memory
        memory.revision = max(memory.revision, revision)
        for _ in range(len(memory.waiting)):
            wanted, waiter = memory.waiting.popleft()
            if wanted > memory.revision:
                memory.waiting.append((wanted, waiter))
            elif not waiter.done():
                waiter.set_result(None)


def _existed(response: Body) -> bool:
    if "response_put" in response:
        return "prev_kv" in response["response_put"]
    return int(response["response_delete_range"].get("deleted", 0)) > 0
