"""Routes that cannot be written: their requests are refused until they can, unless an earlier version serves."""

import asyncio
from typing import Any

from apisix_ingress.errors import GatewayRejected, GatewayUnavailable
from apisix_ingress.gateway.sync.observer import RecordState
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Record
from tests.fakes.gateway import OURS, make_record
from tests.unit.apisix_ingress.gateway.sync.stage import (
    APPLIED,
    OTHER,
    ROUTE,
    UPSTREAM,
    UPSTREAM_RECORD,
    FailingBackend,
    Stage,
    on_stage,
)
from translation.closing import ABORT

CONFIG = RecordKey("plugin_configs", "p1")
MATCH: dict[str, Any] = {"uri": "/admin*", "host": "a.example", "priority": 3}
CLOSED = {"id": "r1", "name": "name-r1", "labels": OURS, **MATCH, "plugins": ABORT}
NOTE = "until then, requests for a.example, /admin* get the response 503"
REJECTED = RecordState("rejected", f"routes/r1 is bad; {NOTE}", is_closed=True)


def guarded(**fields: Any) -> Record:
    return make_record(ROUTE, **{**MATCH, "upstream_id": "u1", "plugins": {"key-auth": {}}, **fields})


def rejected(**fields: Any) -> Record:
    return guarded(bad=True, **fields)


@on_stage
async def test_a_rejected_route_without_an_earlier_version_is_closed_until_it_is_repaired() -> None:
    stage = Stage([UPSTREAM_RECORD, rejected()])
    async with stage.running():
        assert stage.gateway.stored[ROUTE] == CLOSED
        assert stage.sync.record_state(ROUTE) == REJECTED
        assert (ROUTE, REJECTED) in stage.notes.outcomes
        assert stage.sync.idle()
        stage.want(UPSTREAM_RECORD, guarded())
        await asyncio.sleep(1)
        assert stage.gateway.stored[ROUTE] == guarded().body
        assert stage.sync.record_state(ROUTE) == APPLIED
    assert stage.gateway.violations == []


@on_stage
async def test_an_earlier_version_of_a_rejected_route_stays() -> None:
    stage = Stage([UPSTREAM_RECORD, guarded()])
    async with stage.running():
        stage.want(UPSTREAM_RECORD, rejected())
        await asyncio.sleep(100)
        assert stage.gateway.stored[ROUTE] == guarded().body
        assert stage.sync.record_state(ROUTE) == RecordState("rejected", "routes/r1 is bad")


@on_stage
async def test_a_closed_route_is_not_written_again_while_nothing_changes() -> None:
    stage = Stage([UPSTREAM_RECORD, rejected()])
    async with stage.running():
        await asyncio.sleep(1000)
    assert stage.log == [("put", "upstreams/u1"), ("put", "routes/r1")]


@on_stage
async def test_after_a_restart_a_closed_route_is_tried_once_and_stays_closed() -> None:
    stage = Stage([UPSTREAM_RECORD, rejected()])
    async with stage.running():
        pass
    stage.gateway.log.clear()
    stage.sync = stage.new_sync()
    stage.notes.writes.clear()
    async with stage.running():
        await asyncio.sleep(30)
        assert (stage.log, stage.notes.writes) == ([], [("routes", "put", "GatewayRejected")])
        assert stage.sync.record_state(ROUTE) == REJECTED
        stage.want(UPSTREAM_RECORD, guarded())
        await asyncio.sleep(1)
        assert stage.gateway.stored[ROUTE] == guarded().body


@on_stage
async def test_an_emptied_gateway_has_no_earlier_version() -> None:
    stage = Stage([UPSTREAM_RECORD, guarded()])
    async with stage.running():
        stage.want(UPSTREAM_RECORD, rejected())
        await asyncio.sleep(1)
        stage.gateway.wipe()
        await asyncio.sleep(20)
        assert stage.gateway.stored[ROUTE] == CLOSED


