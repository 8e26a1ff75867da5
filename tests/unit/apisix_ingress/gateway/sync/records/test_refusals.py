"""Single records that the gateway rejects, or that wait for others: what is reported, and what continues."""

import asyncio
import logging

import structlog
from structlog.testing import capture_logs

from apisix_ingress.errors import GatewayUnavailable
from apisix_ingress.gateway.sync.observer import RecordState
from apisix_ingress.gateway.sync.plan import FOREIGN_REMEDY
from apisix_ingress.gateway.sync.records.retries import CRASH_REMEDY
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Record
from tests.fakes.gateway import FakeBackend, make_record
from tests.unit.apisix_ingress.gateway.sync.stage import (
    APPLIED,
    OTHER,
    ROUTE,
    ROUTE_RECORD,
    UPSTREAM,
    UPSTREAM_RECORD,
    FailingBackend,
    Stage,
    on_stage,
)

CONFIG = RecordKey("plugin_configs", "p1")


@on_stage
async def test_a_rejected_record_affects_only_itself_and_quotes_the_gateway() -> None:
    stage = Stage([UPSTREAM_RECORD, make_record(CONFIG, bad=True), make_record(OTHER)])
    async with stage.running():
        await asyncio.sleep(20)
        assert set(stage.gateway.stored) == {UPSTREAM, OTHER}
        assert stage.sync.record_state(CONFIG) == RecordState("rejected", "plugin_configs/p1 is bad")
        assert (CONFIG, RecordState("rejected", "plugin_configs/p1 is bad")) in stage.notes.outcomes
        assert stage.notes.writes.count(("plugin_configs", "put", "GatewayRejected")) == 1
        stage.want(UPSTREAM_RECORD, make_record(CONFIG), make_record(OTHER))
        await asyncio.sleep(1)
        assert stage.sync.record_state(CONFIG) == APPLIED


@on_stage
async def test_a_rejected_record_is_retried_after_a_while() -> None:
    stage = Stage([make_record(UPSTREAM, bad=True)])
    async with stage.running():
        await asyncio.sleep(600)
        tries = stage.notes.writes.count(("upstreams", "put", "GatewayRejected"))
        assert 3 <= tries <= 5


@on_stage
async def test_a_rejected_update_keeps_the_old_version_for_its_referrers() -> None:
    stage = Stage([UPSTREAM_RECORD])
    async with stage.running():
        stage.want(make_record(UPSTREAM, bad=True), ROUTE_RECORD)
        await asyncio.sleep(1)
        assert stage.sync.record_state(UPSTREAM).kind == "rejected"
        assert stage.sync.record_state(ROUTE) == APPLIED
        assert stage.gateway.stored[UPSTREAM] == UPSTREAM_RECORD.body


@on_stage
async def test_a_record_waits_for_a_rejected_one_and_reports_why() -> None:
    split = {"traffic-split": {"rules": [{"weighted_upstreams": [{"upstream_id": "u1"}]}]}}
    stage = Stage([make_record(UPSTREAM, bad=True), make_record(CONFIG, plugins=split)])
    async with stage.running():
        want = RecordState("waiting", "waits for upstreams/u1, which the gateway rejected: upstreams/u1 is bad")
        assert stage.sync.record_state(CONFIG) == want
        stage.want(UPSTREAM_RECORD, make_record(CONFIG, plugins=split))
        await asyncio.sleep(1)
        assert stage.sync.record_state(CONFIG) == APPLIED


@on_stage
async def test_a_record_waiting_for_a_failing_one_reports_it() -> None:
    stage = Stage([UPSTREAM_RECORD, ROUTE_RECORD])
    stage.gateway.faults.server_error = 1.0
    async with stage.running():
        await asyncio.sleep(10)
        assert stage.sync.record_state(UPSTREAM).kind == "unreachable"
        assert stage.sync.record_state(ROUTE).kind == "waiting"


@on_stage
async def test_a_record_is_pending_while_the_one_it_waits_for_is() -> None:
    stage = Stage([])
    async with stage.running():
        stage.want(UPSTREAM_RECORD, ROUTE_RECORD)
        await asyncio.sleep(1)
        kinds = [state.kind for key, state in stage.notes.outcomes if key == ROUTE]
        assert (set(kinds[:-1]), kinds[-1]) == ({"pending"}, "applied")


@on_stage
async def test_record_waits_for_one_that_does_not_exist() -> None:
    stage = Stage([ROUTE_RECORD])
    async with stage.running():
        want = RecordState("waiting", "waits for upstreams/u1, which does not exist")
        assert stage.sync.record_state(ROUTE) == want
        assert stage.sync.idle()
        stage.gateway.stored[UPSTREAM] = {"id": "u1"}
        await asyncio.sleep(70)
        assert stage.sync.record_state(ROUTE) == APPLIED  # an audit found that another client created it


@on_stage
async def test_a_bug_in_a_write_is_retried_and_treated_as_a_lost_write() -> None:
    stage = Stage([UPSTREAM_RECORD])
    failing = FailingBackend(stage, UPSTREAM, ValueError("bug"))
    async with stage.running():
        assert stage.counts().unknown == 1
        await asyncio.sleep(5)
        want = RecordState("unreachable", "internal error: check the log of the controller")
        assert stage.sync.record_state(UPSTREAM) == want
        failing.error = None
        await asyncio.sleep(6)
        assert stage.sync.record_state(UPSTREAM) == APPLIED


