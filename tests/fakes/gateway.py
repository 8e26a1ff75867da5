"""A gateway cluster in memory, with faults from a seed, and a loop on which time passes only when no task can run.

The fake enforces the Admin API's rules on references and records every violation of the order of writes.
"""

import asyncio
import random
import selectors
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from apisix_ingress.errors import GatewayRejected, GatewayUnauthorized, GatewayUnavailable
from apisix_ingress.gateway.backend import ClusterListing, DependencyPending, Fence, ObservedRecord
from apisix_ingress.model.json import FrozenJson, canonical
from apisix_ingress.model.keys import RECORD_KINDS, RecordKey, RecordKind
from apisix_ingress.model.names import is_owned, owner_labels
from apisix_ingress.model.records import UNLABELLED, Record, comparable, hosts_of, references, taken

OURS = owner_labels("apisix-ingress")


class _JumpingSelector(selectors.SelectSelector):
    """Lets the loop's time jump to its next timer, since there are no external events."""

    def __init__(self) -> None:
        super().__init__()
        self.time = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("everybody waits and no timer is set")
        self.time += max(0.0, timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock stops while any task can run. No sockets, no threads."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.time


class LoopClock:
    """The clock of the running loop, virtual or not."""

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.monotonic())


@dataclass
class Faults:
    """Shares of calls (0 to 1) that fail, by kind of failure."""

    lost_request: float = 0.0
    lost_reply: float = 0.0
    server_error: float = 0.0
    stale_guard: float = 0.0
    slow: float = 0.0
    down: bool = False
    hung: bool = False
    failing: bool = False
    unauthorized: bool = False


@dataclass
class FakeGateway:
    """The content of one cluster; it outlives the controllers that write to it.

    A body with a true `bad` is rejected. `excused` are records that someone else removed: the controller cannot know
    yet that references to them dangle. `schemas` are the published ones, by path; it fills in their defaults.
    """

    rng: random.Random = field(default_factory=lambda: random.Random(0))
    faults: Faults = field(default_factory=Faults)
    stored: dict[RecordKey, FrozenJson] = field(default_factory=dict)
    excused: set[RecordKey] = field(default_factory=set)
    violations: list[str] = field(default_factory=list)
    log: list[tuple[str, RecordKey]] = field(default_factory=list)
    schemas: dict[str, Any] = field(default_factory=dict)
    version: str = ""
    asked: list[str] = field(default_factory=list)
    lists: int = 0
    probes: int = 0
    looks: int = 0
    revisions: dict[RecordKey, int] = field(default_factory=dict)

    def put(self, key: RecordKey, body: FrozenJson) -> None:
        """Apply a write, or reject it like the Admin API."""
        if body.get("bad"):
            raise GatewayRejected(400, f"{key} is bad")
        for ref in references(key.kind, body):
            if ref in self.stored:
                continue
            if ref not in self.excused:
                self.violations.append(f"{key} written without {ref}")
            raise DependencyPending(f"failed to fetch {ref}", missing=ref)
        self.log.append(("put", key))
        self.stored[key] = self.filled(key, body)
        self.revisions[key] = max(self.revisions.values(), default=0) + 1
        self.excused.discard(key)

    def filled(self, key: RecordKey, body: FrozenJson) -> FrozenJson:
        """Return a body with the defaults of its fields and plugins according to the schemas."""
        schema = self.schemas.get(f"schema/{key.kind.removesuffix('s')}", {})
        whole = {**_defaults_of(schema), **body}
        known = self.schemas.get("plugins?all=true&subsystem=http", {})
        if plugins := whole.get("plugins"):
            plain = {name: known[name]["schema"] if name in known else {} for name in plugins}
            whole["plugins"] = {name: {**_defaults_of(plain[name]), **config} for name, config in plugins.items()}
        return whole

    def delete(self, key: RecordKey) -> None:
        """Apply a delete, or reject it like the Admin API."""
        users = [other for other in self.stored if key in self.refs_of(other)]
        if users and key in self.stored:
            if all(is_owned(self.stored[other].get("labels"), "apisix-ingress") for other in users):
                self.violations.append(f"{key} deleted while {users} use it")
            raise DependencyPending(f"can not delete {key}, it is still using it now")
        self.log.append(("delete", key))
        self.stored.pop(key, None)

    def refs_of(self, key: RecordKey) -> set[RecordKey]:
        return set(references(key.kind, self.stored[key]))

    def meddle(self, key: RecordKey, body: FrozenJson | None) -> None:
        """Change a record manually; None removes it."""
        if body is None:
            self.stored.pop(key, None)
            self.excused.add(key)
        else:
            self.stored[key] = body

    def wipe(self) -> None:
        """Lose everything, as after a restart on an empty etcd."""
        for key in list(self.stored):
            self.meddle(key, None)
        self.revisions.clear()

    def backup(self) -> tuple[dict[RecordKey, FrozenJson], dict[RecordKey, int]]:
        """Return a copy of everything, for `restore`."""
        return dict(self.stored), dict(self.revisions)

    def restore(self, copy: tuple[dict[RecordKey, FrozenJson], dict[RecordKey, int]]) -> None:
        """Go back to a backup."""
        for key in {*self.stored, *copy[0]}:
            self.meddle(key, copy[0].get(key))
        self.revisions = dict(copy[1])


