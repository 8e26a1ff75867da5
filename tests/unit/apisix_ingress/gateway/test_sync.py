"""What the engine does, situation by situation, on virtual time."""

import asyncio
import contextlib
import logging
import math
import random
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterator, Sequence
from typing import Any

import pytest
import structlog

from apisix_ingress.errors import GatewayUnavailable, LeadershipLost
from apisix_ingress.gateway.backend import Listing
from apisix_ingress.gateway.dispatch import PATIENCE
from apisix_ingress.gateway.gate import KEY_CHECK_INTERVAL, KEY_PROBE_INTERVAL
from apisix_ingress.gateway.states import RecordState
from apisix_ingress.gateway.sync import ClusterSync
from apisix_ingress.model.keys import RecordKey, RecordKind
from apisix_ingress.model.records import Record
from apisix_ingress.runtime.term import Term
from tests.fakes.gateway import FakeBackend, FakeGateway, FakeWanted, LoopClock, VirtualLoop, make_record

UPSTREAM = RecordKey("upstreams", "u1")
OTHER = RecordKey("upstreams", "u2")
ROUTE = RecordKey("routes", "r1")
UPSTREAM_RECORD = make_record(UPSTREAM, nodes={"a:80": 1})
ROUTE_RECORD = make_record(ROUTE, upstream_id="u1")
APPLIED = RecordState("applied")


class Notes:
    """An observer that remembers."""

    def __init__(self) -> None:
        self.outcomes: list[tuple[RecordKey, RecordState]] = []
        self.writes: list[tuple[str, str, str]] = []
        self.drifts: list[int] = []
        self.helds: list[int] = []
        self.comparisons: list[bool] = []
        self.breakers: list[bool] = []

    def outcome(self, cluster: str, key: RecordKey, state: RecordState) -> None:
        self.outcomes.append((key, state))

    def written(self, cluster: str, kind: RecordKind, op: str, seconds: float, status: str) -> None:
        self.writes.append((kind, op, status))

    def compared(self, cluster: str, ok: bool) -> None:
        self.comparisons.append(ok)

    def drift(self, cluster: str, records: int) -> None:
        self.drifts.append(records)

    def held(self, cluster: str, records: int) -> None:
        self.helds.append(records)

    def breaker(self, cluster: str, is_open: bool) -> None:
        self.breakers.append(is_open)


class Stage:
    """A gateway, what is wanted, and one engine between them."""

    def __init__(self, records: Sequence[Record] = (), stored: Sequence[Record] = ()) -> None:
        self.gateway = FakeGateway(stored={record.key: dict(record.body) for record in stored})
        self.wanted = FakeWanted(records)
        self.backend = FakeBackend(self.gateway)
        self.notes = Notes()
        self.clock = LoopClock()
        self.ready = asyncio.Event()
        self.term = Term(self.clock, holder="me")
        self.sync = self.new_sync()

    def new_sync(self, concurrency: int = 4) -> ClusterSync:
        return ClusterSync(
            "c1",
            self.backend,
            self.wanted,
            clock=self.clock,
            rng=random.Random(1),
            concurrency=concurrency,
            observer=self.notes,
        )

    @contextlib.asynccontextmanager
    async def running(self, *, ready: bool = True) -> AsyncIterator[None]:
        """Lead for as long as the block lasts."""
        if ready:
            self.ready.set()
        task = asyncio.create_task(self.sync.run(self.term, self.ready))
        self.sync.mark_dirty(self.wanted.keys())
        try:
            await asyncio.sleep(1)
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    def want(self, *records: Record, urgent: bool = False) -> None:
        self.sync.mark_dirty(self.wanted.replace(records), urgent=urgent)

    @property
    def log(self) -> list[tuple[str, str]]:
        return [(op, str(key)) for op, key in self.gateway.log]


