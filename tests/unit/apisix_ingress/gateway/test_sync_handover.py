"""Records of which one takes over what another one has, where a gateway refuses both to have it."""

import asyncio

from apisix_ingress.errors import GatewayRejected
from apisix_ingress.gateway.backend import DependencyPending
from apisix_ingress.gateway.handover import Handover
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Record
from tests.fakes.gateway import make_record
from tests.unit.apisix_ingress.gateway.stage import APPLIED, Stage, on_stage

FIRST = RecordKey("global_rules", "first")
SECOND = RecordKey("global_rules", "second")
THIRD = RecordKey("global_rules", "third")


def rule(key: RecordKey, *plugins: str) -> Record:
    return make_record(key, plugins={plugin: {} for plugin in plugins})


class Exclusive:
    """Has the stage's gateway refuse a plugin that another global rule has; notes each write with its outcome."""

    def __init__(self, stage: Stage) -> None:
        self.tries: list[tuple[RecordKey, bool]] = []
        self.refuses_empty = False
        put = stage.backend.put

        async def exclusive(record: Record) -> None:
            await asyncio.sleep(0)
            if self.refuses_empty and not record.body["plugins"]:
                raise GatewayRejected(400, "plugins are missing")
            stored = {key: body for key, body in stage.gateway.stored.items() if key != record.key}
            taken = [key for key, body in stored.items() if body["plugins"].keys() & record.body["plugins"].keys()]
            self.tries.append((record.key, not taken))
            if taken:
                raise DependencyPending(f"already exists in {taken[0]}", holder=taken[0])
            await put(record)

        stage.backend.put = exclusive  # type: ignore[method-assign]


@on_stage
async def test_what_a_deleted_record_had_goes_to_the_next_one_with_the_delete() -> None:
    stage = Stage([rule(FIRST, "cors")])
    exclusive = Exclusive(stage)
    async with stage.running():
        stage.want(rule(SECOND, "cors"))
        await asyncio.sleep(0.1)
        assert stage.sync.record_state(SECOND) == APPLIED
    assert stage.log == [("put", str(FIRST)), ("delete", str(FIRST)), ("put", str(SECOND))]
    assert exclusive.tries == [(FIRST, True), (SECOND, False), (SECOND, True)]


@on_stage
async def test_what_a_changed_record_no_longer_has_goes_to_the_next_one_with_the_change() -> None:
    stage = Stage([rule(FIRST, "cors"), rule(SECOND, "gzip")])
    exclusive = Exclusive(stage)
    async with stage.running():
        exclusive.tries.clear()
        stage.want(rule(FIRST, "echo"), rule(SECOND, "gzip", "cors"))
        await asyncio.sleep(0.1)
        assert stage.sync.record_state(SECOND) == APPLIED
    assert exclusive.tries == [(FIRST, True), (SECOND, False), (SECOND, True)]


@on_stage
async def test_records_that_exchange_what_they_have_do_not_wait_for_each_other_for_ever() -> None:
    stage = Stage([rule(FIRST, "cors", "echo"), rule(SECOND, "gzip"), rule(THIRD, "csrf")])
    exclusive = Exclusive(stage)
    want = [rule(FIRST, "echo", "gzip"), rule(SECOND, "csrf"), rule(THIRD, "cors")]
    async with stage.running():
        exclusive.tries.clear()
        stage.want(*want)
        await asyncio.sleep(5)
        states = [stage.sync.record_state(record.key) for record in want]
    assert states == [APPLIED, APPLIED, APPLIED]
    assert {record.key: dict(record.body) for record in want} == stage.gateway.stored
    assert len(exclusive.tries) < 30


@on_stage
async def test_letting_go_is_tried_again_where_the_gateway_refuses_it() -> None:
    stage = Stage([rule(FIRST, "cors"), rule(SECOND, "gzip")])
    exclusive = Exclusive(stage)
    async with stage.running():
        exclusive.refuses_empty = True
        stage.want(rule(FIRST, "gzip"), rule(SECOND, "cors"))
        await asyncio.sleep(30)
        assert stage.sync.record_state(FIRST).kind == "waiting"
        exclusive.refuses_empty = False
        await asyncio.sleep(60)
        assert (stage.sync.record_state(FIRST), stage.sync.record_state(SECOND)) == (APPLIED, APPLIED)


@on_stage
async def test_what_another_record_keeps_is_asked_for_again_ever_more_rarely() -> None:
    stage = Stage([rule(FIRST, "cors")])
    exclusive = Exclusive(stage)
    async with stage.running():
        stage.want(rule(FIRST, "cors"), rule(SECOND, "cors"))
        await asyncio.sleep(60)
        state = stage.sync.record_state(SECOND)
    assert (state.kind, state.message) == ("waiting", f"already exists in {FIRST}")
    assert 10 < exclusive.tries.count((SECOND, False)) < 25


def test_a_circle_is_seen_by_those_in_it_alone() -> None:
    handover = Handover()
    handover.wait(FIRST, SECOND)
    handover.wait(SECOND, FIRST)
    handover.wait(THIRD, FIRST)
    assert [handover.is_circular(key) for key in (FIRST, SECOND, THIRD)] == [True, True, False]
    assert handover.freed(FIRST) == (SECOND, THIRD)
    assert [handover.is_circular(key) for key in (FIRST, SECOND, THIRD)] == [False, False, False]
    assert handover.freed(FIRST) == ()
