"""Thousands of writes of one namespace delay another one by no more than the allowed time, in virtual seconds. Every
write takes 20 ms and 16 are in flight, as by default. The tenant `hog` causes as much load as possible.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from apisix_ingress.errors import GatewayRejected, GatewayUnavailable
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Former, Record
from tests.fakes.gateway import make_record
from tests.unit.apisix_ingress.gateway.sync.stage import Play, Stage

WRITE_SECONDS = 0.02
ROUTE_SECONDS, REVOCATION_SECONDS = 2.0, 1.0
"""The maximum delays."""

VICTIM_UPSTREAM = RecordKey("upstreams", "v-upstream")
VICTIM_ROUTE = RecordKey("routes", "v-route")
VICTIM_OLD = RecordKey("routes", "v-old")
VICTIM_CONSUMER = RecordKey("consumers", "v-consumer")


Act = Callable[["SharedStage"], Coroutine[Any, Any, None]]


class SharedStage(Stage):
    """A stage for many namespaces: the id of a record begins with its namespace and a dash."""

    def __init__(self) -> None:
        super().__init__()
        self.sync = self.new_sync(concurrency=16)
        self.done: dict[tuple[str, RecordKey], float] = {}
        self._written = asyncio.Event()
        put, delete = self.gateway.put, self.gateway.delete

        async def slow_put(record: Record) -> bool:
            await asyncio.sleep(WRITE_SECONDS)
            put(record.key, record.body)
            self._note("put", record.key)
            return False

        async def slow_delete(key: RecordKey) -> bool:
            await asyncio.sleep(WRITE_SECONDS)
            delete(key)
            self._note("delete", key)
            return False

        self.backend.put, self.backend.delete = slow_put, slow_delete  # type: ignore[method-assign]

    def _note(self, op: str, key: RecordKey) -> None:
        self.done[op, key] = self.clock.monotonic()
        self._written.set()

    def apply(self, *records: Record, withdrawn: Sequence[RecordKey] = (), urgent: bool = False) -> None:
        """Desire records of one namespace, and withdraw others of it, as for one object."""
        keys = [*(record.key for record in records), *withdrawn]
        namespace = keys[0].id.partition("-")[0]
        former = {key: self.wanted.records.pop(key) for key in keys if key in self.wanted.records}
        self.wanted.records.update({record.key: record for record in records})
        self.wanted.namespaces.update(dict.fromkeys(keys, namespace))
        self.sync.mark_dirty(keys, urgent=urgent, former=Former(namespace, former))

    async def until(self, op: str, key: RecordKey) -> float:
        """Return the seconds from now until something was written."""
        began = self.clock.monotonic()
        while self.done.get((op, key), -1.0) < began:
            self._written.clear()
            await self._written.wait()
        return self.done[op, key] - began


def rules(count: int, namespace: str = "hog", version: int = 0) -> list[Record]:
    """Return this many routes of a namespace, each for a different host."""
    return [
        make_record(
            RecordKey("routes", f"{namespace}-{number}"), hosts=[f"{number}.{namespace}.test"], uri=f"/{version}"
        )
        for number in range(count)
    ]


async def one_large_object(stage: SharedStage) -> None:
    stage.apply(*rules(2500))


async def many_small_objects(stage: SharedStage) -> None:
    for record in rules(2500):
        stage.apply(record)


async def many_deletes(stage: SharedStage) -> None:
    stage.apply(*rules(2500))
    await asyncio.sleep(6)
    stage.apply(make_record(RecordKey("upstreams", "hog-u")), withdrawn=[record.key for record in rules(2500)])


async def rewriting(stage: SharedStage) -> None:
    for version in range(5):
        stage.apply(*rules(1500, version=version))
        await asyncio.sleep(1)


async def rewriting_an_object_after_the_other(stage: SharedStage) -> None:
    for version in range(3):
        for record in rules(1500, version=version):
            stage.apply(record)
        await asyncio.sleep(1)


async def hundred_namespaces(stage: SharedStage) -> None:
    for number in range(100):
        stage.apply(*rules(100, namespace=f"hog{number}"))


async def endpoints(stage: SharedStage) -> None:
    for version in range(4):
        nodes = {f"10.0.0.{version}:80": 1}
        for number in range(1500):
            stage.apply(make_record(RecordKey("upstreams", f"hog-{number}"), nodes=nodes), urgent=True)
        await asyncio.sleep(1)


async def hosts_of_the_victim(stage: SharedStage) -> None:
    hosts = ["v.test", "old.v.test", "*.v.test", "*.test"]
    stage.apply(*(make_record(record.key, hosts=hosts) for record in rules(2500)))


async def rejected(stage: SharedStage) -> None:
    put = stage.backend.put

    async def refuse(record: Record) -> bool:
        if record.key.id.startswith("hog"):
            await asyncio.sleep(WRITE_SECONDS)
            raise GatewayRejected(400, "not to my taste")
        return await put(record)

    stage.backend.put = refuse  # type: ignore[method-assign]
    stage.apply(*rules(2500))
    await asyncio.sleep(65)  # all are retried once


async def failing(stage: SharedStage) -> None:
    put = stage.backend.put

    async def throttle(record: Record) -> bool:
        if record.key.id.startswith("hog") and int(record.key.id.partition("-")[2]) % 10:
            await asyncio.sleep(WRITE_SECONDS)
            raise GatewayUnavailable("slow down", status=429, sent=False, retry_after=0.3)
        return await put(record)

    stage.backend.put = throttle  # type: ignore[method-assign]
    stage.apply(*rules(2500))
    await asyncio.sleep(3)


ATTACKS = (
    one_large_object,
    many_small_objects,
    many_deletes,
    rewriting,
    rewriting_an_object_after_the_other,
    hundred_namespaces,
    endpoints,
    hosts_of_the_victim,
    rejected,
    failing,
)


async def under_attack(attack: Act, then: Act) -> None:
    """Let one tenant cause load, while another one makes a change."""
    stage = SharedStage()
    async with stage.running():
        stage.apply(make_record(VICTIM_CONSUMER, plugins={"key-auth": {"key": "k"}}), urgent=True)
        stage.apply(make_record(VICTIM_OLD, hosts=["old.v.test"]))
        await asyncio.sleep(1)
        hog = asyncio.create_task(attack(stage))
        try:
            for _ in range(3):
                await asyncio.sleep(0.7)
                await then(stage)
        finally:
            hog.cancel()
            await asyncio.wait([hog])
    assert stage.gateway.violations == []


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_new_route_is_served_in_time(attack: Act, play: Play) -> None:
    async def new_route(stage: SharedStage) -> None:
        number = len(stage.done)
        route = RecordKey("routes", f"v-new-{number}")
        upstream = RecordKey("upstreams", f"v-new-{number}")
        stage.apply(make_record(route, hosts=["v.test"], upstream_id=upstream.id))
        stage.apply(make_record(upstream, nodes={"a:80": 1}))
        assert await stage.until("put", route) <= ROUTE_SECONDS

    play(under_attack(attack, new_route))


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_revoked_credential_is_removed_in_time(attack: Act, play: Play) -> None:
    async def revoke(stage: SharedStage) -> None:
        other = make_record(VICTIM_CONSUMER, plugins={"key-auth": {"key": f"k{len(stage.done)}"}})
        stage.apply(other, urgent=True)
        assert await stage.until("put", VICTIM_CONSUMER) <= REVOCATION_SECONDS
        stage.apply(withdrawn=[VICTIM_CONSUMER], urgent=True)
        assert await stage.until("delete", VICTIM_CONSUMER) <= REVOCATION_SECONDS

    play(under_attack(attack, revoke))
