"""A gateway that fills defaults into records: they are written once, and again only after a change."""

import asyncio

from tests.fakes.gateway import make_record
from tests.unit.apisix_ingress.gateway.sync.stage import ROUTE, UPSTREAM, Stage, on_stage

UPSTREAM_RECORD = make_record(UPSTREAM, nodes={"a:80": 1})
ROUTE_RECORD = make_record(ROUTE, upstream_id="u1", plugins={"cors": {}})
PLUGINS = "plugins?all=true&subsystem=http"
SCHEMAS = {
    "schema/route": {"properties": {"priority": {"default": 0}, "status": {"default": 1}}},
    "schema/upstream": {"properties": {"hash_on": {"default": "vars"}}},
    PLUGINS: {"cors": {"schema": {"properties": {"max_age": {"default": 5}}}}},
}


def filling(version: str = "APISIX/3.13.0") -> Stage:
    stage = Stage([UPSTREAM_RECORD, ROUTE_RECORD])
    stage.gateway.schemas, stage.gateway.version = SCHEMAS, version
    return stage


@on_stage
async def test_restart_on_a_gateway_that_fills_in_defaults_writes_nothing() -> None:
    stage = filling()
    async with stage.running():
        assert stage.log == [("put", "upstreams/u1"), ("put", "routes/r1")]
        assert stage.gateway.stored[ROUTE]["plugins"] == {"cors": {"max_age": 5}}
        assert stage.gateway.asked == []
    stage.gateway.log.clear()
    stage.sync = stage.new_sync()
    async with stage.running():
        await asyncio.sleep(200)
        assert (stage.log, stage.notes.drifts) == ([], [0, 0, 0])
    assert sorted(stage.gateway.asked) == [PLUGINS, "schema/route", "schema/upstream"]


@on_stage
async def test_audit_of_a_gateway_that_fills_in_defaults_writes_nothing() -> None:
    stage = filling()
    async with stage.running():
        stage.gateway.log.clear()
        await asyncio.sleep(200)
        assert (stage.log, stage.notes.drifts) == ([], [0, 0, 0])
    assert len(stage.gateway.asked) == 3


@on_stage
async def test_a_manual_change_among_defaults_is_repaired() -> None:
    stage = filling()
    async with stage.running():
        kept = dict(stage.gateway.stored)
        await asyncio.sleep(62)
        for change in ({"priority": 9}, {"plugins": {"cors": {"max_age": 5}, "echo": {}}}, {"desc": "by hand"}):
            stage.gateway.log.clear()
            stage.gateway.meddle(ROUTE, {**kept[ROUTE], **change})
            await asyncio.sleep(60)
            assert (stage.log, stage.gateway.stored) == ([("put", "routes/r1")], kept)
        assert stage.notes.drifts == [0, 1, 1, 1]


@on_stage
async def test_an_explicit_default_is_equal_and_another_value_is_written() -> None:
    stage = filling()
    async with stage.running():
        pass
    for priority, want in ((0, []), (3, [("put", "routes/r1")])):
        stage.gateway.log.clear()
        stage.wanted.replace([UPSTREAM_RECORD, make_record(ROUTE, **{**ROUTE_RECORD.body, "priority": priority})])
        stage.sync = stage.new_sync()
        async with stage.running():
            assert stage.log == want


@on_stage
async def test_a_rejected_record_does_not_cause_drift_while_the_previous_one_stays() -> None:
    stage = filling()
    async with stage.running():
        stage.want(UPSTREAM_RECORD, make_record(ROUTE, **{**ROUTE_RECORD.body, "bad": True}))
        await asyncio.sleep(130)
        assert stage.notes.drifts == [0, 0]


@on_stage
async def test_gateway_that_publishes_no_schemas_is_written_as_before() -> None:
    stage = filling(version="")
    async with stage.running():
        pass
    stage.gateway.log.clear()
    stage.gateway.schemas = {}
    stage.sync = stage.new_sync()
    async with stage.running():
        assert len(stage.log) == 2
    assert len(stage.gateway.asked) == 3


@on_stage
async def test_an_explicit_default_written_while_leading_does_not_cause_drift_later() -> None:
    stage = filling()
    async with stage.running():
        await asyncio.sleep(62)
        stage.want(UPSTREAM_RECORD, make_record(ROUTE, **{**ROUTE_RECORD.body, "priority": 0}))
        await asyncio.sleep(1)
        stage.gateway.log.clear()
        await asyncio.sleep(130)
        assert (stage.log, stage.notes.drifts) == ([], [0, 0, 0])