@on_stage
async def test_a_closed_route_follows_the_match_of_its_object() -> None:
    stage = Stage([UPSTREAM_RECORD, rejected()])
    async with stage.running():
        stage.want(UPSTREAM_RECORD, rejected(uri="/private"))
        await asyncio.sleep(1)
        assert stage.gateway.stored[ROUTE] == {**CLOSED, "uri": "/private"}
    stage.sync = stage.new_sync()
    stage.wanted.replace([UPSTREAM_RECORD, rejected(uri="/other")])
    async with stage.running():
        assert stage.gateway.stored[ROUTE] == {**CLOSED, "uri": "/other"}


@on_stage
async def test_a_closed_route_whose_object_is_deleted_is_deleted() -> None:
    stage = Stage([UPSTREAM_RECORD, rejected()])
    async with stage.running():
        stage.want()
        await asyncio.sleep(1)
        assert stage.gateway.stored == {}
        assert stage.sync.record_state(ROUTE) == APPLIED


@on_stage
async def test_a_rejected_route_is_closed_before_the_route_that_it_replaces_is_deleted() -> None:
    stage = Stage([UPSTREAM_RECORD, make_record(RecordKey("routes", "old"), **MATCH, upstream_id="u1")])
    async with stage.running():
        stage.gateway.log.clear()
        stage.want(UPSTREAM_RECORD, rejected())
        await asyncio.sleep(1)
    assert stage.log == [("put", "routes/r1"), ("delete", "routes/old")]


@on_stage
async def test_a_gateway_without_the_plugin_gets_a_route_without_plugins() -> None:
    stage = Stage([UPSTREAM_RECORD, rejected()])
    put = stage.backend.put

    async def without_plugin(record: Record) -> bool:
        if "fault-injection" in record.body.get("plugins", {}):
            raise GatewayRejected(400, "unknown plugin [fault-injection]")
        return await put(record)

    stage.backend.put = without_plugin  # type: ignore[method-assign]
    async with stage.running():
        assert stage.gateway.stored[ROUTE] == {**CLOSED, "plugins": {}}
        stage.gateway.log.clear()
        await asyncio.sleep(1000)
        assert stage.log == []


@on_stage
async def test_a_route_with_an_invalid_condition_closes_its_path() -> None:
    stage = Stage([UPSTREAM_RECORD, rejected(vars=[["x", "?"]])])
    put = stage.backend.put

    async def strict(record: Record) -> bool:
        if "vars" in record.body:
            raise GatewayRejected(400, "invalid vars")
        return await put(record)

    stage.backend.put = strict  # type: ignore[method-assign]
    async with stage.running():
        want = {name: value for name, value in CLOSED.items() if name != "uri"} | {"uris": ["/admin*"]}
        assert stage.gateway.stored[ROUTE] == want


@on_stage
async def test_a_route_whose_host_the_gateway_rejects_is_left_alone() -> None:
    stage = Stage([UPSTREAM_RECORD, rejected()])
    failing = FailingBackend(stage, ROUTE, GatewayRejected(400, "invalid host"))
    async with stage.running():
        await asyncio.sleep(5)
        assert stage.sync.record_state(ROUTE) == RecordState("rejected", "invalid host")
        assert failing.calls == 5  # itself, and its closing records
        await asyncio.sleep(30)
        assert failing.calls == 5


@on_stage
async def test_a_route_whose_plugin_config_is_rejected_is_closed_until_that_is_repaired() -> None:
    route = guarded(plugins={}, plugin_config_id="p1")
    stage = Stage([UPSTREAM_RECORD, make_record(CONFIG, bad=True), route])
    async with stage.running():
        assert stage.gateway.stored[ROUTE] == CLOSED
        want = f"waits for plugin_configs/p1, which the gateway rejected: plugin_configs/p1 is bad; {NOTE}"
        assert stage.sync.record_state(ROUTE) == RecordState("waiting", want, is_closed=True)
        stage.want(UPSTREAM_RECORD, make_record(CONFIG), route)
        await asyncio.sleep(1)
        assert stage.gateway.stored[ROUTE] == route.body


