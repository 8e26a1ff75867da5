"""Terms and audits: what a comparison with the gateway finds, restores, removes or holds back."""

import asyncio

import pytest

from apisix_ingress.errors import LeadershipLost
from apisix_ingress.model.keys import RecordKey
from tests.fakes.gateway import make_record
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


@on_stage
async def test_no_write_starts_when_the_lease_may_run_out_during_it() -> None:
    stage = Stage([UPSTREAM_RECORD])
    stage.term.deadline = stage.clock.monotonic() + stage.backend.timeout
    stage.ready.set()
    with pytest.raises(LeadershipLost, match="cluster c1: the lease may have run out"):
        await stage.sync.run(stage.term, stage.ready)
    assert stage.log == []
    assert not stage.sync.taken_over


@on_stage
async def test_a_write_in_flight_at_the_end_of_a_term_is_unknown_and_read_again() -> None:
    stage = Stage([UPSTREAM_RECORD, ROUTE_RECORD])
    stage.gateway.faults.slow = 1.0
    async with stage.running():
        assert stage.counts().in_flight == 1
    assert (stage.counts().in_flight, stage.counts().unknown) == (0, 1)
    stage.gateway.faults.slow = 0.0
    stage.gateway.stored[UPSTREAM] = UPSTREAM_RECORD.body
    async with stage.running():
        assert stage.log == [("put", "routes/r1")]


@on_stage
async def test_each_audit_reports_the_version_of_the_gateway() -> None:
    stage = Stage([UPSTREAM_RECORD])
    stage.gateway.version = "APISIX/3.18.0"
    async with stage.running():
        stage.gateway.version = "APISIX/3.19.0"
        await asyncio.sleep(150)
    assert list(dict.fromkeys(stage.versions)) == ["APISIX/3.18.0", "APISIX/3.19.0"]


@on_stage
async def test_changes_outside_a_term_are_found_by_taking_over() -> None:
    stage = Stage([UPSTREAM_RECORD])
    stage.want(UPSTREAM_RECORD, make_record(OTHER))
    assert not await stage.sync.drain(1)
    async with stage.running():
        assert set(stage.gateway.stored) == {UPSTREAM, OTHER}


@on_stage
async def test_audit_restores_what_was_changed_removed_or_stripped_of_its_label_and_removes_what_is_too_much() -> None:
    stage = Stage([UPSTREAM_RECORD, ROUTE_RECORD, make_record(OTHER)])
    async with stage.running():
        want = dict(stage.gateway.stored)
        stage.gateway.meddle(ROUTE, {**ROUTE_RECORD.body, "uri": "/edited"})
        stage.gateway.meddle(UPSTREAM, {"id": "u1", "nodes": {}})
        del stage.gateway.stored[OTHER]
        extra = make_record(RecordKey("routes", "extra"), upstream_id="u1")
        stage.gateway.stored[extra.key] = extra.body
        stranger = RecordKey("routes", "theirs")
        stage.gateway.stored[stranger] = {"id": "theirs"}
        await asyncio.sleep(62)
        assert stage.gateway.stored == {**want, stranger: {"id": "theirs"}}
        assert stage.notes.drifts == [4]
        await asyncio.sleep(120)
        assert stage.notes.drifts == [4, 0, 0]


@on_stage
async def test_audit_does_not_misjudge_what_is_written_meanwhile() -> None:
    stage = Stage([make_record(UPSTREAM, nodes={"a:0": 1})])
    async with stage.running():
        stage.gateway.log.clear()
        for n in range(1, 400):
            stage.want(make_record(UPSTREAM, nodes={f"a:{n}": 1}), *([make_record(OTHER)] if n % 2 else []))
            await asyncio.sleep(0.25)
        await asyncio.sleep(70)
        assert sum(stage.notes.drifts) == 0


@on_stage
async def test_the_effect_of_unacknowledged_writes_is_not_drift() -> None:
    keys = [RecordKey("upstreams", f"n{n}") for n in range(60)]
    stage = Stage([make_record(key) for key in keys])
    async with stage.running():
        # Writes are slow enough for comparisons while they fail.
        stage.gateway.faults.lost_reply = stage.gateway.faults.slow = 1.0
        stage.want(*(make_record(key, nodes={"b:80": 1}) for key in keys[:30]))
        await asyncio.sleep(100)
        assert stage.gateway.lists > 3
        stage.gateway.faults.lost_reply = stage.gateway.faults.slow = 0.0
        await asyncio.sleep(100)
        assert set(stage.gateway.stored) == set(keys[:30])
        assert sum(stage.notes.drifts) == 0


@on_stage
async def test_a_failed_audit_is_retried_soon_and_changes_nothing() -> None:
    stage = Stage([UPSTREAM_RECORD])
    async with stage.running():
        stage.gateway.faults.down = True
        await asyncio.sleep(62)
        assert stage.notes.drifts == []
        stage.gateway.faults.down = False
        await asyncio.sleep(7)
        assert (stage.notes.drifts, stage.notes.breakers) == ([0], [True, False])


@on_stage
async def test_unusual_number_of_orphans_is_held_back() -> None:
    stage = Stage(many(40)[:10], stored=many(40))
    async with stage.running():
        await asyncio.sleep(200)
        assert len(stage.gateway.stored) == 40
        assert stage.notes.helds[-1] == 30
        stage.want(*many(40))
        await asyncio.sleep(1)
        assert stage.counts().withheld == 0
        stage.want(*many(5))
        await asyncio.sleep(30)
        assert len(stage.gateway.stored) == 5


@on_stage
async def test_some_orphans_are_deleted() -> None:
    stage = Stage(many(40)[:22], stored=many(40))
    async with stage.running():
        assert len(stage.gateway.stored) == 22


@on_stage
async def test_records_of_objects_deleted_in_this_process_do_not_become_orphans() -> None:
    stage = Stage(many(40), stored=many(40))
    stage.sync.mark_dirty(stage.wanted.keys())
    stage.want()
    async with stage.running():
        await asyncio.sleep(10)
        assert stage.gateway.stored == {}


@on_stage
async def test_hosts_of_routes_that_stay_are_known_until_the_hold_is_lifted() -> None:
    kept = make_record(RecordKey("routes", "kept"), hosts=["kept.example.org"], upstream_id=UPSTREAM.id)
    stage = Stage([UPSTREAM_RECORD, ROUTE_RECORD], stored=[UPSTREAM_RECORD, ROUTE_RECORD, kept])
    stage.wanted.held.add(kept.key)
    async with stage.running():
        await asyncio.sleep(100)
        assert [(key, body["hosts"]) for key, body in stage.sync.kept_routes()] == [(kept.key, ["kept.example.org"])]
        stage.wanted.held.clear()
        await asyncio.sleep(2)
        assert list(stage.sync.kept_routes()) == []


@on_stage
async def test_held_record_stays_until_the_hold_is_lifted() -> None:
    stage = Stage(stored=[UPSTREAM_RECORD])
    stage.wanted.held.add(UPSTREAM)
    async with stage.running():
        await asyncio.sleep(100)
        assert UPSTREAM in stage.gateway.stored
        stage.wanted.held.clear()
        await asyncio.sleep(2)
        assert stage.gateway.stored == {}
        assert stage.sync.record_state(UPSTREAM) == APPLIED
