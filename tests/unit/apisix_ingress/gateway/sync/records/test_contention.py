"""Records that compete for exclusive values, while the gateway's memory lags behind its store."""

import asyncio
from typing import Any

from apisix_ingress.errors import GatewayRejected, GatewayUnavailable
from apisix_ingress.gateway.backend import DependencyPending
from apisix_ingress.gateway.sync.records.unique_keys import MEMORY_SECONDS
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Record
from tests.fakes.gateway import make_record
from tests.unit.apisix_ingress.gateway.sync.stage import APPLIED, ROUTE, Stage, on_stage

LAG = MEMORY_SECONDS / 2
OLD = RecordKey("consumers", "z_old")
YOUNG = RecordKey("consumers", "a_young")
YOUNGEST = RecordKey("consumers", "a_youngest")


def keyed(key: RecordKey, value: str = "k1", **fields: Any) -> Record:
    return make_record(key, plugins={"key-auth": {"key": value}}, **fields)


def rule(key: RecordKey, *plugins: str) -> Record:
    return make_record(key, plugins={plugin: {} for plugin in plugins})


class Lagging:
    """Makes the gateway reject values that another record in its memory has; its memory is updated with a delay."""

    def __init__(self, stage: Stage) -> None:
        self.asked: list[RecordKey] = []
        self.rejected: RecordKey | None = None
        self._memory: dict[RecordKey, Record] = {}
        self._loop = asyncio.get_running_loop()
        put, delete = stage.backend.put, stage.backend.delete

        async def judged(record: Record) -> bool:
            self.asked.append(record.key)
            if record.key == self.rejected:
                raise GatewayRejected(400, "not to its taste")
            for key, other in self._memory.items():
                if key != record.key and other.takes & record.takes:
                    raise DependencyPending(f"duplicate: {key}", holder=key)
            in_doubt = await put(record)
            self._loop.call_later(LAG, self._memory.__setitem__, record.key, record)
            return in_doubt

        async def forgotten(key: RecordKey) -> bool:
            in_doubt = await delete(key)
            self._loop.call_later(LAG, self._memory.pop, key, None)
            return in_doubt

        stage.backend.put = judged  # type: ignore[method-assign]
        stage.backend.delete = forgotten  # type: ignore[method-assign]


async def assert_kept_when_another_thing_is_refused(stage: Stage, *, after: float) -> None:
    """Write a key for YOUNG; later desire one that it cannot get, and its first one for OLD: YOUNG keeps the first."""
    async with stage.running():
        stage.want(keyed(YOUNGEST, "k2"))
        await asyncio.sleep(5)
        stage.want(keyed(YOUNGEST, "k2"), keyed(YOUNG, "k1"))
        await asyncio.sleep(after)
        stage.want(keyed(YOUNGEST, "k2"), keyed(YOUNG, "k2"), keyed(OLD, "k1"))
        await asyncio.sleep(30)
        states = [stage.sync.record_state(key).message for key in (YOUNG, OLD)]
    assert holders(stage) == [YOUNG, YOUNGEST]
    assert states == [f"duplicate: {YOUNGEST}", f"duplicate: {YOUNG}"]


def holders(stage: Stage) -> list[RecordKey]:
    return sorted(stage.gateway.stored)


@on_stage
async def test_the_oldest_of_several_new_records_gets_an_exclusive_value() -> None:
    stage = Stage()
    Lagging(stage)
    async with stage.running():
        stage.want(keyed(OLD), keyed(YOUNG), keyed(YOUNGEST))
        await asyncio.sleep(30)
        states = [stage.sync.record_state(key) for key in (OLD, YOUNG, YOUNGEST)]
    assert holders(stage) == [OLD]
    assert [(state.kind, state.message) for state in states] == [
        ("applied", ""),
        ("waiting", f"duplicate: {OLD}"),
        ("waiting", f"duplicate: {OLD}"),
    ]


@on_stage
async def test_one_of_several_global_rules_gets_the_plugin_that_all_ask_for() -> None:
    stage = Stage()
    Lagging(stage)
    rules = [rule(RecordKey("global_rules", name), "cors", name) for name in "zyx"]
    async with stage.running():
        stage.want(*rules)
        await asyncio.sleep(30)
    assert holders(stage) == [rules[0].key]


@on_stage
async def test_a_late_rival_is_written_once_the_gateway_has_the_first_record() -> None:
    stage = Stage()
    Lagging(stage)
    async with stage.running():
        stage.want(keyed(YOUNG))
        await asyncio.sleep(LAG / 2)
        assert holders(stage) == [YOUNG]
        stage.want(keyed(OLD), keyed(YOUNG))
        await asyncio.sleep(30)
        assert stage.sync.record_state(OLD).message == f"duplicate: {YOUNG}"
    assert holders(stage) == [YOUNG]


