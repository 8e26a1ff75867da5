"""A cluster that is down, fails or rejects the key."""

import asyncio
import logging
from collections.abc import Collection

import structlog
from structlog.testing import capture_logs

from apisix_ingress.errors import GatewayUnavailable
from apisix_ingress.gateway.backend import ClusterListing
from apisix_ingress.gateway.sync.circuit_breaker import KEY_CHECK_INTERVAL, KEY_PROBE_INTERVAL
from apisix_ingress.gateway.sync.observer import RecordState
from apisix_ingress.model.keys import RECORD_KINDS, RecordKey, RecordKind
from tests.fakes.gateway import FakeBackend, make_record
from tests.unit.apisix_ingress.gateway.sync.stage import (
    APPLIED,
    OTHER,
    ROUTE_RECORD,
    UPSTREAM,
    UPSTREAM_RECORD,
    FailingBackend,
    Stage,
    on_stage,
)


@on_stage
async def test_a_rejected_key_is_probed_rarely_and_a_new_one_is_detected_soon() -> None:
    stage = Stage([UPSTREAM_RECORD, make_record(OTHER)])
    stage.gateway.faults.unauthorized = True
    async with stage.running():
        await asyncio.sleep(10 * KEY_PROBE_INTERVAL)
        assert stage.gateway.probes == 10
        assert stage.sync.record_state(UPSTREAM) == RecordState("unreachable", "wrong admin key")
        assert (UPSTREAM, RecordState("unreachable", "wrong admin key")) in stage.notes.outcomes
        stage.want(UPSTREAM_RECORD, make_record(OTHER), make_record(RecordKey("upstreams", "late")))
        assert stage.notes.outcomes[-1][0] == RecordKey("upstreams", "late")
        stage.gateway.faults.unauthorized = False
        stage.backend.changed_credentials = True
        await asyncio.sleep(KEY_CHECK_INTERVAL + 1)
        assert stage.sync.record_state(UPSTREAM) == APPLIED
    assert stage.notes.breakers == [True, False]


@on_stage
async def test_key_that_is_refused_in_the_middle_pauses_all_writes() -> None:
    stage = Stage([UPSTREAM_RECORD])
    async with stage.running():
        stage.gateway.faults.unauthorized = True
        stage.want(UPSTREAM_RECORD, *(make_record(RecordKey("upstreams", f"n{n}")) for n in range(50)))
        await asyncio.sleep(20)
        refused = [write for write in stage.notes.writes if write[2] == "GatewayUnauthorized"]
        assert 1 <= len(refused) <= 4
        stage.gateway.faults.unauthorized = False
        await asyncio.sleep(KEY_PROBE_INTERVAL)
        assert len(stage.gateway.stored) == 51


@on_stage
async def test_urgent_record_is_still_urgent_when_the_gateway_is_back() -> None:
    stage = Stage([make_record(OTHER)])
    async with stage.running():
        stage.gateway.faults.unauthorized = True
        await asyncio.sleep(70)  # an audit is rejected while every worker is idle
        assert not stage.sync.reachable
        cold = [make_record(RecordKey("upstreams", f"n{n}")) for n in range(100)]
        stage.want(make_record(OTHER), *cold)
        stage.want(make_record(OTHER), *cold, UPSTREAM_RECORD, urgent=True)
        await asyncio.sleep(1)
        stage.gateway.faults.unauthorized = False
        await asyncio.sleep(2 * KEY_PROBE_INTERVAL)
    assert len(stage.gateway.stored) == 102
    assert stage.log.index(("put", str(UPSTREAM))) < 10


@on_stage
async def test_audit_that_is_refused_pauses_the_cluster() -> None:
    stage = Stage([UPSTREAM_RECORD])
    async with stage.running():
        stage.gateway.faults.unauthorized = True
        await asyncio.sleep(70)
        assert stage.notes.breakers == [True]
        assert not stage.sync.reachable


@on_stage
async def test_cluster_that_is_down_gets_few_probes_and_catches_up_within_ten_seconds() -> None:
    stage = Stage([UPSTREAM_RECORD])
    async with stage.running():
        stage.gateway.faults.down = True
        stage.want(UPSTREAM_RECORD, *(make_record(RecordKey("upstreams", f"n{n}")) for n in range(100)))
        await asyncio.sleep(300)
        assert len(stage.notes.writes) <= 1 + 3 + 3
        assert 300 / 5 <= stage.gateway.probes <= 300 / 2
        assert not await stage.sync.drain(1)
        state = stage.sync.record_state(RecordKey("upstreams", "n7"))
        assert state == RecordState("unreachable", "connection refused", is_away=True)
        stage.want(UPSTREAM_RECORD)
        stage.want(UPSTREAM_RECORD, *(make_record(RecordKey("upstreams", f"n{n}")) for n in range(100)))
        stage.gateway.faults.down = False
        await asyncio.sleep(10)
        assert len(stage.gateway.stored) == 101
        assert stage.sync.idle()
    assert stage.notes.breakers == [True, False]


@on_stage
async def test_cluster_that_fails_some_requests_is_still_written_to() -> None:
    stage = Stage([make_record(RecordKey("upstreams", f"n{n}")) for n in range(500)])
    stage.gateway.faults.server_error = 0.3
    async with stage.running():
        await asyncio.sleep(20)
        assert len(stage.gateway.stored) == 500
        assert stage.notes.breakers == []