Play = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture
def play() -> Iterator[Play]:
    """Run a coroutine on a loop with virtual time."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    loop = VirtualLoop()
    yield lambda story: loop.run_until_complete(asyncio.wait_for(story, 100_000))
    loop.close()
    structlog.reset_defaults()


def on_stage(story: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[Play], None]:
    """Make a test of a coroutine function: it runs on virtual time."""

    def test(play: Play) -> None:
        play(story())

    test.__doc__ = story.__doc__
    return test


@on_stage
async def test_nothing_is_written_before_everything_is_translated() -> None:
    stale = make_record(OTHER)
    stage = Stage([UPSTREAM_RECORD], stored=[stale])
    async with stage.running(ready=False):
        await asyncio.sleep(500)
        assert stage.log == []
        assert stage.sync.record_state(UPSTREAM) == RecordState("pending")
        lists = stage.gateway.lists
        stage.ready.set()
        await asyncio.sleep(1)
        assert stage.log == [("put", "upstreams/u1"), ("delete", "upstreams/u2")]
        assert stage.gateway.lists == lists + 1  # the first list was too old by then


@on_stage
async def test_equal_records_are_adopted_without_a_write() -> None:
    stage = Stage([UPSTREAM_RECORD, ROUTE_RECORD], stored=[UPSTREAM_RECORD, ROUTE_RECORD])
    for body in stage.gateway.stored.values():
        dict(body)["update_time"] = 1
    async with stage.running():
        await asyncio.sleep(300)
        assert stage.log == []
        assert stage.sync.idle()
        assert (UPSTREAM, APPLIED) in stage.notes.outcomes
        assert stage.sync.counts == {
            "applied": 2, "unknown": 0, "in_flight": 0, "queued": 0, "rejected": 0, "held": 0
        }  # fmt: skip


@on_stage
async def test_what_a_record_names_is_written_first_and_deleted_last() -> None:
    stage = Stage([ROUTE_RECORD, UPSTREAM_RECORD])
    async with stage.running():
        stage.want()
        await asyncio.sleep(1)
    want = [("put", "upstreams/u1"), ("put", "routes/r1"), ("delete", "routes/r1"), ("delete", "upstreams/u1")]
    assert stage.log == want
    assert stage.gateway.violations == []


@on_stage
async def test_successor_is_there_before_the_old_record_goes() -> None:
    stage = Stage([UPSTREAM_RECORD, ROUTE_RECORD])
    async with stage.running():
        stage.gateway.log.clear()
        successor = make_record(RecordKey("routes", "new"), upstream_id="u2")
        stage.want(make_record(OTHER), successor)
        await asyncio.sleep(1)
    assert stage.log[:2] == [("put", "upstreams/u2"), ("put", "routes/new")]
    assert stage.log[2:] == [("delete", "routes/r1"), ("delete", "upstreams/u1")]


@on_stage
async def test_delete_goes_on_when_a_write_before_it_keeps_failing() -> None:
    stage = Stage([UPSTREAM_RECORD])
    refusing = FailingBackend(stage, OTHER, GatewayUnavailable("HTTP 500", status=500))
    async with stage.running():
        stage.want(make_record(OTHER))
        await asyncio.sleep(0.1)
        assert UPSTREAM in stage.gateway.stored
        await asyncio.sleep(30)
        assert UPSTREAM not in stage.gateway.stored
        assert stage.sync.record_state(OTHER) == RecordState("unreachable", "HTTP 500")
    assert refusing.calls > PATIENCE


class FailingBackend:
    """Makes every put of one record fail; takes the place of the stage's backend's put."""

    def __init__(self, stage: Stage, key: RecordKey, error: Exception) -> None:
        self.calls = 0
        self.error: Exception | None = error
        self.times: list[float] = []
        put = stage.backend.put

        async def failing(record: Record) -> None:
            if record.key == key and self.error is not None:
                self.calls += 1
                self.times.append(stage.clock.monotonic())
                raise self.error
            await put(record)

        stage.backend.put = failing  # type: ignore[method-assign]


@on_stage
async def test_urgent_record_overtakes_a_cold_sync() -> None:
    others = [make_record(RecordKey("upstreams", f"cold{n}")) for n in range(200)]
    stage = Stage(others)
    async with stage.running(ready=False):
        stage.ready.set()
        await asyncio.sleep(0.1)
        stage.want(*others, UPSTREAM_RECORD, urgent=True)
        await asyncio.sleep(5)
    place = stage.log.index(("put", "upstreams/u1"))
    assert 0 < place < 50


@on_stage
async def test_flapping_record_costs_a_burst_and_two_writes_a_second() -> None:
    stage = Stage()
    async with stage.running():
        for n in range(500):
            stage.want(make_record(UPSTREAM, nodes={f"a:{n}": 1}))
            await asyncio.sleep(0.02)
        await asyncio.sleep(2)
        assert stage.sync.idle()
        assert len(stage.log) <= 4 + 2 * 10 + 1
        assert stage.gateway.stored[UPSTREAM]["nodes"] == {"a:499": 1}


@on_stage
async def test_change_during_a_flight_is_written_after_it() -> None:
    stage = Stage()
    stage.gateway.faults.slow = 1.0
    async with stage.running():
        stage.want(make_record(UPSTREAM, nodes={"a:1": 1}))
        await asyncio.sleep(0)
        stage.want(make_record(UPSTREAM, nodes={"a:2": 1}))
        stage.want(make_record(UPSTREAM, nodes={"a:3": 1}))
        await asyncio.sleep(30)
        assert stage.gateway.stored[UPSTREAM]["nodes"] == {"a:3": 1}
        assert len(stage.log) == 2
    assert stage.gateway.violations == []


@on_stage
async def test_rejected_record_harms_only_itself_and_is_told_in_the_gateways_words() -> None:
    stage = Stage([UPSTREAM_RECORD, make_record(ROUTE, upstream_id="u1", bad=True), make_record(OTHER)])
    async with stage.running():
        await asyncio.sleep(20)
        assert set(stage.gateway.stored) == {UPSTREAM, OTHER}
        assert stage.sync.record_state(ROUTE) == RecordState("rejected", "routes/r1 is bad")
        assert (ROUTE, RecordState("rejected", "routes/r1 is bad")) in stage.notes.outcomes
        assert stage.notes.writes.count(("routes", "put", "GatewayRejected")) == 1
        stage.want(UPSTREAM_RECORD, ROUTE_RECORD, make_record(OTHER))
        await asyncio.sleep(1)
        assert stage.sync.record_state(ROUTE) == APPLIED


@on_stage
async def test_rejected_record_is_tried_again_after_a_while() -> None:
    stage = Stage([make_record(UPSTREAM, bad=True)])
    async with stage.running():
        await asyncio.sleep(600)
        tries = stage.notes.writes.count(("upstreams", "put", "GatewayRejected"))
        assert 3 <= tries <= 5


@on_stage
async def test_rejected_update_leaves_the_old_version_for_those_that_name_it() -> None:
    stage = Stage([UPSTREAM_RECORD])
    async with stage.running():
        stage.want(make_record(UPSTREAM, bad=True), ROUTE_RECORD)
        await asyncio.sleep(1)
        assert stage.sync.record_state(UPSTREAM).kind == "rejected"
        assert stage.sync.record_state(ROUTE) == APPLIED
        assert stage.gateway.stored[UPSTREAM] == UPSTREAM_RECORD.body


@on_stage
async def test_record_waits_for_one_that_was_never_accepted_and_says_why() -> None:
    stage = Stage([make_record(UPSTREAM, bad=True), ROUTE_RECORD])
    async with stage.running():
        want = RecordState("waiting", "waits for upstreams/u1, which the gateway rejected: upstreams/u1 is bad")
        assert stage.sync.record_state(ROUTE) == want
        stage.want(UPSTREAM_RECORD, ROUTE_RECORD)
        await asyncio.sleep(1)
        assert stage.sync.record_state(ROUTE) == APPLIED


@on_stage
async def test_record_that_waits_for_one_that_keeps_failing_says_so() -> None:
    stage = Stage([UPSTREAM_RECORD, ROUTE_RECORD])
    stage.gateway.faults.server_error = 1.0
    async with stage.running():
        await asyncio.sleep(10)
        assert stage.sync.record_state(UPSTREAM).kind == "unreachable"
        assert stage.sync.record_state(ROUTE).kind == "waiting"


@on_stage
async def test_record_is_under_way_while_the_one_it_waits_for_is() -> None:
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
        assert stage.sync.record_state(ROUTE) == APPLIED  # an audit found that somebody else made it


@on_stage
async def test_refused_key_is_probed_rarely_and_a_new_one_is_noticed_soon() -> None:
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
        assert state == RecordState("unreachable", "connection refused")
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
async def test_cluster_that_fails_every_request_is_left_alone() -> None:
    stage = Stage()
    async with stage.running():
        stage.gateway.faults.server_error = 1.0
        stage.want(*(make_record(RecordKey("upstreams", f"n{n}")) for n in range(500)))
        await asyncio.sleep(60)
        assert stage.notes.breakers[0]
        assert len(stage.notes.writes) < 300  # a probe succeeds each time, so that some writes are tried again


@on_stage
async def test_cluster_that_comes_back_empty_is_filled_at_once() -> None:
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
async def test_gateway_that_asks_for_time_gets_it() -> None:
    stage = Stage([UPSTREAM_RECORD])
    failing = FailingBackend(stage, UPSTREAM, GatewayUnavailable("HTTP 429", status=429, sent=False, retry_after=33))
    async with stage.running():
        await asyncio.sleep(50)
    assert failing.times[1] - failing.times[0] >= 33


@on_stage
async def test_bug_in_a_write_is_retried_and_counts_as_lost() -> None:
    stage = Stage([UPSTREAM_RECORD])
    failing = FailingBackend(stage, UPSTREAM, ValueError("bug"))
    async with stage.running():
        assert stage.sync.counts["unknown"] == 1
        await asyncio.sleep(5)
        want = RecordState("unreachable", "internal error: see the log of the controller")
        assert stage.sync.record_state(UPSTREAM) == want
        failing.error = None
        await asyncio.sleep(6)
        assert stage.sync.record_state(UPSTREAM) == APPLIED


@on_stage
async def test_missing_reference_is_written_again_before_the_record_that_names_it() -> None:
    stage = Stage([UPSTREAM_RECORD])
    async with stage.running():
        stage.gateway.meddle(UPSTREAM, None)
        stage.want(UPSTREAM_RECORD, ROUTE_RECORD)
        await asyncio.sleep(2)
        assert set(stage.gateway.stored) == {UPSTREAM, ROUTE}


@on_stage
async def test_refused_delete_is_tried_again_since_the_gateways_guard_lags_behind() -> None:
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
async def test_no_write_starts_when_the_lease_may_run_out_during_it() -> None:
    stage = Stage([UPSTREAM_RECORD])
    stage.term.deadline = stage.clock.monotonic() + stage.backend.timeout
    stage.ready.set()
    with pytest.raises(LeadershipLost, match="cluster c1: the lease may have run out"):
        await stage.sync.run(stage.term, stage.ready)
    assert stage.log == []
    assert not stage.sync.taken_over


@on_stage
async def test_write_in_flight_at_the_end_of_a_term_is_unknown_and_the_next_term_reads_anew() -> None:
    stage = Stage([UPSTREAM_RECORD, ROUTE_RECORD])
    stage.gateway.faults.slow = 1.0
    async with stage.running():
        assert stage.sync.counts["in_flight"] == 1
    assert (stage.sync.counts["in_flight"], stage.sync.counts["unknown"]) == (0, 1)
    stage.gateway.faults.slow = 0.0
    stage.gateway.stored[UPSTREAM] = UPSTREAM_RECORD.body
    async with stage.running():
        assert stage.log == [("put", "routes/r1")]


@on_stage
async def test_changes_outside_a_term_are_found_by_taking_over() -> None:
    stage = Stage([UPSTREAM_RECORD])
    stage.want(UPSTREAM_RECORD, make_record(OTHER))
    assert not await stage.sync.drain(1)
    async with stage.running():
        assert set(stage.gateway.stored) == {UPSTREAM, OTHER}


@on_stage
async def test_audit_restores_what_was_changed_removed_or_stripped_of_its_label_and_removes_what_is_too_much() -> None:
    stage = Stage([UPSTREAM_RECORD, ROUTE_RECORD, make_record(OTHER)])
    async with stage.running():
        want = dict(stage.gateway.stored)
        stage.gateway.meddle(ROUTE, {**ROUTE_RECORD.body, "uri": "/edited"})
        stage.gateway.meddle(UPSTREAM, {"id": "u1", "nodes": {}})
        del stage.gateway.stored[OTHER]
        extra = make_record(RecordKey("routes", "extra"), upstream_id="u1")
        stage.gateway.stored[extra.key] = extra.body
        stranger = RecordKey("routes", "theirs")
        stage.gateway.stored[stranger] = {"id": "theirs"}
        await asyncio.sleep(62)
        assert stage.gateway.stored == {**want, stranger: {"id": "theirs"}}
        assert stage.notes.drifts == [4]
        await asyncio.sleep(120)
        assert stage.notes.drifts == [4, 0, 0]


@on_stage
async def test_audit_does_not_misjudge_what_is_written_meanwhile() -> None:
    stage = Stage([make_record(UPSTREAM, nodes={"a:0": 1})])
    async with stage.running():
        stage.gateway.log.clear()
        for n in range(1, 400):
            stage.want(make_record(UPSTREAM, nodes={f"a:{n}": 1}), *([make_record(OTHER)] if n % 2 else []))
            await asyncio.sleep(0.25)
        await asyncio.sleep(70)
        assert sum(stage.notes.drifts) == 0


@on_stage
async def test_failed_audit_is_tried_again_soon_and_changes_nothing() -> None:
    stage = Stage([UPSTREAM_RECORD])
    async with stage.running():
        stage.gateway.faults.down = True
        await asyncio.sleep(62)
        assert stage.notes.drifts == []
        stage.gateway.faults.down = False
        await asyncio.sleep(7)
        assert (stage.notes.drifts, stage.notes.breakers) == ([0], [])


def many(count: int) -> list[Record]:
    return [make_record(RecordKey("routes", f"many{n}")) for n in range(count)]


@on_stage
async def test_unusual_number_of_orphans_is_held_back() -> None:
    stage = Stage(many(40)[:10], stored=many(40))
    async with stage.running():
        await asyncio.sleep(200)
        assert len(stage.gateway.stored) == 40
        assert stage.notes.helds[-1] == 30
        stage.want(*many(40))
        await asyncio.sleep(1)
        assert stage.sync.counts["held"] == 0
        stage.want(*many(5))
        await asyncio.sleep(30)
        assert len(stage.gateway.stored) == 5


@on_stage
async def test_some_orphans_are_deleted() -> None:
    stage = Stage(many(40)[:22], stored=many(40))
    async with stage.running():
        assert len(stage.gateway.stored) == 22


@on_stage
async def test_records_whose_objects_went_away_in_this_process_life_are_no_orphans() -> None:
    stage = Stage(many(40), stored=many(40))
    stage.sync.mark_dirty(stage.wanted.keys())
    stage.want()
    async with stage.running():
        await asyncio.sleep(10)
        assert stage.gateway.stored == {}


@on_stage
async def test_record_of_others_under_our_id_is_left_alone() -> None:
    theirs = {"id": "u1", "nodes": {"x:1": 1}}
    stage = Stage([UPSTREAM_RECORD])
    stage.gateway.stored[UPSTREAM] = theirs
    async with stage.running():
        await asyncio.sleep(100)
        assert stage.gateway.stored == {UPSTREAM: theirs}
        want = "the gateway has another record upstreams/u1, which is not ours: remove it there"
        assert stage.sync.record_state(UPSTREAM) == RecordState("rejected", want)
        del stage.gateway.stored[UPSTREAM]
        await asyncio.sleep(70)
        assert stage.sync.record_state(UPSTREAM) == APPLIED


@on_stage
async def test_record_for_existing_ones_only_is_updated_but_not_created() -> None:
    record = make_record(UPSTREAM, existing_only=True, nodes={"a:80": 1})
    stage = Stage([record, make_record(OTHER, existing_only=True)], stored=[make_record(UPSTREAM)])
    async with stage.running():
        assert stage.gateway.stored == {UPSTREAM: record.body}
        assert stage.sync.record_state(OTHER) == APPLIED


@on_stage
async def test_held_record_stays_until_the_hold_is_lifted() -> None:
    stage = Stage(stored=[UPSTREAM_RECORD])
    stage.wanted.held.add(UPSTREAM)
    async with stage.running():
        await asyncio.sleep(100)
        assert UPSTREAM in stage.gateway.stored
        stage.wanted.held.clear()
        await asyncio.sleep(2)
        assert stage.gateway.stored == {}
        assert stage.sync.record_state(UPSTREAM) == APPLIED


@on_stage
async def test_draining_waits_for_what_is_queued_but_not_for_ever() -> None:
    stage = Stage()
    async with stage.running():
        stage.want(*many(50))
        assert await stage.sync.drain(10)
        assert len(stage.gateway.stored) == 50
        stage.gateway.faults.slow = 1.0
        stage.want(*many(51))
        assert not await stage.sync.drain(0.0001)


@on_stage
async def test_writes_in_flight_never_exceed_the_concurrency() -> None:
    stage = Stage(many(100))
    stage.sync = stage.new_sync(concurrency=7)
    async with stage.running():
        assert len(stage.gateway.stored) == 100
    assert stage.backend.peak == 7


@on_stage
async def test_records_that_need_no_write_do_not_keep_others_from_running() -> None:
    stage = Stage(many(300), stored=many(300))
    async with stage.running():
        stage.sync.mark_dirty(stage.wanted.keys())
        ticks = 0
        while not stage.sync.idle():
            await asyncio.sleep(0)
            ticks += 1
        assert ticks > 1
        assert stage.log == []


@on_stage
async def test_state_of_a_record_that_is_to_go_is_pending() -> None:
    stage = Stage([UPSTREAM_RECORD])
    async with stage.running():
        stage.want()
        assert stage.sync.record_state(UPSTREAM) == RecordState("pending")
        await asyncio.sleep(1)
        assert stage.sync.record_state(UPSTREAM) == APPLIED
        assert math.isinf(stage.term.remaining())


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
        async def put(self, record: Record) -> None:
            assert record.payload
            await super().put(record)

    stage.backend = Encoding(stage.gateway)
    stage.sync = stage.new_sync()
    async with stage.running():
        stage.want(deep)
        await asyncio.sleep(10)
        assert UPSTREAM not in stage.gateway.stored
        want = RecordState("unreachable", "internal error: see the log of the controller")
        assert stage.sync.record_state(OTHER) == want


@on_stage
async def test_a_list_that_crashes_is_read_again() -> None:
    stage = Stage([UPSTREAM_RECORD])
    failing = [TypeError("a bug"), TypeError("a bug")]

    class Buggy(FakeBackend):
        async def list_managed(self, ledger: Collection[RecordKey]) -> Listing:
            if failing:
                raise failing.pop()
            return await super().list_managed(ledger)

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