@on_stage
async def test_a_route_is_closed_if_its_plugin_config_waits_for_a_rejected_record() -> None:
    split = {"traffic-split": {"rules": [{"weighted_upstreams": [{"upstream_id": "u2"}]}]}}
    route = guarded(plugins={}, plugin_config_id="p1")
    stage = Stage([UPSTREAM_RECORD, make_record(OTHER, bad=True), make_record(CONFIG, plugins=split), route])
    async with stage.running():
        assert stage.gateway.stored[ROUTE] == CLOSED


@on_stage
async def test_a_route_is_not_closed_while_its_upstream_is_about_to_be_desired() -> None:
    stage = Stage()
    async with stage.running():
        stage.want(guarded())
        await asyncio.sleep(0.3)
        stage.want(UPSTREAM_RECORD, guarded())
        await asyncio.sleep(1)
    assert stage.log == [("put", "upstreams/u1"), ("put", "routes/r1")]


@on_stage
async def test_a_route_whose_plugin_config_is_never_desired_is_closed_after_a_while() -> None:
    stage = Stage([UPSTREAM_RECORD, guarded(plugin_config_id="p1")])
    async with stage.running():
        await asyncio.sleep(3)
        assert stage.gateway.stored[ROUTE] == CLOSED
        await asyncio.sleep(200)
        assert stage.log == [("put", "upstreams/u1"), ("put", "routes/r1")]


@on_stage
async def test_a_route_that_crashes_the_gateway_is_closed() -> None:
    stage = Stage([UPSTREAM_RECORD, guarded()])
    put = stage.backend.put

    async def crashing(record: Record) -> bool:
        if "key-auth" in record.body.get("plugins", {}):
            raise GatewayUnavailable("HTTP 500", status=500)
        return await put(record)

    stage.backend.put = crashing  # type: ignore[method-assign]
    async with stage.running():
        await asyncio.sleep(10)
        assert stage.gateway.stored[ROUTE] == CLOSED
        stage.backend.put = put  # type: ignore[method-assign]
        await asyncio.sleep(10)
        assert stage.gateway.stored[ROUTE] == guarded().body


@on_stage
async def test_a_gateway_that_can_not_be_reached_causes_no_closing_records() -> None:
    stage = Stage([UPSTREAM_RECORD, guarded()])
    stage.gateway.faults.failing = True
    async with stage.running():
        await asyncio.sleep(60)
        stage.gateway.faults.failing = False
        await asyncio.sleep(60)
    assert stage.log == [("put", "upstreams/u1"), ("put", "routes/r1")]


@on_stage
async def test_a_lost_response_to_a_closing_record_is_repeated() -> None:
    stage = Stage([UPSTREAM_RECORD, rejected()])
    stage.gateway.faults.lost_reply = 0.7
    async with stage.running():
        await asyncio.sleep(60)
        stage.gateway.faults.lost_reply = 0.0
        await asyncio.sleep(20)
        assert stage.gateway.stored[ROUTE] == CLOSED
        assert stage.sync.record_state(ROUTE) == REJECTED


@on_stage
async def test_a_record_of_another_client_is_not_closed() -> None:
    theirs = {"id": "r1", "uri": "/theirs"}
    stage = Stage([UPSTREAM_RECORD, rejected()])
    stage.gateway.stored[ROUTE] = theirs
    async with stage.running():
        await asyncio.sleep(100)
        assert stage.gateway.stored[ROUTE] == theirs


@on_stage
async def test_a_closed_record_that_another_client_deletes_is_closed_again() -> None:
    stage = Stage([UPSTREAM_RECORD, rejected()])
    async with stage.running():
        stage.gateway.meddle(ROUTE, None)
        await asyncio.sleep(70)
        assert stage.gateway.stored[ROUTE] == CLOSED
        assert UPSTREAM in stage.gateway.stored
