"""A cluster whose address changes during writes."""

import asyncio

from apisix_ingress.gateway.sync.observer import RecordState
from apisix_ingress.model.keys import RecordKey
from tests.fakes.gateway import FakeBackend, FakeGateway, make_record
from tests.unit.apisix_ingress.gateway.sync.stage import (
    APPLIED,
    OTHER,
    ROUTE,
    ROUTE_RECORD,
    UPSTREAM,
    UPSTREAM_RECORD,
    Stage,
    many,
    on_stage,
)


def elsewhere(stage: Stage) -> FakeGateway:
    """Move the cluster to a new gateway, and return it."""
    gateway = FakeGateway()
    stage.sync.move(FakeBackend(gateway))
    return gateway


@on_stage
async def test_a_new_address_is_listed_and_gets_the_missing_records() -> None:
    stage = Stage([UPSTREAM_RECORD, ROUTE_RECORD])
    async with stage.running():
        assert stage.sync.record_state(ROUTE) == APPLIED
        stage.gateway.log.clear()
        new = FakeGateway(stored={UPSTREAM: dict(UPSTREAM_RECORD.body), OTHER: dict(make_record(OTHER).body)})
        stage.sync.move(FakeBackend(new))
        await asyncio.sleep(2)
        assert new.log == [("put", ROUTE), ("delete", OTHER)]
        assert stage.sync.record_state(ROUTE) == APPLIED
    assert stage.log == []
    assert set(stage.gateway.stored) == {UPSTREAM, ROUTE}


@on_stage
async def test_confirmations_of_the_previous_address_are_discarded() -> None:
    stage = Stage([UPSTREAM_RECORD])
    async with stage.running():
        elsewhere(stage)
        assert stage.sync.record_state(UPSTREAM) == RecordState("pending")
        assert not stage.sync.taken_over


@on_stage
async def test_no_write_that_was_meant_for_the_former_address_reaches_the_new_one() -> None:
    stage = Stage()
    stage.gateway.faults.slow = 1.0
    async with stage.running():
        stage.want(*many(50))
        await asyncio.sleep(0.5)
        before = len(stage.log)
        stage.wanted.replace([UPSTREAM_RECORD])
        new = elsewhere(stage)
        await asyncio.sleep(30)
        assert new.log == [("put", UPSTREAM)]
        assert len(stage.log) <= before + 4  # writes in flight may have been applied
    assert stage.gateway.violations == []


@on_stage
async def test_records_deleted_meanwhile_are_deleted_at_the_previous_address() -> None:
    stage = Stage([UPSTREAM_RECORD, make_record(OTHER)])
    async with stage.running():
        elsewhere(stage)
        await asyncio.sleep(2)
        stage.want(UPSTREAM_RECORD)
        await asyncio.sleep(1)
        stage.gateway.log.clear()
        stage.sync.move(stage.backend)
        await asyncio.sleep(2)
        assert stage.log == [("delete", "upstreams/u2")]


@on_stage
async def test_an_unreachable_address_is_reported_until_it_is_replaced() -> None:
    stage = Stage([UPSTREAM_RECORD])
    async with stage.running():
        elsewhere(stage).faults.down = True
        await asyncio.sleep(10)
        assert stage.sync.record_state(UPSTREAM) == RecordState("unreachable", "connection refused", is_away=True)
        assert stage.sync.trouble == "connection refused"
        stage.sync.move(stage.backend)
        assert stage.sync.trouble == ""
        await asyncio.sleep(2)
        assert stage.sync.record_state(UPSTREAM) == APPLIED
    assert stage.notes.breakers == [True, False]


@on_stage
async def test_an_abandoned_write_that_the_same_gateway_applies_late_is_repaired() -> None:
    stage = Stage([make_record(UPSTREAM, nodes={"a:1": 1})])
    async with stage.running():
        stage.want(UPSTREAM_RECORD)
        stage.sync.move(FakeBackend(stage.gateway))
        await asyncio.sleep(2)
        stage.gateway.stored[UPSTREAM] = make_record(UPSTREAM, nodes={"a:1": 1}).body
        await asyncio.sleep(stage.backend.timeout + 2)
        assert stage.gateway.stored[UPSTREAM] == UPSTREAM_RECORD.body


@on_stage
async def test_a_follower_has_the_address_when_it_becomes_leader() -> None:
    stage = Stage([UPSTREAM_RECORD])
    new = elsewhere(stage)
    async with stage.running():
        assert new.log == [("put", UPSTREAM)]
    assert stage.gateway.lists == 0


@on_stage
async def test_several_moves_at_once_end_at_the_last_address() -> None:
    stage = Stage([UPSTREAM_RECORD])
    async with stage.running():
        skipped, last = elsewhere(stage), elsewhere(stage)
        await asyncio.sleep(2)
        assert (skipped.log, last.log) == ([], [("put", UPSTREAM)])
        assert stage.sync.idle()


@on_stage
async def test_a_move_writes_nothing_until_everything_is_translated() -> None:
    stage = Stage([UPSTREAM_RECORD])
    async with stage.running(ready=False):
        new = elsewhere(stage)
        await asyncio.sleep(100)
        assert new.log == []
        stage.ready.set()
        await asyncio.sleep(1)
        assert new.log == [("put", RecordKey("upstreams", "u1"))]
