"""The check between audits: a cluster that does not respond, lost its data or got an older backup back."""

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine
from dataclasses import replace
from datetime import timedelta

import pytest
import structlog
from structlog.testing import capture_logs

from apisix_ingress.errors import GatewayUnavailable
from apisix_ingress.gateway.backend import ClusterListing, ObservedRecord
from apisix_ingress.model.keys import RECORD_KINDS, RecordKey, RecordKind
from apisix_ingress.model.records import Record
from tests.fakes.gateway import make_record
from tests.unit.apisix_ingress.gateway.sync.stage import (
    OTHER,
    ROUTE_RECORD,
    UPSTREAM,
    UPSTREAM_RECORD,
    Play,
    Stage,
    many,
    on_stage,
)

NOTICED = 10.0
"""Seconds within which a dead, emptied or restored cluster is detected, with default settings."""

LATE = make_record(RecordKey("upstreams", "late"))
RULE = make_record(RecordKey("global_rules", "g1"), plugins={"x": {}})


async def story_of(fault: str, reason: str, cause: str) -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    stage = Stage([UPSTREAM_RECORD, ROUTE_RECORD])
    with capture_logs() as lines:
        async with stage.running():
            await asyncio.sleep(33.0)
            began = stage.clock.now()
            setattr(stage.gateway.faults, fault, True)
            await asyncio.sleep(NOTICED)
            outage = stage.sync.outage
            assert outage is not None
            assert (outage.reason, outage.cause) == (reason, cause)
            assert began <= outage.since <= began + timedelta(seconds=5)
            await asyncio.sleep(240)
            assert stage.sync.outage == outage
            setattr(stage.gateway.faults, fault, False)
            await asyncio.sleep(NOTICED)
            assert stage.sync.reachable
            await asyncio.sleep(60)
    assert stage.notes.breakers == [True, False]
    reported = [line for line in lines if line["log_level"] in ("warning", "error")]
    assert [(line["event"], line["error"]) for line in reported] == [("cluster.unreachable", cause)]
    assert [line["event"] for line in lines].count("cluster.recovered") == 1


@pytest.mark.parametrize(
    ("fault", "reason", "cause"),
    [
        ("down", "unreachable", "connection refused"),
        ("hung", "unreachable", "no response within 5 s"),
        ("failing", "failing", "HTTP 503"),
    ],
)
def test_a_dead_cluster_is_reported_once_within_ten_seconds_without_pending_writes(
    play: Play, fault: str, reason: str, cause: str
) -> None:
    play(story_of(fault, reason, cause))


@on_stage
async def test_a_refused_key_is_reported_within_ten_seconds_without_pending_writes() -> None:
    stage = Stage([UPSTREAM_RECORD])
    async with stage.running():
        await asyncio.sleep(33.0)
        stage.gateway.faults.unauthorized = True
        await asyncio.sleep(NOTICED)
        assert stage.sync.outage is not None
        assert stage.sync.outage.headline.startswith("unauthorized since 2026-01-01T00:00:3")
        assert not stage.sync.is_away


@on_stage
async def test_a_cluster_that_hangs_from_the_start_is_reported_within_ten_seconds() -> None:
    stage = Stage([UPSTREAM_RECORD])
    stage.gateway.faults.hung = True
    async with stage.running():
        await asyncio.sleep(NOTICED - 1)
        assert not stage.sync.reachable
        stage.gateway.faults.hung = False
        await asyncio.sleep(2 * NOTICED)
        assert list(stage.gateway.stored) == [UPSTREAM]
        assert stage.sync.reachable


@pytest.mark.parametrize("records", [[UPSTREAM_RECORD], [UPSTREAM_RECORD, ROUTE_RECORD], many(300)])
@pytest.mark.parametrize("is_fresh", [True, False])
def test_emptied_cluster_is_filled_within_ten_seconds(play: Play, records: list[Record], is_fresh: bool) -> None:
    async def story() -> None:
        stage = Stage(records, stored=[] if is_fresh else records)
        async with stage.running():
            await asyncio.sleep(33.0)
            stage.gateway.wipe()
            await asyncio.sleep(NOTICED)
            assert len(stage.gateway.stored) == len(records)
            assert stage.notes.drifts[-1] == len(records)
        assert stage.gateway.violations == []

    play(story())


@on_stage
async def test_kind_that_is_lost_alone_is_written_again_before_the_next_audit() -> None:
    stage = Stage([*many(20), UPSTREAM_RECORD, RULE], stored=[*many(20), UPSTREAM_RECORD])
    async with stage.running():
        await asyncio.sleep(30.0)
        stage.gateway.meddle(UPSTREAM, None)
        await asyncio.sleep(3 * 4.0 + 2)
        assert UPSTREAM in stage.gateway.stored


