"""How writing ends: no write starts, those in flight get their responses, and those without one are reported."""

import asyncio

import pytest

from apisix_ingress.errors import GatewayRejected, GatewayUnavailable
from apisix_ingress.model.records import Record
from tests.fakes.gateway import make_record
from tests.unit.apisix_ingress.gateway.sync.stage import (
    OTHER,
    ROUTE_RECORD,
    UPSTREAM_RECORD,
    Play,
    Stage,
    many,
    on_stage,
)


def takes(stage: Stage, seconds: float, error: Exception | None = None) -> None:
    """Delay each put, and then let it succeed or fail."""
    put = stage.backend.put

    async def slow(record: Record) -> bool:
        await asyncio.sleep(seconds)
        if error is not None:
            raise error
        return await put(record)

    stage.backend.put = slow  # type: ignore[method-assign]


@on_stage
async def test_requests_in_flight_finish_and_none_starts() -> None:
    stage = Stage()
    async with stage.running():
        takes(stage, 4.0)
        stage.want(*many(50))
        await asyncio.sleep(1)
        assert stage.counts().in_flight == 4
        assert await stage.sync.close(6)
        assert len(stage.log) == 4
        stage.want(UPSTREAM_RECORD)
        await asyncio.sleep(30)
        assert len(stage.log) == 4
        assert stage.term.unacked_seconds() == 0


@on_stage
async def test_a_write_that_waits_for_the_one_in_flight_does_not_start() -> None:
    stage = Stage()
    async with stage.running():
        takes(stage, 4.0)
        stage.want(UPSTREAM_RECORD, ROUTE_RECORD)
        await asyncio.sleep(1)
        assert await stage.sync.close(6)
        await asyncio.sleep(30)
        assert stage.log == [("put", "upstreams/u1")]


@on_stage
async def test_closing_waits_only_so_long_and_what_is_cancelled_then_is_in_doubt() -> None:
    stage = Stage()
    async with stage.running():
        takes(stage, 1000.0)
        stage.want(UPSTREAM_RECORD)
        await asyncio.sleep(1)
        assert not await stage.sync.close(2)
        assert stage.term.unacked_seconds() == 0
    assert stage.counts().unknown == 1
    assert stage.term.unacked_seconds() == pytest.approx(6)  # it took 3 s, and may take twice as long again


@on_stage
async def test_a_write_that_is_cancelled_at_once_is_in_doubt_for_its_whole_time() -> None:
    stage = Stage()
    async with stage.running():
        takes(stage, 1000.0)
        stage.want(UPSTREAM_RECORD)
        await asyncio.sleep(1)
    assert stage.term.unacked_seconds() == pytest.approx(4)


@on_stage
async def test_closed_permanently_includes_outages_moves_and_new_terms() -> None:
    stage = Stage([UPSTREAM_RECORD])
    async with stage.running():
        stage.gateway.faults.down = True
        await asyncio.sleep(10)
        assert stage.counts().is_tripped
        assert await stage.sync.close(1)
        stage.gateway.faults.down = False
        await asyncio.sleep(10)
        assert not stage.counts().is_tripped
        stage.want(UPSTREAM_RECORD, make_record(OTHER))
        await asyncio.sleep(10)
        stage.sync.move(stage.backend)
        await asyncio.sleep(10)
    async with stage.running():
        await asyncio.sleep(10)
    assert stage.log == [("put", "upstreams/u1")]


@on_stage
async def test_a_follower_closes_at_once() -> None:
    stage = Stage([UPSTREAM_RECORD])
    assert await stage.sync.close(1)
    assert stage.clock.monotonic() == 0


@pytest.mark.parametrize(
    ("seconds", "error", "left"),
    [
        (0.5, None, 0.0),
        (0.5, GatewayRejected(400, "bad"), 0.0),
        (0.5, GatewayUnavailable("refused", sent=False), 0.0),
        (0.5, GatewayUnavailable("cut off"), 4.5),
        (5.0, GatewayUnavailable("no response within 5 s"), 10.0),
    ],
)
def test_a_write_without_an_answer_is_in_doubt_the_longer_the_later_it_was_given_up(
    play: Play, seconds: float, error: Exception | None, left: float
) -> None:
    async def story() -> None:
        stage = Stage()
        async with stage.running():
            takes(stage, seconds, error)
            stage.want(UPSTREAM_RECORD)
            await asyncio.sleep(0.1)
            assert await stage.sync.close(6)
            assert stage.term.unacked_seconds() == pytest.approx(left, abs=0.1)

    play(story())


@on_stage
async def test_a_write_that_stood_still_with_its_process_is_in_doubt_no_longer_than_others() -> None:
    stage = Stage()
    async with stage.running():
        takes(stage, 60.0, GatewayUnavailable("cut off"))
        stage.want(UPSTREAM_RECORD)
        await asyncio.sleep(0.1)
        assert await stage.sync.close(100)
        assert stage.term.unacked_seconds() == pytest.approx(10)


@on_stage
async def test_writes_to_a_previous_address_are_in_doubt() -> None:
    stage = Stage()
    async with stage.running():
        takes(stage, 1000.0)
        stage.want(UPSTREAM_RECORD)
        await asyncio.sleep(1)
        stage.sync.move(stage.backend)
        await asyncio.sleep(0.5)
        assert stage.term.unacked_seconds() == pytest.approx(3.5)