@on_stage
async def test_a_cluster_that_fails_every_request_gets_few_requests() -> None:
    stage = Stage()
    async with stage.running():
        stage.gateway.faults.server_error = 1.0
        stage.want(*(make_record(RecordKey("upstreams", f"n{n}")) for n in range(500)))
        await asyncio.sleep(60)
        assert len(stage.notes.writes) < 300  # a probe succeeds each time, so that some writes are retried


@on_stage
async def test_cluster_that_reads_and_does_not_write_is_out_until_a_write_succeeds() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    stage = Stage()
    with capture_logs() as lines:
        async with stage.running():
            stage.gateway.faults.server_error = 1.0
            stage.want(*(make_record(RecordKey("upstreams", f"n{n}")) for n in range(50)))
            await asyncio.sleep(3)
            for _ in range(600):
                await asyncio.sleep(0.1)
                assert (stage.sync.reachable, stage.sync.is_away, stage.sync.trouble) == (False, True, "HTTP 503")
            assert stage.gateway.probes > 10
            stage.gateway.faults.server_error = 0.0
            await asyncio.sleep(10)
            assert (len(stage.gateway.stored), stage.sync.reachable, stage.sync.trouble) == (50, True, "")
    assert stage.notes.breakers == [True, False]
    got = [line["event"] for line in lines if line["event"].startswith("cluster.")]
    assert got == ["cluster.takeover", "cluster.synced", "cluster.unreachable", "cluster.recovered"]


@on_stage
async def test_an_outage_without_pending_writes_ends_after_a_successful_probe() -> None:
    stage = Stage([UPSTREAM_RECORD])
    async with stage.running():
        stage.gateway.faults.unauthorized = True
        await asyncio.sleep(70)  # an audit is refused
        stage.gateway.faults.unauthorized = False
        await asyncio.sleep(KEY_PROBE_INTERVAL + stage.backend.timeout + 2)
    assert stage.notes.breakers == [True, False]


@on_stage
async def test_a_cluster_that_returns_empty_is_filled_immediately() -> None:
    stage = Stage([UPSTREAM_RECORD, ROUTE_RECORD])
    async with stage.running():
        stage.gateway.faults.down = True
        stage.want(UPSTREAM_RECORD, ROUTE_RECORD, *(make_record(RecordKey("upstreams", f"n{n}")) for n in range(5)))
        await asyncio.sleep(30)
        stage.gateway.wipe()
        stage.gateway.faults.down = False
        await asyncio.sleep(10)
        assert len(stage.gateway.stored) == 7
    assert stage.gateway.violations == []


@on_stage
async def test_cluster_that_is_down_at_the_start_is_taken_over_later() -> None:
    stage = Stage([UPSTREAM_RECORD])
    stage.gateway.faults.down = True
    async with stage.running():
        await asyncio.sleep(60)
        before = stage.sync.taken_over
        stage.gateway.faults.down = False
        await asyncio.sleep(10)
        assert (before, stage.sync.taken_over) == (False, True)
        assert stage.sync.record_state(UPSTREAM) == APPLIED


@on_stage
async def test_first_outcome_is_the_comparison_or_an_outage() -> None:
    stage = Stage([UPSTREAM_RECORD])
    async with stage.running(ready=False):
        waiting = asyncio.create_task(stage.sync.first_outcome())
        await asyncio.sleep(1)
        before = waiting.done()
        stage.ready.set()
        await waiting
        assert (before, stage.sync.taken_over) == (False, True)
    stage.gateway.faults.down = True
    async with stage.running():
        await stage.sync.first_outcome()
        assert (stage.sync.taken_over, stage.sync.reachable) == (False, False)


@on_stage
async def test_one_failing_record_does_not_stop_the_others() -> None:
    stage = Stage([UPSTREAM_RECORD])
    failing = FailingBackend(stage, UPSTREAM, GatewayUnavailable("HTTP 500", status=500))
    async with stage.running():
        await asyncio.sleep(120)
        assert stage.notes.breakers == []
        stage.want(UPSTREAM_RECORD, make_record(OTHER))
        await asyncio.sleep(1)
        assert stage.sync.record_state(OTHER) == APPLIED
        assert failing.calls <= 120 / 2.5 + 10


@on_stage
async def test_retry_after_of_a_gateway_is_honoured() -> None:
    stage = Stage([UPSTREAM_RECORD])
    failing = FailingBackend(stage, UPSTREAM, GatewayUnavailable("HTTP 429", status=429, sent=False, retry_after=33))
    async with stage.running():
        await asyncio.sleep(50)
    assert failing.times[1] - failing.times[0] >= 33


@on_stage
async def test_a_list_that_crashes_is_read_again() -> None:
    stage = Stage([UPSTREAM_RECORD])
    failing = [TypeError("a bug"), TypeError("a bug")]

    class Buggy(FakeBackend):
        async def list_managed(
            self, ledger: Collection[RecordKey], kinds: Collection[RecordKind] = RECORD_KINDS
        ) -> ClusterListing:
            if failing:
                raise failing.pop()
            return await super().list_managed(ledger, kinds)

    stage.backend = Buggy(stage.gateway)
    stage.sync = stage.new_sync()
    async with stage.running():
        await asyncio.sleep(60)
        assert stage.sync.record_state(UPSTREAM) == APPLIED
        failing.append(TypeError("a bug"))
        await asyncio.sleep(1000)
        assert failing == []
        stage.want()
        await asyncio.sleep(1)
    assert stage.gateway.stored == {}
