"""When records are written: order, urgency, rate, and records that need no write."""

import asyncio
import math

from apisix_ingress.errors import GatewayUnavailable
from apisix_ingress.gateway.sync.observer import RecordState
from apisix_ingress.gateway.sync.records.slot import WARN_AFTER
from apisix_ingress.model.keys import RecordKey
from tests.fakes.gateway import make_record
from tests.unit.apisix_ingress.gateway.sync.stage import (
    APPLIED,
    OTHER,
    ROUTE_RECORD,
    UPSTREAM,
    UPSTREAM_RECORD,
    FailingBackend,
    Stage,
    many,
    on_stage,
)


@on_stage
async def test_nothing_is_written_before_everything_is_translated() -> None:
    stale = make_record(OTHER)
    stage = Stage([UPSTREAM_RECORD], stored=[stale])
    async with stage.running(ready=False):
        await asyncio.sleep(500)
        assert stage.log == []
        assert stage.sync.record_state(UPSTREAM) == RecordState("pending")
        lists = stage.gateway.lists
        stage.ready.set()
        await asyncio.sleep(1)
        assert stage.log == [("put", "upstreams/u1"), ("delete", "upstreams/u2")]
        assert stage.gateway.lists == lists + 1  # the first list was too old by then


@on_stage
async def test_equal_records_are_adopted_without_a_write() -> None:
    stage = Stage([UPSTREAM_RECORD, ROUTE_RECORD], stored=[UPSTREAM_RECORD, ROUTE_RECORD])
    for body in stage.gateway.stored.values():
        dict(body)["update_time"] = 1
    async with stage.running():
        await asyncio.sleep(300)
        assert stage.log == []
        assert stage.sync.idle()
        assert (UPSTREAM, APPLIED) in stage.notes.outcomes
        assert stage.counts()._asdict() == {
            "applied": 2, "unknown": 0, "in_flight": 0, "queued": 0, "rejected": 0, "withheld": 0, "is_tripped": False
        }  # fmt: skip


@on_stage
async def test_references_of_a_record_are_written_first_and_deleted_last() -> None:
    stage = Stage([ROUTE_RECORD, UPSTREAM_RECORD])
    async with stage.running():
        stage.want()
        await asyncio.sleep(1)
    want = [("put", "upstreams/u1"), ("put", "routes/r1"), ("delete", "routes/r1"), ("delete", "upstreams/u1")]
    assert stage.log == want
    assert stage.gateway.violations == []


@on_stage
async def test_the_successor_exists_before_the_old_record_is_deleted() -> None:
    stage = Stage([UPSTREAM_RECORD, ROUTE_RECORD])
    async with stage.running():
        stage.gateway.log.clear()
        successor = make_record(RecordKey("routes", "new"), upstream_id="u2")
        stage.want(make_record(OTHER), successor)
        await asyncio.sleep(1)
    assert stage.log[:2] == [("put", "upstreams/u2"), ("put", "routes/new")]
    assert stage.log[2:] == [("delete", "routes/r1"), ("delete", "upstreams/u1")]


@on_stage
async def test_a_delete_proceeds_when_a_preceding_write_keeps_failing() -> None:
    stage = Stage([UPSTREAM_RECORD])
    refusing = FailingBackend(stage, OTHER, GatewayUnavailable("HTTP 502", status=502))
    async with stage.running():
        stage.want(make_record(OTHER))
        await asyncio.sleep(0.1)
        assert UPSTREAM in stage.gateway.stored
        await asyncio.sleep(30)
        assert UPSTREAM not in stage.gateway.stored
        assert stage.sync.record_state(OTHER) == RecordState("unreachable", "HTTP 502", is_away=True)
    assert refusing.calls > WARN_AFTER


