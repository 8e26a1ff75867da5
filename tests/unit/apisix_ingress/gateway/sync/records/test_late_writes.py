"""Writes that a gateway applies after they were given up, and after the next write."""

import asyncio
import logging

import pytest
import structlog
from structlog.testing import capture_logs

from apisix_ingress.errors import GatewayUnavailable
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Record
from tests.fakes.gateway import make_record
from tests.unit.apisix_ingress.gateway.sync.stage import (
    APPLIED,
    UPSTREAM,
    UPSTREAM_RECORD,
    Play,
    Stage,
    many,
    on_stage,
)

GIVEN_UP = 5.0
LATER = make_record(UPSTREAM, nodes={"b:80": 1})
RULE = make_record(RecordKey("global_rules", "g1"))


class Belated:
    """Lets the next write of each record time out and be applied some seconds later."""

    def __init__(self, stage: Stage, *records: Record, late: float = 3.0) -> None:
        self.done = 0
        self._stage = stage
        self._left = {record.key: record for record in records}
        self._late = late
        self._put, self._delete = stage.backend.put, stage.backend.delete
        stage.backend.put = self.put  # type: ignore[method-assign]
        stage.backend.delete = self.delete  # type: ignore[method-assign]

    async def put(self, record: Record) -> bool:
        if self._left.pop(record.key, None) is None:
            return await self._put(record)
        return await self._give_up(record.key, record)

    async def delete(self, key: RecordKey) -> bool:
        if self._left.pop(key, None) is None:
            return await self._delete(key)
        return await self._give_up(key, None)

    async def _give_up(self, key: RecordKey, record: Record | None) -> bool:
        def carry_out() -> None:
            self.done += 1
            if record is None:
                self._stage.gateway.delete(key)
            else:
                self._stage.gateway.put(key, record.body)

        asyncio.get_running_loop().call_later(GIVEN_UP + self._late, carry_out)
        await asyncio.sleep(GIVEN_UP)
        raise GatewayUnavailable("no response within 5 s")


@pytest.mark.parametrize("record", [UPSTREAM_RECORD, RULE], ids=lambda record: record.key.kind)
def test_a_late_write_of_a_deleted_record_is_deleted_within_seconds(play: Play, record: Record) -> None:
    async def story() -> None:
        stage = Stage()
        async with stage.running():
            late = Belated(stage, record)
            stage.want(record)
            await asyncio.sleep(1)
            stage.want()
            await asyncio.sleep(6)
            assert stage.gateway.stored == {}
            await asyncio.sleep(14)
            assert late.done == 1
            assert stage.gateway.stored == {}
            assert stage.log[-1] == ("delete", str(record.key))

    play(story())


@on_stage
async def test_an_older_body_written_late_is_replaced_by_the_newer_one() -> None:
    stage = Stage()
    async with stage.running():
        late = Belated(stage, UPSTREAM_RECORD)
        stage.want(UPSTREAM_RECORD)
        await asyncio.sleep(1)
        stage.want(LATER)
        await asyncio.sleep(20)
        assert late.done == 1
        assert stage.gateway.stored == {UPSTREAM: LATER.body}
        assert stage.sync.record_state(UPSTREAM) == APPLIED


@on_stage
async def test_a_delete_that_was_carried_out_late_is_made_good() -> None:
    stage = Stage([UPSTREAM_RECORD])
    async with stage.running():
        late = Belated(stage, UPSTREAM_RECORD)
        stage.want()
        await asyncio.sleep(1)
        stage.want(UPSTREAM_RECORD)
        await asyncio.sleep(20)
        assert late.done == 1
        assert stage.gateway.stored == {UPSTREAM: UPSTREAM_RECORD.body}


@on_stage
async def test_late_writes_are_reported_and_not_drift() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    stage = Stage()
    async with stage.running():
        Belated(stage, UPSTREAM_RECORD)
        stage.want(UPSTREAM_RECORD)
        await asyncio.sleep(1)
        stage.want()
        with capture_logs() as lines:
            await asyncio.sleep(20)
        assert [line["record"] for line in lines if line["event"] == "write.landed_late"] == [str(UPSTREAM)]
        assert stage.notes.drifts == [0]


@on_stage
async def test_a_retried_unchanged_write_needs_no_read() -> None:
    stage = Stage()
    async with stage.running():
        late = Belated(stage, UPSTREAM_RECORD)
        lists = stage.gateway.lists
        stage.want(UPSTREAM_RECORD)
        await asyncio.sleep(30)
        assert late.done == 1
        assert stage.gateway.lists == lists


@on_stage
async def test_many_late_writes_are_verified_together_without_holding_deletes_back() -> None:
    stage, records = Stage(), many(40)
    stage.sync = stage.new_sync(concurrency=40)
    async with stage.running():
        late = Belated(stage, *records)
        stage.want(*records)
        await asyncio.sleep(1)
        stage.want()
        await asyncio.sleep(6)
        assert stage.gateway.stored == {}
        lists = stage.gateway.lists
        await asyncio.sleep(14)
        assert late.done == 40
        assert stage.gateway.stored == {}
        assert sum(stage.notes.helds) == 0
        assert stage.gateway.lists == lists + 1


@on_stage
async def test_a_failed_read_is_retried() -> None:
    stage = Stage()
    stage.sync = stage.new_sync(check_interval=0.0)
    async with stage.running():
        Belated(stage, UPSTREAM_RECORD)
        stage.want(UPSTREAM_RECORD)
        await asyncio.sleep(1)
        stage.want()
        await asyncio.sleep(12)
        stage.gateway.faults.unauthorized = True
        await asyncio.sleep(5)
        assert stage.notes.comparisons[-1] is False
        stage.gateway.faults.unauthorized = False
        await asyncio.sleep(40)
        assert stage.gateway.stored == {}


@pytest.mark.parametrize(("resent", "left"), [(False, 0.0), (True, 4.0)])
def test_a_copy_that_was_cut_off_keeps_the_term_in_doubt(play: Play, resent: bool, left: float) -> None:
    async def story() -> None:
        stage = Stage()
        async with stage.running():
            put = stage.backend.put

            async def twice(record: Record) -> bool:
                await put(record)
                return resent

            stage.backend.put = twice  # type: ignore[method-assign]
            stage.want(UPSTREAM_RECORD)
            await asyncio.sleep(1)
            assert stage.term.unacked_seconds() == pytest.approx(left, abs=0.1)
            assert stage.sync.record_state(UPSTREAM) == APPLIED

    play(story())
