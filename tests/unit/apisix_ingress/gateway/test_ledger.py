"""Records without labels: the effect of the ledger between an engine and a gateway."""

import asyncio
from collections.abc import Collection

import pytest

from apisix_ingress.errors import GatewayRejected, KubeUnavailable
from apisix_ingress.gateway.backend import ClusterListing, NotTried
from apisix_ingress.gateway.ledger import LedgeredBackend, MemoryLedger
from apisix_ingress.gateway.sync.observer import RecordState
from apisix_ingress.model.keys import RECORD_KINDS, RecordKey, RecordKind
from apisix_ingress.model.records import Record
from tests.fakes.gateway import FakeBackend, FakeGateway, make_record
from tests.unit.apisix_ingress.gateway.sync.stage import Stage, on_stage

RULE, OTHER = RecordKey("global_rules", "a1"), RecordKey("global_rules", "b2")
ROUTE_RECORD = make_record(RecordKey("routes", "r1"), uri="/a")


class PersistentLedger(MemoryLedger):
    """A ledger that counts its writes, and fails on demand."""

    def __init__(self, *keys: RecordKey) -> None:
        super().__init__()
        self._keys["c1"] = set(keys)
        self.events: list[str] = []
        self.is_down = False

    def _check(self) -> None:
        if self.is_down:
            raise KubeUnavailable("no response in time")

    async def keys(self, cluster: str) -> frozenset[RecordKey]:
        self._check()
        return await super().keys(cluster)

    async def note(self, cluster: str, keys: Collection[RecordKey]) -> bool:
        self._check()
        fresh = set(keys) - self._keys[cluster]
        await super().note(cluster, keys)
        self.events += [f"note {key}" for key in sorted(fresh)]
        return bool(fresh)

    async def forget(self, cluster: str, keys: Collection[RecordKey]) -> None:
        self._check()
        self.events += [f"forget {key}" for key in sorted(keys)]
        await super().forget(cluster, keys)


def rule(key: RecordKey = RULE, plugin: str = "cors") -> Record:
    return Record(key, f"name-{key.id}", {"id": key.id, "plugins": {plugin: {}}})


def ledgered(ledger: PersistentLedger, wanted: list[Record], stored: list[Record]) -> Stage:
    stage = Stage(wanted, stored)
    # The fake backend is kept for its log; the engine uses the ledger in front of it.
    stage.backend = LedgeredBackend(FakeBackend(stage.gateway), ledger, "c1")  # type: ignore[assignment]
    stage.sync = stage.new_sync()
    return stage


@on_stage
async def test_a_record_is_noted_before_it_is_written_and_forgotten_after_its_deletion() -> None:
    ledger = PersistentLedger()
    stage = ledgered(ledger, [rule()], [])
    async with stage.running():
        assert (ledger.events, stage.log) == ([f"note {RULE}"], [("put", str(RULE))])
        stage.want(rule(plugin="echo"))
        await asyncio.sleep(1)
        assert ledger.events == [f"note {RULE}"]
        stage.want()
        await asyncio.sleep(1)
    assert ledger.events == [f"note {RULE}", f"forget {RULE}"]
    assert stage.gateway.stored == {}


@on_stage
async def test_an_undesired_record_in_the_ledger_is_deleted() -> None:
    stage = ledgered(PersistentLedger(RULE), [], [rule(), rule(OTHER)])
    async with stage.running():
        assert stage.log == [("delete", str(RULE))]
    assert set(stage.gateway.stored) == {OTHER}


@on_stage
async def test_an_equal_record_that_no_ledger_names_is_adopted_without_a_write_and_noted() -> None:
    ledger = PersistentLedger()
    stage = ledgered(ledger, [rule()], [rule(), rule(OTHER)])
    async with stage.running():
        assert stage.sync.record_state(RULE) == RecordState("applied")
        await asyncio.sleep(100)  # past an audit
        assert (stage.log, ledger.events) == ([], [f"note {RULE}"])
        stage.want()
        await asyncio.sleep(1)
    assert stage.log == [("delete", str(RULE))]
    assert set(stage.gateway.stored) == {OTHER}


@on_stage
async def test_an_adopted_record_is_deleted_with_its_object_before_the_ledger_lists_it() -> None:
    stage = ledgered(PersistentLedger(), [rule()], [rule()])
    async with stage.running():
        stage.want()
        await asyncio.sleep(1)
    assert stage.gateway.stored == {}


@on_stage
async def test_a_record_that_differs_is_adopted_with_one_write() -> None:
    stage = ledgered(PersistentLedger(), [rule(plugin="echo")], [rule()])
    async with stage.running():
        assert stage.log == [("put", str(RULE))]


@on_stage
async def test_an_equal_foreign_record_is_adopted_when_an_object_desires_it() -> None:
    stage = ledgered(PersistentLedger(), [], [rule()])
    async with stage.running():
        stage.want(rule(plugin="echo"))
        await asyncio.sleep(1)
        assert stage.log == [("put", str(RULE))]


@on_stage
async def test_only_records_without_a_label_wait_for_the_ledger() -> None:
    ledger = PersistentLedger()
    stage = ledgered(ledger, [rule()], [])
    ledger.is_down = True
    async with stage.running():
        stage.want(rule(), ROUTE_RECORD)
        await asyncio.sleep(10)
        assert stage.log == [("put", "routes/r1")]
        words = "the ledger cannot be written: no response in time"
        assert stage.sync.record_state(RULE) == RecordState("waiting", words)
        assert stage.sync.reachable
        ledger.is_down = False
        await asyncio.sleep(10)
    assert stage.log == [("put", "routes/r1"), ("put", str(RULE))]