@on_stage
async def test_what_was_given_a_moment_ago_counts_although_its_record_is_to_have_something_else_by_now() -> None:
    stage = Stage()
    Lagging(stage)
    await assert_kept_when_another_thing_is_refused(stage, after=LAG / 2)


@on_stage
async def test_recently_set_keys_do_not_delay_other_claims() -> None:
    stage = Stage()
    Lagging(stage)
    async with stage.running():
        stage.want(keyed(YOUNG, "k2"))
        await asyncio.sleep(LAG / 2)
        assert holders(stage) == [YOUNG]
        stage.want(keyed(OLD, "k1"), keyed(YOUNG, "k1"))
        await asyncio.sleep(LAG / 2)
        assert stage.sync.record_state(OLD) == APPLIED
        await asyncio.sleep(30)
        assert stage.sync.record_state(YOUNG).message == f"duplicate: {OLD}"


@on_stage
async def test_what_is_being_given_counts_although_its_record_is_to_have_something_else_by_now() -> None:
    stage = Stage()
    Lagging(stage)
    put = stage.backend.put

    async def slow(record: Record) -> bool:
        if record == keyed(YOUNG, "k1"):
            await asyncio.sleep(1.0)
        return await put(record)

    stage.backend.put = slow  # type: ignore[method-assign]
    await assert_kept_when_another_thing_is_refused(stage, after=0.5)


@on_stage
async def test_keys_possibly_set_by_an_unanswered_write_count() -> None:
    stage = Stage()
    Lagging(stage)
    put = stage.backend.put

    async def unanswered(record: Record) -> bool:
        in_doubt = await put(record)
        if record.key == YOUNG:
            raise GatewayUnavailable("no response")
        return in_doubt

    stage.backend.put = unanswered  # type: ignore[method-assign]
    async with stage.running():
        stage.want(keyed(YOUNG))
        await asyncio.sleep(LAG / 2)
        stage.want(keyed(OLD), keyed(YOUNG))
        await asyncio.sleep(5)
        assert stage.sync.record_state(OLD).message == f"duplicate: {YOUNG}"
    assert holders(stage) == [YOUNG]


@on_stage
async def test_when_the_winner_is_deleted_exactly_one_follows() -> None:
    stage = Stage()
    Lagging(stage)
    async with stage.running():
        stage.want(keyed(OLD), keyed(YOUNG), keyed(YOUNGEST))
        await asyncio.sleep(5)
        stage.want(keyed(YOUNG), keyed(YOUNGEST))
        await asyncio.sleep(30)
        states = {stage.sync.record_state(key).kind for key in (YOUNG, YOUNGEST)}
    assert states == {"applied", "waiting"}
    assert holders(stage) in ([YOUNG], [YOUNGEST])


@on_stage
async def test_a_rejected_predecessor_delays_no_record() -> None:
    stage = Stage()
    lagging = Lagging(stage)
    lagging.rejected = OLD
    async with stage.running():
        stage.want(keyed(OLD), keyed(YOUNG))
        await asyncio.sleep(1)
        assert stage.sync.record_state(YOUNG) == APPLIED
    assert holders(stage) == [YOUNG]


@on_stage
async def test_a_waiting_predecessor_delays_no_record() -> None:
    stage = Stage()
    Lagging(stage)
    split = {"rules": [{"weighted_upstreams": [{"upstream_id": "none"}]}]}
    waits = make_record(OLD, plugins={"key-auth": {"key": "k1"}, "traffic-split": split})
    async with stage.running():
        stage.want(waits, keyed(YOUNG))
        await asyncio.sleep(1)
        assert stage.sync.record_state(YOUNG) == APPLIED
        assert stage.sync.record_state(OLD).kind == "waiting"


@on_stage
async def test_uncontested_keys_are_written_immediately() -> None:
    stage = Stage()
    lagging = Lagging(stage)
    many = [keyed(RecordKey("consumers", f"c{number}"), f"k{number}") for number in range(20)]
    async with stage.running():
        stage.want(*many, make_record(ROUTE))
        await asyncio.sleep(LAG)
    assert sorted(lagging.asked) == sorted([*(record.key for record in many), ROUTE])


@on_stage
async def test_hundreds_of_claimants_are_examined_one_after_the_other() -> None:
    stage = Stage()
    Lagging(stage)
    count = 200
    rivals = [keyed(RecordKey("consumers", f"c{number}")) for number in range(count)]
    asked = 0
    get = stage.wanted.get

    def counting(key: RecordKey, cluster: str) -> Record | None:
        nonlocal asked
        asked += 1
        return get(key, cluster)

    stage.wanted.get = counting  # type: ignore[method-assign]
    async with stage.running():
        stage.want(*rivals)
        await asyncio.sleep(10)
        states = [stage.sync.record_state(record.key).kind for record in rivals]
    assert states.count("applied") == 1
    assert asked < 150 * count, "each write reads all of them"
