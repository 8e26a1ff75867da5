"""Whether the state of a record only reports a cluster that does not respond."""

import asyncio

import pytest

from apisix_ingress.errors import GatewayError, GatewayRejected, GatewayUnavailable
from apisix_ingress.gateway.backend import DependencyPending, NotTried
from tests.fakes.gateway import make_record
from tests.unit.apisix_ingress.gateway.sync.stage import (
    OTHER,
    ROUTE,
    ROUTE_RECORD,
    UPSTREAM,
    UPSTREAM_RECORD,
    FailingBackend,
    Stage,
    on_stage,
)


@on_stage
async def test_a_cluster_that_is_down_is_unreachable() -> None:
    stage = Stage([UPSTREAM_RECORD])
    stage.gateway.faults.down = True
    async with stage.running():
        await asyncio.sleep(30)
        assert not stage.sync.reachable
        assert stage.sync.record_state(UPSTREAM).is_away
        assert stage.sync.is_away


@on_stage
async def test_a_cluster_that_refuses_the_key_is_reachable() -> None:
    stage = Stage([UPSTREAM_RECORD])
    stage.gateway.faults.unauthorized = True
    async with stage.running():
        await asyncio.sleep(30)
        assert not stage.sync.reachable
        assert not stage.sync.record_state(UPSTREAM).is_away
        assert not stage.sync.is_away


@on_stage
async def test_a_record_waits_for_one_whose_write_has_no_response() -> None:
    stage = Stage()
    FailingBackend(stage, UPSTREAM, GatewayUnavailable("HTTP 502", status=502))
    async with stage.running():
        stage.want(UPSTREAM_RECORD, ROUTE_RECORD, make_record(OTHER))
        await asyncio.sleep(30)
        states = [stage.sync.record_state(key) for key in (UPSTREAM, ROUTE)]
    assert [(state.kind, state.is_away) for state in states] == [("unreachable", True), ("waiting", True)]


@on_stage
async def test_a_single_failing_record_reports_the_error_of_an_outage() -> None:
    stage = Stage()
    error = GatewayUnavailable("PUT upstreams/1: ConnectError: cannot connect to gateway:9180: Connection refused")
    error.cause = "gateway:9180: Connection refused"
    FailingBackend(stage, UPSTREAM, error)
    async with stage.running():
        stage.want(UPSTREAM_RECORD)
        await asyncio.sleep(30)
        assert not stage.sync.is_away
        assert stage.sync.record_state(UPSTREAM).message == error.cause


@pytest.mark.parametrize(
    "error",
    [
        GatewayRejected(400, "no"),
        DependencyPending("can not delete it"),
        NotTried("the ledger cannot be read"),
        ValueError("bug"),
        GatewayError("x"),
        GatewayUnavailable("HTTP 500", status=500),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_response_is_not_an_outage(play: object, error: Exception) -> None:
    @on_stage
    async def story() -> None:
        stage = Stage()
        FailingBackend(stage, UPSTREAM, error)
        async with stage.running():
            stage.want(UPSTREAM_RECORD, make_record(OTHER))
            await asyncio.sleep(30)
            state = stage.sync.record_state(UPSTREAM)
        assert state.kind not in ("pending", "applied")
        assert not state.is_away

    story(play)  # type: ignore[arg-type]
