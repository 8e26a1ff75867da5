"""Closed before open: the order in which routes of one host are created and deleted."""

import asyncio
from itertools import permutations
from typing import Any

import pytest

from apisix_ingress.errors import GatewayRejected, GatewayUnavailable
from apisix_ingress.gateway.sync.ordering.exposure_order import ExposureOrder
from apisix_ingress.gateway.sync.records.slot import Delete, Write
from apisix_ingress.gateway.sync.records.table import RecordTable
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Record
from tests.fakes.gateway import make_record
from tests.unit.apisix_ingress.gateway.sync.stage import UPSTREAM_RECORD, FailingBackend, Play, Stage, on_stage
from translation.closing import ABORT
from translation.plugins.exposure import exposure

HOST: dict[str, Any] = {"hosts": ["a.example"]}
AUTH: dict[str, Any] = {"plugins": {"key-auth": {}}}


def route(id_: str, **fields: Any) -> Record:
    return make_record(RecordKey("routes", id_), **{"uri": f"/{id_}", "upstream_id": "u1", **HOST, **fields})


OPEN = route("a-open")
GUARDED = route("b-guarded", **AUTH)
REFUSES = make_record(RecordKey("routes", "c-refuses"), uri="/c", plugins=ABORT, **HOST)
RECORDS = (UPSTREAM_RECORD, OPEN, GUARDED, REFUSES)


def routes_of(stage: Stage) -> list[tuple[str, str]]:
    """Return the writes and deletes of routes."""
    return [(op, key.id) for op, key in stage.gateway.log if key.kind == "routes"]


@pytest.mark.parametrize("order", list(permutations(RECORDS[1:])))
def test_routes_are_created_from_closed_to_open_and_deleted_from_open_to_closed(
    play: Play, order: tuple[Record, ...]
) -> None:
    async def story() -> None:
        stage = Stage([UPSTREAM_RECORD, *order])
        async with stage.running():
            stage.want()
            await asyncio.sleep(2)
        names = ["c-refuses", "b-guarded", "a-open"]
        assert routes_of(stage) == [("put", name) for name in names] + [("delete", name) for name in reversed(names)]

    play(story())


def test_a_delete_does_not_wait_for_itself_after_its_plugin_config_was_lost() -> None:
    config = make_record(RecordKey("plugin_configs", "p1"), plugins={"cors": {}})
    wanted, table = {config.key: config}, RecordTable()
    order = ExposureOrder(table, wanted.get, exposure)
    slot, record = table.slot(OPEN.key), route("a-open", plugin_config_id="p1")
    table.write_started(slot, record)
    table.write_succeeded(slot)
    slot.order = Delete(0)
    order.ordered(slot, None, "default")
    del wanted[config.key]
    assert order.may_delete(slot, "default")
    assert order.is_clear


def test_new_routes_without_a_guard_are_queued_last() -> None:
    table = RecordTable()
    order = ExposureOrder(table, dict[RecordKey, Record]().get, exposure)
    assert [order.is_last(record) for record in RECORDS] == [False, True, False, False]
    slot = table.slot(OPEN.key)
    table.write_started(slot, OPEN)
    table.write_succeeded(slot)
    assert not order.is_last(OPEN)


def test_a_route_that_gets_a_guard_before_it_is_created_is_classified_again() -> None:
    table = RecordTable()
    order = ExposureOrder(table, dict[RecordKey, Record]().get, exposure)
    assert order.is_last(OPEN)
    slot = table.slot(OPEN.key)
    slot.order = Write(0, guarded := route("a-open", **AUTH), "default")
    order.ordered(slot, guarded, "default")
    assert order.is_awaited(OPEN.key)


@on_stage
async def test_an_open_route_waits_for_the_guard_although_its_response_is_lost() -> None:
    stage = Stage([UPSTREAM_RECORD])
    failing = FailingBackend(stage, GUARDED.key, GatewayUnavailable("no response", sent=True))
    async with stage.running():
        stage.want(UPSTREAM_RECORD, OPEN, GUARDED)
        await asyncio.sleep(0.15)
        assert not stage.sync.idle()
        assert routes_of(stage) == []
        failing.error = None
        await asyncio.sleep(5)
    assert routes_of(stage) == [("put", "b-guarded"), ("put", "a-open")]


@on_stage
async def test_an_open_route_waits_until_a_rejected_guard_is_closed() -> None:
    stage = Stage([UPSTREAM_RECORD, OPEN, route("b-guarded", **AUTH, bad=True)])
    async with stage.running():
        assert routes_of(stage) == [("put", "b-guarded"), ("put", "a-open")]
        assert stage.gateway.stored[GUARDED.key]["plugins"] == ABORT


@on_stage
async def test_an_open_route_waits_while_a_guard_waits_for_its_plugin_config() -> None:
    config = make_record(RecordKey("plugin_configs", "p1"), **AUTH)
    guard = route("b-guarded", plugin_config_id="p1")
    stage = Stage([UPSTREAM_RECORD])
    failing = FailingBackend(stage, config.key, GatewayUnavailable("HTTP 500", status=500))
    async with stage.running():
        stage.want(UPSTREAM_RECORD, OPEN, guard, config)
        await asyncio.sleep(0.2)
        assert routes_of(stage) == []
        await asyncio.sleep(10)
        assert routes_of(stage) == [("put", "b-guarded"), ("put", "a-open")]
        assert stage.gateway.stored[guard.key]["plugins"] == ABORT
        failing.error = None
        await asyncio.sleep(10)
        assert stage.gateway.stored[guard.key] == guard.body