@on_stage
async def test_urgent_record_overtakes_a_cold_sync() -> None:
    others = [make_record(RecordKey("upstreams", f"cold{n}")) for n in range(200)]
    stage = Stage(others)
    async with stage.running(ready=False):
        stage.ready.set()
        await asyncio.sleep(0.1)
        stage.want(*others, UPSTREAM_RECORD, urgent=True)
        await asyncio.sleep(5)
    place = stage.log.index(("put", "upstreams/u1"))
    assert 0 < place < 50


@on_stage
async def test_a_flapping_record_causes_a_burst_and_two_writes_per_second() -> None:
    stage = Stage()
    async with stage.running():
        for n in range(500):
            stage.want(make_record(UPSTREAM, nodes={f"a:{n}": 1}))
            await asyncio.sleep(0.02)
        await asyncio.sleep(2)
        assert stage.sync.idle()
        assert len(stage.log) <= 4 + 2 * 10 + 1
        assert stage.gateway.stored[UPSTREAM]["nodes"] == {"a:499": 1}


@on_stage
async def test_change_during_a_flight_is_written_after_it() -> None:
    stage = Stage()
    stage.gateway.faults.slow = 1.0
    async with stage.running():
        stage.want(make_record(UPSTREAM, nodes={"a:1": 1}))
        await asyncio.sleep(0)
        stage.want(make_record(UPSTREAM, nodes={"a:2": 1}))
        stage.want(make_record(UPSTREAM, nodes={"a:3": 1}))
        await asyncio.sleep(30)
        assert stage.gateway.stored[UPSTREAM]["nodes"] == {"a:3": 1}
        assert len(stage.log) == 2
    assert stage.gateway.violations == []


@on_stage
async def test_record_for_existing_ones_only_is_updated_but_not_created() -> None:
    record = make_record(UPSTREAM, existing_only=True, nodes={"a:80": 1})
    stage = Stage([record, make_record(OTHER, existing_only=True)], stored=[make_record(UPSTREAM)])
    async with stage.running():
        assert stage.gateway.stored == {UPSTREAM: record.body}
        assert stage.sync.record_state(OTHER) == APPLIED


@on_stage
async def test_draining_waits_for_queued_writes_but_not_forever() -> None:
    stage = Stage()
    async with stage.running():
        stage.want(*many(50))
        assert await stage.sync.drain(10)
        assert len(stage.gateway.stored) == 50
        stage.gateway.faults.slow = 1.0
        stage.want(*many(51))
        assert not await stage.sync.drain(0.0001)


@on_stage
async def test_writes_in_flight_never_exceed_the_concurrency() -> None:
    stage = Stage(many(100))
    stage.sync = stage.new_sync(concurrency=7)
    async with stage.running():
        assert len(stage.gateway.stored) == 100
    assert stage.backend.peak == 7


@on_stage
async def test_records_that_need_no_write_do_not_keep_others_from_running() -> None:
    stage = Stage(many(300), stored=many(300))
    async with stage.running():
        stage.sync.mark_dirty(stage.wanted.keys())
        ticks = 0
        while not stage.sync.idle():
            await asyncio.sleep(0)
            ticks += 1
        assert ticks > 1
        assert stage.log == []


@on_stage
async def test_state_of_a_record_that_is_to_go_is_pending() -> None:
    stage = Stage([UPSTREAM_RECORD])
    async with stage.running():
        stage.want()
        assert stage.sync.record_state(UPSTREAM) == RecordState("pending")
        await asyncio.sleep(1)
        assert stage.sync.record_state(UPSTREAM) == APPLIED
        assert math.isinf(stage.term.remaining())


@on_stage
async def test_writes_of_a_takeover_are_not_changes_and_are_reported_when_live() -> None:
    stage = Stage([UPSTREAM_RECORD])
    async with stage.running():
        await asyncio.sleep(1)
        assert stage.sync.quiet_for == math.inf
        assert set(stage.notes.outcomes) == {(UPSTREAM, APPLIED)}
        stage.sync.mark_dirty([UPSTREAM])
        await asyncio.sleep(2)
        assert stage.sync.quiet_for == 2.0
