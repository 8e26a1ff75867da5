"""Ids that may belong to other records: checks before first writes, and ids that move to another name."""

import asyncio
from dataclasses import replace
from typing import Any

from apisix_ingress.gateway.backend import ClusterListing
from apisix_ingress.gateway.sync.observer import RecordState
from apisix_ingress.gateway.sync.ordering.write_order import BULK
from apisix_ingress.gateway.sync.records.slot import FREE_SECONDS
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.names import short_id, wide_id
from apisix_ingress.model.records import Record
from tests.fakes.gateway import OURS, make_record
from tests.forging import forge
from tests.unit.apisix_ingress.gateway.sync.stage import APPLIED, ROUTE, ROUTE_RECORD, UPSTREAM_RECORD, Stage, on_stage

THEIRS = {"id": "r1", "uri": "/by-hand"}
VICTIM = "victim_bank_80"
FORGED = forge(VICTIM, "evil_", "_80")
SHORT, WIDE = RecordKey("upstreams", short_id(VICTIM)), RecordKey("upstreams", wide_id(VICTIM))


@on_stage
async def test_a_foreign_record_since_the_last_audit_is_neither_overwritten_nor_deleted() -> None:
    stage = Stage([UPSTREAM_RECORD])
    async with stage.running():
        await asyncio.sleep(30)
        stage.gateway.stored[ROUTE] = dict(THEIRS)
        stage.want(UPSTREAM_RECORD, ROUTE_RECORD)
        await asyncio.sleep(5)
        assert (stage.gateway.stored[ROUTE], stage.sync.record_state(ROUTE).kind) == (THEIRS, "rejected")
        stage.want(UPSTREAM_RECORD)
        await asyncio.sleep(100)
        assert stage.gateway.stored[ROUTE] == THEIRS


@on_stage
async def test_a_record_is_written_once_the_foreign_record_is_deleted() -> None:
    stage = Stage([UPSTREAM_RECORD])
    async with stage.running():
        await asyncio.sleep(30)
        stage.gateway.stored[ROUTE] = dict(THEIRS)
        stage.want(UPSTREAM_RECORD, ROUTE_RECORD)
        await asyncio.sleep(5)
        del stage.gateway.stored[ROUTE]
        await asyncio.sleep(70)
        assert stage.sync.record_state(ROUTE) == APPLIED


@on_stage
async def test_an_equal_unknown_managed_record_is_not_rewritten() -> None:
    stage = Stage([UPSTREAM_RECORD])
    async with stage.running():
        await asyncio.sleep(30)
        stage.gateway.stored[ROUTE] = dict(ROUTE_RECORD.body)
        stage.want(UPSTREAM_RECORD, ROUTE_RECORD)
        await asyncio.sleep(5)
        assert stage.sync.record_state(ROUTE) == APPLIED
        assert ("put", str(ROUTE)) not in stage.log


@on_stage
async def test_first_sync_and_changes_of_records_that_are_known_take_no_look() -> None:
    stage = Stage([UPSTREAM_RECORD, ROUTE_RECORD])
    async with stage.running():
        looks = stage.gateway.looks
        stage.want(make_record(UPSTREAM_RECORD.key, nodes={"b:80": 1}), ROUTE_RECORD)
        await asyncio.sleep(1)
        assert stage.gateway.looks == looks == 0


@on_stage
async def test_a_manual_record_soon_after_a_list_is_kept() -> None:
    stage = Stage([UPSTREAM_RECORD])
    async with stage.running():
        await asyncio.sleep(FREE_SECONDS + 0.5)
        stage.gateway.stored[ROUTE] = {"id": ROUTE.id, "uri": "/by-hand"}
        stage.want(UPSTREAM_RECORD, ROUTE_RECORD)
        await asyncio.sleep(5)
        assert stage.gateway.stored[ROUTE] == {"id": ROUTE.id, "uri": "/by-hand"}