@pytest.mark.parametrize("change", ["new", "edited", "edited and back", "deleted"])
@pytest.mark.parametrize("is_known", [True, False])
def test_an_older_backup_is_repaired_within_ten_seconds(play: Play, change: str, is_known: bool) -> None:
    """With `is_known`, a check or an audit has seen the last change; otherwise it is more recent."""

    async def story() -> None:
        stage = Stage([UPSTREAM_RECORD, make_record(OTHER)])
        async with stage.running():
            await asyncio.sleep(2.0)
            backup = stage.gateway.backup()
            if change == "deleted":
                stage.want(UPSTREAM_RECORD)
            elif change == "new":
                stage.want(UPSTREAM_RECORD, make_record(OTHER), LATE)
            else:
                stage.want(UPSTREAM_RECORD, make_record(OTHER, retries=1))
            await asyncio.sleep(1.0)
            if change == "edited and back":
                await asyncio.sleep(10.0)
                stage.want(UPSTREAM_RECORD, make_record(OTHER))
                await asyncio.sleep(1.0)
            want = dict(stage.gateway.stored)
            if is_known or change == "edited and back":
                await asyncio.sleep(70.0)
            stage.gateway.restore(backup)
            audits = len(stage.notes.comparisons)
            await asyncio.sleep(NOTICED)
            assert stage.gateway.stored == want
            assert len(stage.notes.comparisons) > audits

    play(story())


@on_stage
async def test_a_backup_older_than_writes_of_another_process_is_repaired() -> None:
    records = many(30)
    stage = Stage(records, stored=records[:-1])
    stage.gateway.revisions = {record.key: number for number, record in enumerate(records[:-1], 1)}
    backup = stage.gateway.backup()
    stage.gateway.put(records[-1].key, records[-1].body)
    async with stage.running():
        await asyncio.sleep(5.0)
        stage.gateway.restore(backup)
        await asyncio.sleep(NOTICED)
        assert len(stage.gateway.stored) == 30


@on_stage
async def test_a_check_needs_few_reads_and_no_list_or_write() -> None:
    stage = Stage([*many(300), UPSTREAM_RECORD, RULE])
    async with stage.running():
        await asyncio.sleep(1.0)
        lists, probes, log = stage.gateway.lists, stage.gateway.probes, len(stage.gateway.log)
        before = stage.gateway.looks  # of ids before their first write
        await asyncio.sleep(58.0)
        assert 12 <= stage.gateway.looks - before <= 60 / 3 * 2 + 3
        assert (stage.gateway.lists, stage.gateway.probes, len(stage.gateway.log)) == (lists, probes, log)
        stage.gateway.faults.down = True
        await asyncio.sleep(NOTICED)
        looks = stage.gateway.looks
        await asyncio.sleep(100.0)
        assert stage.gateway.looks == looks


@on_stage
async def test_slow_cluster_and_one_that_fails_some_requests_are_not_down() -> None:
    stage = Stage([UPSTREAM_RECORD])
    get, slow = stage.backend.get, [4.5]

    async def flaky(key: RecordKey) -> ObservedRecord | None:
        await asyncio.sleep(slow[0])
        if not slow[0] and stage.gateway.rng.random() < 0.3:
            raise GatewayUnavailable("HTTP 503", status=503)
        return await get(key)

    stage.backend.get = flaky  # type: ignore[method-assign]
    async with stage.running():
        await asyncio.sleep(600)
        slow[0] = 0.0
        await asyncio.sleep(3600)
    assert stage.notes.breakers == []


@on_stage
async def test_a_cluster_that_modifies_records_is_not_audited_repeatedly() -> None:
    stage = Stage([UPSTREAM_RECORD])
    stage.backend.get = altered(stage)  # type: ignore[method-assign, assignment]
    async with stage.running():
        for number in range(100):
            stage.want(make_record(UPSTREAM, nodes={"a:80": number + 2}))
            await asyncio.sleep(6.0)
        assert len(stage.notes.comparisons) <= 600 / 60 + 3


@on_stage
async def test_without_an_interval_nothing_is_checked_until_an_audit_fails() -> None:
    stage = Stage([UPSTREAM_RECORD])
    stage.sync = stage.new_sync(check_interval=0.0)
    async with stage.running():
        await asyncio.sleep(33.0)
        assert stage.gateway.looks == 0
        stage.gateway.faults.down = True
        await asyncio.sleep(33.0)
        assert not stage.sync.reachable


@on_stage
async def test_single_failed_lists_are_reported_once_and_are_not_an_outage() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    stage = Stage([UPSTREAM_RECORD])
    with capture_logs() as lines:
        async with stage.running():
            lists = stage.backend.list_managed

            async def broken(
                ledger: Collection[RecordKey], kinds: Collection[RecordKind] = RECORD_KINDS
            ) -> ClusterListing:
                raise GatewayUnavailable("GET routes: the reply is not a list of records", sent=False)

            stage.backend.list_managed = broken  # type: ignore[method-assign]
            await asyncio.sleep(200.0)
            assert stage.sync.audit_failure == "GET routes: the reply is not a list of records"
            stage.backend.list_managed = lists  # type: ignore[method-assign]
            await asyncio.sleep(10.0)
            assert stage.sync.audit_failure == ""
    assert stage.notes.breakers == []
    assert [line["event"] for line in lines].count("audit.failed") == 1


def altered(stage: Stage) -> Callable[[RecordKey], Coroutine[None, None, ObservedRecord | None]]:
    """Return a `get` that shows another body than lists do."""
    get = stage.backend.get

    async def other(key: RecordKey) -> ObservedRecord | None:
        found = await get(key)
        return replace(found, digest=b"another") if found else None

    return other