@pytest.mark.parametrize("error", [GatewayRejected(400, "invalid host"), GatewayUnavailable("HTTP 502", status=502)])
def test_an_open_route_does_not_wait_for_a_guard_that_failed_permanently(play: Play, error: Exception) -> None:
    async def story() -> None:
        stage = Stage([UPSTREAM_RECORD])
        FailingBackend(stage, GUARDED.key, error)
        async with stage.running():
            stage.want(UPSTREAM_RECORD, OPEN, GUARDED)
            await asyncio.sleep(20)
        assert routes_of(stage) == [("put", "a-open")]

    play(story())


@on_stage
async def test_an_edit_waits_only_if_it_opens_a_route() -> None:
    stage = Stage([UPSTREAM_RECORD, route("a-open", priority=1), route("x", **AUTH)])
    async with stage.running():
        stage.gateway.log.clear()
        failing = FailingBackend(stage, GUARDED.key, GatewayUnavailable("HTTP 500", status=500))
        stage.want(UPSTREAM_RECORD, OPEN, route("x"), GUARDED)
        await asyncio.sleep(0.15)
        assert routes_of(stage) == [("put", "a-open")]
        failing.error = None
        await asyncio.sleep(5)
    assert routes_of(stage) == [("put", "a-open"), ("put", "b-guarded"), ("put", "x")]


@on_stage
async def test_a_delete_waits_for_an_open_route_that_waits_for_a_guard() -> None:
    stage = Stage([UPSTREAM_RECORD, route("old", **HOST)])
    async with stage.running():
        stage.gateway.log.clear()
        failing = FailingBackend(stage, GUARDED.key, GatewayUnavailable("HTTP 500", status=500))
        stage.want(UPSTREAM_RECORD, OPEN, GUARDED)
        await asyncio.sleep(0.15)
        assert routes_of(stage) == []
        failing.error = None
        await asyncio.sleep(5)
    assert routes_of(stage) == [("put", "b-guarded"), ("put", "a-open"), ("delete", "old")]


@pytest.mark.parametrize(
    ("guarded", "opened", "waits"),
    [
        (["a.example"], ["b.example"], False),
        (["a.example"], ["*.example"], True),
        (["*.example"], ["a.example"], False),
        (["a.example"], [], True),
        ([], [], True),
        (["a.example", "b.example"], ["c.example", "b.example"], True),
    ],
)
def test_only_a_route_that_could_take_the_requests_of_a_guard_waits(
    play: Play, guarded: list[str], opened: list[str], waits: bool
) -> None:
    async def story() -> None:
        guard, other = (
            route(id_, **fields) if hosts else make_record(RecordKey("routes", id_), uri=f"/{id_}", **fields)
            for id_, hosts, fields in (
                ("b-guarded", guarded, AUTH | ({"hosts": guarded} if guarded else {})),
                ("a-open", opened, {"upstream_id": "u1"} | ({"hosts": opened} if opened else {})),
            )
        )
        stage = Stage([UPSTREAM_RECORD])
        FailingBackend(stage, guard.key, GatewayUnavailable("HTTP 500", status=500))
        async with stage.running():
            stage.want(UPSTREAM_RECORD, guard, other)
            await asyncio.sleep(0.15)
            assert (routes_of(stage) == []) == waits

    play(story())


@on_stage
async def test_an_open_route_does_not_wait_for_the_guards_of_another_namespace() -> None:
    stage = Stage([UPSTREAM_RECORD])
    stage.wanted.namespaces = {GUARDED.key: "one", OPEN.key: "two"}
    failing = FailingBackend(stage, GUARDED.key, GatewayUnavailable("HTTP 500", status=500))
    async with stage.running():
        stage.want(UPSTREAM_RECORD, OPEN, GUARDED)
        await asyncio.sleep(0.15)
        assert routes_of(stage) == [("put", "a-open")]
        assert failing.calls


@on_stage
async def test_a_later_guard_does_not_delay_an_open_route() -> None:
    stage = Stage([UPSTREAM_RECORD])
    failing = FailingBackend(stage, GUARDED.key, GatewayUnavailable("HTTP 500", status=500))
    first = FailingBackend(stage, OPEN.key, GatewayUnavailable("HTTP 503", status=503))
    async with stage.running():
        stage.want(UPSTREAM_RECORD, OPEN)
        await asyncio.sleep(0.05)
        stage.want(UPSTREAM_RECORD, OPEN, GUARDED)
        first.error = None
        await asyncio.sleep(0.6)
        assert routes_of(stage) == [("put", "a-open")]
        assert failing.calls


@on_stage
async def test_a_guard_that_is_edited_to_be_open_delays_nothing() -> None:
    stage = Stage([UPSTREAM_RECORD])
    failing = FailingBackend(stage, GUARDED.key, GatewayUnavailable("HTTP 500", status=500))
    async with stage.running():
        stage.want(UPSTREAM_RECORD, OPEN, GUARDED)
        await asyncio.sleep(0.05)
        stage.want(UPSTREAM_RECORD, OPEN, route("b-guarded"))
        await asyncio.sleep(1)
        assert routes_of(stage) == [("put", "a-open")]
        assert failing.calls


@on_stage
async def test_a_guard_that_is_no_longer_desired_delays_nothing() -> None:
    stage = Stage([UPSTREAM_RECORD])
    failing = FailingBackend(stage, GUARDED.key, GatewayUnavailable("HTTP 500", status=500))
    async with stage.running():
        stage.want(UPSTREAM_RECORD, OPEN, GUARDED)
        await asyncio.sleep(0.05)
        assert failing.calls
        stage.want(UPSTREAM_RECORD, OPEN)
        await asyncio.sleep(1)
        assert routes_of(stage)[0] == ("put", "a-open")
        assert stage.sync.idle()