@on_stage
async def test_many_new_records_take_one_list() -> None:
    stage = Stage()
    async with stage.running():
        await asyncio.sleep(30)
        lists, looks = stage.gateway.lists, stage.gateway.looks
        stage.gateway.stored[RecordKey("upstreams", "n7")] = {"id": "n7"}
        stage.want(*(make_record(RecordKey("upstreams", f"n{number}")) for number in range(200)))
        await asyncio.sleep(5)
        assert stage.gateway.stored[RecordKey("upstreams", "n7")] == {"id": "n7"}
        assert len(stage.gateway.stored) == 200
        assert stage.gateway.lists - lists == 1
        # One read of each of the last ones, and those of the check between audits.
        assert stage.gateway.looks - looks < BULK + 5


@on_stage
async def test_a_record_does_not_wait_for_the_list_that_many_of_another_namespace_need() -> None:
    stage = Stage()
    listed = stage.backend.list_managed

    async def slow(*args: Any) -> ClusterListing:
        await asyncio.sleep(20)
        return await listed(*args)

    async with stage.running():
        await asyncio.sleep(30)
        stage.backend.list_managed = slow  # type: ignore[method-assign, assignment]
        flood = [make_record(RecordKey("upstreams", f"n{number}")) for number in range(200)]
        stage.wanted.namespaces = {record.key: "flood" for record in flood} | {UPSTREAM_RECORD.key: "app"}
        stage.want(*flood)
        await asyncio.sleep(1)
        stage.want(*flood, UPSTREAM_RECORD)
        await asyncio.sleep(1)
        assert list(stage.gateway.stored) == [UPSTREAM_RECORD.key]
        await asyncio.sleep(30)
        assert len(stage.gateway.stored) == 201


@on_stage
async def test_a_record_waits_while_the_gateways_records_are_unknown() -> None:
    stage = Stage([UPSTREAM_RECORD])
    async with stage.running():
        await asyncio.sleep(30)
        stage.gateway.faults.down = True
        stage.want(UPSTREAM_RECORD, ROUTE_RECORD)
        await asyncio.sleep(5)
        assert stage.sync.record_state(ROUTE).kind == "unreachable"
        stage.gateway.faults.down = False
        await asyncio.sleep(60)
        assert stage.sync.record_state(ROUTE) == APPLIED


@on_stage
async def test_record_waits_while_the_admin_key_is_refused() -> None:
    stage = Stage([UPSTREAM_RECORD])
    async with stage.running():
        await asyncio.sleep(30)
        stage.gateway.faults.unauthorized = True
        stage.want(UPSTREAM_RECORD, ROUTE_RECORD)
        await asyncio.sleep(5)
        stage.gateway.faults.unauthorized = False
        await asyncio.sleep(90)
        assert stage.sync.record_state(ROUTE) == APPLIED


def upstream(key: RecordKey, name: str) -> Record:
    return Record(key, name, {"id": key.id, "name": name, "labels": OURS})


@on_stage
async def test_id_changes_hands_only_after_everything_that_names_it_has_moved() -> None:
    route = replace(make_record(ROUTE, upstream_id=SHORT.id), meant={SHORT: VICTIM})
    moved = replace(make_record(ROUTE, upstream_id=WIDE.id), meant={WIDE: VICTIM})
    stage = Stage(stored=[upstream(SHORT, VICTIM), route])
    stage.wanted.replace([upstream(SHORT, FORGED), upstream(WIDE, VICTIM), moved])
    async with stage.running():
        await asyncio.sleep(5)
        assert stage.log == [
            ("put", str(WIDE)),
            ("put", str(ROUTE)),
            ("delete", str(SHORT)),
            ("put", str(SHORT)),
        ]
        assert stage.gateway.stored[SHORT]["name"] == FORGED


@on_stage
async def test_the_id_of_an_untranslatable_object_is_free_after_its_deletion() -> None:
    stage = Stage([upstream(SHORT, FORGED)], stored=[upstream(SHORT, VICTIM)])
    stage.wanted.held.add(SHORT)
    async with stage.running():
        await asyncio.sleep(5)
        assert stage.log == []
        assert stage.sync.record_state(SHORT) == RecordState(
            "waiting", f"the gateway has the record {SHORT} of another object, whose id is the same"
        )
        stage.wanted.held.clear()
        await asyncio.sleep(5)
        assert stage.gateway.stored[SHORT]["name"] == FORGED