@on_stage
async def test_a_record_that_always_fails_is_reported_with_its_location() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    stage = Stage([make_record(OTHER)])
    error = GatewayUnavailable("PUT upstreams/u1: HTTP 500: Internal Server Error", status=500)
    failing = FailingBackend(stage, UPSTREAM, error)
    with capture_logs() as lines:
        async with stage.running():
            stage.want(UPSTREAM_RECORD, make_record(ROUTE, uri="/", upstream_id="u1"), make_record(OTHER))
            await asyncio.sleep(0.1)
            assert stage.sync.record_state(UPSTREAM).kind == "pending"
            await asyncio.sleep(30)
            states = [stage.sync.record_state(key) for key in (UPSTREAM, ROUTE, OTHER)]
            failing.error = None
            await asyncio.sleep(10)
            assert [stage.sync.record_state(key) for key in (UPSTREAM, ROUTE)] == [APPLIED, APPLIED]
    reported = f"{error}; {CRASH_REMEDY}"
    assert all(place in reported for place in ("error log", "object", "record"))
    waits = f"waits for {UPSTREAM}: {reported}; until then, requests for every host, / get the response 503"
    want = [RecordState("unreachable", reported), RecordState("waiting", waits, is_closed=True), APPLIED]
    assert states == want
    assert [line["error"] for line in lines if line["event"] == "record.failing"] == [reported]


@on_stage
async def test_missing_reference_is_written_again_before_the_record_that_names_it() -> None:
    stage = Stage([UPSTREAM_RECORD])
    async with stage.running():
        stage.gateway.meddle(UPSTREAM, None)
        stage.want(UPSTREAM_RECORD, ROUTE_RECORD)
        await asyncio.sleep(2)
        assert set(stage.gateway.stored) == {UPSTREAM, ROUTE}


@on_stage
async def test_a_rejected_delete_is_retried_because_the_gateways_guard_lags_behind() -> None:
    stage = Stage([UPSTREAM_RECORD])
    async with stage.running():
        stage.gateway.faults.stale_guard = 1.0
        stage.want()
        await asyncio.sleep(10)
        assert UPSTREAM in stage.gateway.stored
        stage.gateway.faults.stale_guard = 0.0
        await asyncio.sleep(6)
        assert stage.gateway.stored == {}
        assert stage.notes.breakers == []


@on_stage
async def test_a_foreign_record_under_a_desired_id_is_kept() -> None:
    theirs = {"id": "u1", "nodes": {"x:1": 1}}
    stage = Stage([UPSTREAM_RECORD])
    stage.gateway.stored[UPSTREAM] = theirs
    async with stage.running():
        await asyncio.sleep(100)
        assert stage.gateway.stored == {UPSTREAM: theirs}
        want = "another client created upstreams/u1: delete it in the gateway"
        assert stage.sync.record_state(UPSTREAM) == RecordState("rejected", want)
        del stage.gateway.stored[UPSTREAM]
        await asyncio.sleep(70)
        assert stage.sync.record_state(UPSTREAM) == APPLIED


@on_stage
async def test_a_foreign_record_that_becomes_ours_and_as_desired_is_reported() -> None:
    stage = Stage([UPSTREAM_RECORD])
    stage.gateway.stored[UPSTREAM] = {"id": "u1", "nodes": {"x:1": 1}}
    async with stage.running():
        await asyncio.sleep(30)
        assert stage.notes.outcomes[-1][1].kind == "rejected"
        stage.gateway.stored[UPSTREAM] = dict(UPSTREAM_RECORD.body)
        await asyncio.sleep(70)
        assert stage.notes.outcomes[-1] == (UPSTREAM, APPLIED)


@on_stage
async def test_a_foreign_record_under_a_desired_id_is_reported_once_per_change_of_the_object() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    stage = Stage([UPSTREAM_RECORD])
    stage.gateway.stored |= {UPSTREAM: {"id": "u1"}, OTHER: {"id": "u2"}}
    with capture_logs() as lines:
        async with stage.running():
            await asyncio.sleep(200)
            stage.want(make_record(UPSTREAM, nodes={"c:80": 1}))
            await asyncio.sleep(100)
    got = [line for line in lines if line["event"] in ("audit.foreign", "record.foreign")]
    common = {"cluster": "c1", "remedy": FOREIGN_REMEDY, "log_level": "warning"}
    assert got == [
        {"event": "audit.foreign", "records": 1, "first": ["upstreams/u1"], **common},
        {"event": "record.foreign", "record": "upstreams/u1", "name": "name-u1", **common},
    ]


def nested(levels: int) -> dict[str, object]:
    body: dict[str, object] = {}
    for _ in range(levels):
        body = {"a": body}
    return body


@on_stage
async def test_a_record_that_cannot_be_encoded_does_not_hold_up_deletes() -> None:
    stage = Stage([UPSTREAM_RECORD])
    deep = make_record(OTHER, plugins=nested(300))

    class Encoding(FakeBackend):
        async def put(self, record: Record) -> bool:
            assert record.payload
            return await super().put(record)

    stage.backend = Encoding(stage.gateway)
    stage.sync = stage.new_sync()
    async with stage.running():
        stage.want(deep)
        await asyncio.sleep(10)
        assert UPSTREAM not in stage.gateway.stored
        want = RecordState("unreachable", "internal error: check the log of the controller")
        assert stage.sync.record_state(OTHER) == want