@on_stage
async def test_without_its_ledger_nothing_is_deleted_until_it_can_be_read() -> None:
    ledger = PersistentLedger(RULE)
    ledger.is_down = True
    stage = ledgered(ledger, [], [rule()])
    async with stage.running():
        await asyncio.sleep(200)
        assert stage.log == []
        ledger.is_down = False
        await asyncio.sleep(100)
    assert stage.log == [("delete", str(RULE))]


@on_stage
async def test_a_delete_is_done_though_the_ledger_can_not_be_written_then_it_is_tidied() -> None:
    ledger = PersistentLedger()
    stage = ledgered(ledger, [rule()], [])
    async with stage.running():
        ledger.is_down = True
        stage.want()
        await asyncio.sleep(1)
        assert (stage.gateway.stored, ledger.events) == ({}, [f"note {RULE}"])
        ledger.is_down = False
        await asyncio.sleep(100)
    assert ledger.events == [f"note {RULE}", f"forget {RULE}"]


@on_stage
async def test_records_that_vanished_while_no_controller_ran_are_forgotten() -> None:
    ledger = PersistentLedger(RULE)
    stage = ledgered(ledger, [], [])
    async with stage.running():
        assert (ledger.events, stage.log) == ([f"forget {RULE}"], [])


@on_stage
async def test_a_ledger_that_can_be_read_but_not_written_stops_no_list() -> None:
    class ReadOnly(PersistentLedger):
        async def forget(self, cluster: str, keys: Collection[RecordKey]) -> None:
            raise KubeUnavailable("no response in time")

    stage = ledgered(ReadOnly(RULE), [ROUTE_RECORD], [])
    async with stage.running():
        assert stage.log == [("put", "routes/r1")]


async def test_labelled_records_are_not_in_the_ledger() -> None:
    ledger = PersistentLedger()
    ledger.is_down = True
    backend = LedgeredBackend(FakeBackend(FakeGateway()), ledger, "c1")
    await backend.put(ROUTE_RECORD)
    await backend.delete(ROUTE_RECORD.key)
    await backend.probe()
    assert (ledger.events, backend.credentials_changed(), backend.timeout) == ([], False, 5.0)


async def test_the_first_write_of_a_record_is_left_to_the_next_try() -> None:
    backend = LedgeredBackend(FakeBackend(gateway := FakeGateway()), PersistentLedger(), "c1")
    with pytest.raises(NotTried) as caught:
        await backend.put(rule())
    assert (caught.value.at_once, caught.value.sent, gateway.stored) == (True, False, {})
    await backend.put(rule())
    assert set(gateway.stored) == {RULE}


async def test_the_ledger_of_one_process_remembers_by_cluster() -> None:
    ledger = MemoryLedger()
    assert not await ledger.note("east", [RULE, OTHER])
    await ledger.forget("east", [OTHER])
    ledger.renew()
    assert (await ledger.keys("east"), await ledger.keys("west")) == (frozenset({RULE}), frozenset())


async def test_records_that_a_gateway_temporarily_does_not_list_are_not_forgotten() -> None:
    class Without(FakeBackend):
        async def list_managed(
            self, ledger: Collection[RecordKey], kinds: Collection[RecordKind] = RECORD_KINDS
        ) -> ClusterListing:
            return ClusterListing(disabled=frozenset({"global_rules"}))

    ledger = PersistentLedger(RULE)
    await LedgeredBackend(Without(FakeGateway()), ledger, "c1").list_managed(())
    assert ledger.events == []


class Refusing(FakeBackend):
    async def put(self, record: Record) -> bool:
        raise GatewayRejected(400, "no such plugin")


async def test_a_rejected_record_is_foreign_when_created_manually() -> None:
    ledger, gateway = PersistentLedger(), FakeGateway(stored={})
    backend = LedgeredBackend(Refusing(gateway), ledger, "c1")
    with pytest.raises(NotTried):
        await backend.put(rule())
    with pytest.raises(GatewayRejected):
        await backend.put(rule())
    assert await ledger.keys("c1") == frozenset()


async def test_a_record_whose_later_version_was_rejected_stays_managed() -> None:
    ledger, gateway = PersistentLedger(RULE), FakeGateway(stored={RULE: dict(rule().body)})
    backend = LedgeredBackend(Refusing(gateway), ledger, "c1")
    await backend.list_managed(())
    with pytest.raises(GatewayRejected):
        await backend.put(rule(plugin="echo"))
    assert await ledger.keys("c1") == {RULE}


@on_stage
async def test_a_new_term_trusts_the_ledger_rather_than_what_the_process_knew() -> None:
    ledger = PersistentLedger()
    stage = ledgered(ledger, [rule()], [])
    async with stage.running():
        assert stage.log == [("put", str(RULE))]
    await ledger.forget("c1", [RULE])  # another replica led and deleted it, and someone re-created it manually
    stage.wanted.replace([])
    async with stage.running():
        assert set(stage.gateway.stored) == {RULE}


@on_stage
async def test_a_comparison_without_the_ledger_is_repeated_soon() -> None:
    ledger = PersistentLedger(RULE, OTHER)
    stage = ledgered(ledger, [rule()], [rule(), rule(OTHER)])
    ledger.is_down = True
    async with stage.running():
        await asyncio.sleep(20)
        assert stage.log == []  # the owner of the other rule is unknown
        ledger.is_down = False
        await asyncio.sleep(10)
        assert stage.log == [("delete", str(OTHER))]