def _defaults_of(schema: FrozenJson) -> dict[str, Any]:
    return {name: part["default"] for name, part in schema.get("properties", {}).items() if "default" in part}


class FakeBackend:
    """A controller's connection to a `FakeGateway`; takes virtual time, and fails according to the gateway's faults."""

    def __init__(self, gateway: FakeGateway, *, timeout: float = 5.0) -> None:
        self._gateway = gateway
        self._timeout = timeout
        self._flying: set[RecordKey] = set()
        self.changed_credentials = False
        self.peak = 0

    @property
    def timeout(self) -> float:
        return self._timeout

    async def list_managed(
        self, ledger: Collection[RecordKey], kinds: Collection[RecordKind] = RECORD_KINDS
    ) -> ClusterListing:
        owned: dict[RecordKey, ObservedRecord] = {}
        others: dict[RecordKey, ObservedRecord] = {}
        for kind in kinds:
            await asyncio.sleep(self._gateway.rng.random() * 0.05)
            await self._hang()
            self._check()
            for key, body in self._gateway.stored.items():
                if key.kind != kind:
                    continue
                is_ours = key in ledger or is_owned(body.get("labels"), "apisix-ingress")
                refs, takes = frozenset(references(kind, body)), taken(kind, body.get("plugins"))
                revision = self._gateway.revisions.get(key, 0)
                found = ObservedRecord(
                    comparable(kind, body), refs, str(body.get("name", "")), takes, revision, hosts_of(kind, body)
                )
                (owned if is_ours else others)[key] = found
        self._gateway.lists += 1
        unclaimed = {key: found for key, found in others.items() if key.kind in UNLABELLED}
        foreign = frozenset(others.keys() - unclaimed.keys())
        return ClusterListing(owned, foreign, unclaimed, version=self._gateway.version)

    async def read(self, path: str) -> bytes:
        self._gateway.asked.append(path)
        self._check()
        if path not in self._gateway.schemas:
            raise GatewayRejected(404, "no such thing")
        return canonical(self._gateway.schemas[path])

    async def put(self, record: Record) -> bool:
        await self._write(record.key, record.body)
        return False

    async def delete(self, key: RecordKey) -> bool:
        await self._write(key, None)
        return False

    async def get(self, key: RecordKey) -> ObservedRecord | None:
        self._gateway.looks += 1
        await asyncio.sleep(0.005)
        await self._hang()
        self._check()
        body = self._gateway.stored.get(key)
        if body is None:
            return None
        refs, takes = frozenset(references(key.kind, body)), taken(key.kind, body.get("plugins"))
        return ObservedRecord(
            comparable(key.kind, body),
            refs,
            str(body.get("name", "")),
            takes,
            revision=self._gateway.revisions.get(key, 0),
            ours=is_owned(body.get("labels"), "apisix-ingress"),
        )

    async def filled(self) -> None:
        pass

    async def probe(self) -> None:
        self._gateway.probes += 1
        await asyncio.sleep(0.005)
        await self._hang()
        self._check()

    async def attend(self, term: Fence) -> None:
        """Do nothing."""

    def credentials_changed(self) -> bool:
        return self.changed_credentials

    async def _write(self, key: RecordKey, body: FrozenJson | None) -> None:
        if key in self._flying:
            self._gateway.violations.append(f"two writes of {key} at once")
        self._flying.add(key)
        self.peak = max(self.peak, len(self._flying))
        try:
            await self._exchange(key, body)
        finally:
            self._flying.discard(key)

    async def _exchange(self, key: RecordKey, body: FrozenJson | None) -> None:
        rng, faults = self._gateway.rng, self._gateway.faults
        share = self._timeout / 2 if rng.random() < faults.slow else 0.01
        await asyncio.sleep(rng.random() * share)
        await self._hang()
        self._check()
        if rng.random() < faults.lost_request:
            raise GatewayUnavailable("no response", sent=True)
        if rng.random() < faults.server_error:
            if rng.random() < 0.5:
                self._carry_out(key, body)
            raise GatewayUnavailable("HTTP 503", status=503, sent=True)
        if body is None and rng.random() < faults.stale_guard:
            raise DependencyPending(f"can not delete {key}, something is still using it now")
        self._carry_out(key, body)
        await asyncio.sleep(rng.random() * share)
        if rng.random() < faults.lost_reply:
            raise GatewayUnavailable("disconnected", sent=True)

    async def _hang(self) -> None:
        """Wait without a response while the gateway hangs."""
        if self._gateway.faults.hung:
            await asyncio.sleep(self._timeout)
            raise GatewayUnavailable(f"no response within {self._timeout:g} s")

    def _check(self) -> None:
        if self._gateway.faults.down:
            raise GatewayUnavailable("connection refused", sent=False)
        if self._gateway.faults.failing:
            raise GatewayUnavailable("HTTP 503", status=503)
        if self._gateway.faults.unauthorized:
            raise GatewayUnauthorized("wrong admin key", status=401)

    def _carry_out(self, key: RecordKey, body: FrozenJson | None) -> None:
        if body is None:
            self._gateway.delete(key)
        else:
            self._gateway.put(key, body)


class FakeWanted:
    """Desired records as a plain dict."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.records = {record.key: record for record in records}
        self.held: set[RecordKey] = set()
        self.refused: set[RecordKey] = set()
        self.namespaces: dict[RecordKey, str] = {}

    def get(self, key: RecordKey, cluster: str) -> Record | None:
        return self.records.get(key)

    def namespace(self, key: RecordKey, cluster: str) -> str:
        return self.namespaces.get(key, "")

    def is_held(
        self,
        key: RecordKey,
        name: str,
        hosts: tuple[str, ...] | None = None,
        sources: tuple[str, ...] | None = None,
    ) -> bool:
        return key in self.held

    def is_refused(self, key: RecordKey, name: str) -> bool:
        return key in self.refused

    def keys(self) -> tuple[RecordKey, ...]:
        return tuple(self.records)

    def counts(self, cluster: str) -> Counter[RecordKind]:
        return Counter(key.kind for key in self.records)

    def older_takers(self, key: RecordKey, cluster: str) -> Iterator[RecordKey]:
        """The records are treated as created in this order."""
        keys, takes = list(self.records), self.records[key].takes
        return (other for other in reversed(keys[: keys.index(key)]) if self.records[other].takes & takes)

    def replace(self, records: Iterable[Record]) -> list[RecordKey]:
        """Set the desired records; return the keys of changed ones."""
        after = {record.key: record for record in records}
        keys = sorted({*self.records, *after})
        changed = [key for key in keys if self.records.get(key) != after.get(key)]
        self.records = after
        return changed


def make_record(key: RecordKey, /, *, existing_only: bool = False, **body: Any) -> Record:
    """Return a managed record with a body that has an id, a name and labels."""
    name = f"name-{key.id}"
    whole = {"id": key.id, "name": name, "labels": OURS, **body}
    return Record(key, name, whole, existing_only=existing_only)
