"""The elector on a virtual clock, with an API server that is slow, hangs, fails and loses replies."""

import asyncio
import contextlib
import copy
import random
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from apisix_ingress.errors import KubeConflict, KubeError, KubeForbidden, KubeNotFound, KubeUnavailable, LeadershipLost
from apisix_ingress.kube.election import LeaseOptions, NoElection
from apisix_ingress.kube.elector import LeaderElector
from apisix_ingress.model.json import JsonObject
from apisix_ingress.runtime.term import Term
from tests.fakes.clock import FakeClock
from tests.fakes.patches import json_patch

PATH = "/apis/coordination.k8s.io/v1/namespaces/ours/leases/leader"


class LeaseServer:
    """One Lease, with optimistic locking; `trouble` is called before each request, `lost` after each write."""

    def __init__(self) -> None:
        self.lease: JsonObject | None = None
        self.version = 0
        self.requests: list[str] = []

    def store(self, body: JsonObject) -> JsonObject:
        self.version += 1
        meta = {**body["metadata"], "resourceVersion": str(self.version)}
        self.lease = copy.deepcopy({**body, "metadata": meta})
        return copy.deepcopy(self.lease)

    @property
    def spec(self) -> JsonObject:
        assert self.lease is not None
        spec: JsonObject = self.lease["spec"]
        return spec


class LeaseClient:
    """One candidate's view of the server."""

    def __init__(self, server: LeaseServer, clock: FakeClock) -> None:
        self._server = server
        self._clock = clock
        self.error: KubeError | None = None
        self.delay = 0.0
        self.draw: Callable[[], float] = lambda: self.delay
        self.hangs = False
        self.loses_replies = False
        self.may_edit = True
        self.conflicts = 0
        """So many edits to come meet other writes."""

    async def get(self, path: str, *, timeout: float = 1.0) -> JsonObject:
        await self._trouble("get", timeout)
        assert path == PATH
        if self._server.lease is None:
            raise KubeNotFound("no lease", status=404)
        return copy.deepcopy(self._server.lease)

    async def create(self, path: str, body: JsonObject, *, timeout: float = 1.0) -> JsonObject:
        await self._trouble("create", timeout)
        if self._server.lease is not None:
            raise KubeConflict("exists", status=409)
        return self._answer(self._server.store(body))

    async def update(self, path: str, body: JsonObject, *, timeout: float = 1.0) -> JsonObject:
        await self._trouble("update", timeout)
        if self._server.lease is None:
            raise KubeNotFound("no lease", status=404)
        if body["metadata"]["resourceVersion"] != self._server.lease["metadata"]["resourceVersion"]:
            raise KubeConflict("changed", status=409)
        return self._answer(self._server.store(body))

    async def edit(self, path: str, operations: Sequence[JsonObject], *, timeout: float = 1.0) -> JsonObject:
        await self._trouble("edit", timeout)
        if not self.may_edit:
            raise KubeForbidden("no patch", status=403)
        if self.conflicts:
            self.conflicts -= 1
            raise KubeConflict("changed", status=409)
        if self._server.lease is None:
            raise KubeNotFound("no lease", status=404)
        try:
            return self._answer(self._server.store(json_patch(self._server.lease, operations)))
        except ValueError as error:
            raise KubeConflict(str(error), status=422) from None

    def _answer(self, lease: JsonObject) -> JsonObject:
        if self.loses_replies:
            raise KubeUnavailable("the reply is lost")
        return lease

    async def _trouble(self, verb: str, timeout: float) -> None:
        self._server.requests.append(verb)
        delay = self.draw()
        if self.hangs or delay > timeout:
            await self._clock.sleep(timeout)
            raise KubeUnavailable("no answer in time")
        if delay:
            await self._clock.sleep(delay)
        if self.error is not None:
            raise self.error


class Candidate:
    """An elector, and work that notes when it runs."""

    def __init__(self, server: LeaseServer, clock: FakeClock, name: str) -> None:
        self.client = LeaseClient(server, clock)
        self.clock = clock
        self.terms: list[Term] = []
        self.ended_at: list[float] = []
        self.slow_end = 0.0
        self.failure: Exception | None = None
        self.elector = LeaderElector(
            self.client,
            LeaseOptions("leader", "ours", name),
            clock=clock,
            rng=random.Random(7),
        )
        self.task: asyncio.Task[None] | None = None

    @property
    def working(self) -> bool:
        return len(self.terms) > len(self.ended_at)

    async def work(self, term: Term) -> None:
        self.terms.append(term)
        try:
            while True:
                await self.clock.sleep(0.5)
                if self.failure is not None:
                    raise self.failure
        finally:
            await self.clock.sleep(self.slow_end)
            self.ended_at.append(self.clock.monotonic())

    def start(self) -> None:
        self.task = asyncio.create_task(self.elector.lead(self.work))

    async def stop(self) -> None:
        """Cancel it, with all the time that it wants."""
        if self.task is None:
            return
        self.task.cancel()
        while not self.task.done() and await self.clock.run_to_next():
            pass
        with contextlib.suppress(asyncio.CancelledError, RuntimeError):
            await self.task


Start = Callable[[str], Candidate]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def server() -> LeaseServer:
    return LeaseServer()


@pytest.fixture
async def start(server: LeaseServer, clock: FakeClock) -> AsyncIterator[Start]:
    started: list[Candidate] = []

    def start_one(name: str) -> Candidate:
        started.append(Candidate(server, clock, name))
        started[-1].start()
        return started[-1]

    yield start_one
    for candidate in started:
        await candidate.stop()


async def run_for(clock: FakeClock, seconds: float, check: Callable[[], None] = lambda: None) -> None:
    for _ in range(round(seconds / 0.1)):
        await clock.advance(0.1)
        check()


async def test_the_first_candidate_creates_the_lease(server: LeaseServer, clock: FakeClock, start: Start) -> None:
    one = start("one")
    await clock.advance(0)
    assert one.working
    assert one.elector.leading
    assert server.spec == {
        "holderIdentity": "one",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-01-01T00:00:00.000000Z",
        "renewTime": "2026-01-01T00:00:00.000000Z",
        "leaseTransitions": 0,
    }


async def test_renewals_keep_the_term_and_the_time_of_acquisition(
    server: LeaseServer, clock: FakeClock, start: Start
) -> None:
    one, two = start("one"), start("two")
    await run_for(clock, 120)
    assert (len(one.terms), one.working, two.terms) == (1, True, [])
    assert server.spec["acquireTime"] == "2026-01-01T00:00:00.000000Z"
    assert server.spec["renewTime"] > "2026-01-01T00:01:50"
    assert 12 < one.terms[0].remaining() <= 15
    assert two.elector.holder == "one"


@pytest.mark.parametrize(("quickest", "slowest"), [(4.5, 4.5), (2.0, 8.0), (8.0, 8.0)])
async def test_a_slow_api_server_does_not_end_a_term(
    clock: FakeClock, start: Start, quickest: float, slowest: float
) -> None:
    """Whatever is answered within renew_deadline less retry_period is in time, even if every answer takes that long."""
    one, two, rng = start("one"), start("two"), random.Random(5)
    await run_for(clock, 5)
    for each in (one, two):
        each.client.draw = lambda: rng.uniform(quickest, slowest)
    await clock.advance(600)
    assert (len(one.terms), one.working, two.terms) == (1, True, [])
    assert one.elector.leading


async def test_a_term_never_lasts_longer_than_others_wait(server: LeaseServer, clock: FakeClock, start: Start) -> None:
    """Others wait from when they see a renewal, and that is no sooner than it is carried out."""
    one, rng, carried_out = start("one"), random.Random(11), 0.0
    store = server.store

    def stored(body: JsonObject) -> JsonObject:
        nonlocal carried_out
        carried_out = clock.monotonic()
        return store(body)

    server.store = stored  # type: ignore[method-assign]
    one.client.draw = lambda: rng.choice([0.0, 1.0, 4.0, 9.0, 30.0]) * rng.random()
    for _ in range(300):
        assert await clock.run_to_next()
        assert all(term.deadline <= carried_out + 15 for term in one.terms)
    assert len(one.terms) > 0


async def test_a_stop_before_a_slow_win_is_confirmed_gives_the_lease_back(
    server: LeaseServer, clock: FakeClock, start: Start
) -> None:
    one = start("one")
    one.client.delay = 8.0
    await clock.advance(18)  # one look, one write, and the first renewal is under way
    assert (server.spec["holderIdentity"], one.terms) == ("one", [])
    one.client.delay = 0.0
    await one.stop()
    assert (server.spec["holderIdentity"], one.terms) == ("", [])


async def test_a_lease_that_is_stolen_before_a_slow_win_is_confirmed_begins_no_term(
    server: LeaseServer, clock: FakeClock, start: Start
) -> None:
    one = start("one")
    one.client.delay = 8.0
    await clock.advance(17)
    server.spec.update(holderIdentity="thief")
    server.store(server.lease or {})
    await clock.advance(40)
    assert (one.terms, one.elector.holder) == ([], "thief")


async def test_without_the_right_to_patch_it_renews_by_update(clock: FakeClock, start: Start) -> None:
    one = start("one")
    one.client.may_edit = False
    with capture_logs() as logs:
        await clock.advance(5)
        one.client.delay = 4.5
        await clock.advance(100)
    assert (len(one.terms), one.working, one.elector.problem) == (1, True, "")
    (told,) = (line for line in logs if line["event"] == "renewal.restricted")
    assert told["remedy"].startswith("grant patch on leases in namespace ours")


async def test_without_the_right_to_patch_a_stolen_lease_ends_the_term_at_the_next_renewal(
    server: LeaseServer, clock: FakeClock, start: Start
) -> None:
    one = start("one")
    one.client.may_edit = False
    await clock.advance(5)
    server.spec.update(holderIdentity="thief")
    server.store(server.lease or {})
    await clock.advance(3)
    assert (one.working, len(one.terms), one.elector.leading) == (False, 1, False)


async def test_a_lease_that_is_won_slowly_is_renewed_before_work_begins(clock: FakeClock, start: Start) -> None:
    """Otherwise the first renewal would have the less time, the longer the winning took."""
    one = start("one")
    one.client.delay = 8.0
    await clock.advance(120)
    assert (len(one.terms), one.working) == (1, True)


@pytest.mark.parametrize("trouble", ["hangs", "unavailable", "forbidden"])
async def test_without_renewals_the_work_has_ended_before_another_leads(
    clock: FakeClock, start: Start, trouble: str
) -> None:
    one = start("one")
    await run_for(clock, 5)
    two = start("two")
    await run_for(clock, 1)
    one.slow_end = 4.0
    cut_at = clock.monotonic()
    one.client.hangs = trouble == "hangs"
    one.client.error = KubeForbidden("no", status=403) if trouble == "forbidden" else KubeUnavailable("down")

    def never_both() -> None:
        assert not (one.working and two.working)
        assert not (one.elector.leading and two.elector.leading)

    await run_for(clock, 40, never_both)
    assert (one.working, two.working) == (False, True)
    assert one.ended_at[0] - cut_at <= 15
    assert (len(one.terms), one.elector.leading) == (1, False)
    assert one.elector.problem != ""


async def test_a_short_outage_does_not_end_a_term(clock: FakeClock, start: Start) -> None:
    one = start("one")
    await run_for(clock, 5)
    one.client.error = KubeUnavailable("down")
    await run_for(clock, 6)
    assert one.elector.problem == "down"
    one.client.error = None
    await run_for(clock, 20)
    assert (len(one.terms), one.working, one.elector.problem) == (1, True, "")


async def test_wall_clocks_decide_nothing(clock: FakeClock, start: Start) -> None:
    one, two = start("one"), start("two")
    for jump in (3600, -7200, 86400):
        clock.jump_wall(jump)
        await run_for(clock, 20)
    assert (len(one.terms), one.working, two.terms) == (1, True, [])
    one.client.error = KubeUnavailable("down")
    clock.jump_wall(-86400)
    await run_for(clock, 40)
    assert (one.working, two.working) == (False, True)


async def test_who_stands_by_says_once_who_leads(clock: FakeClock, start: Start) -> None:
    with capture_logs() as logs:
        one = start("one")
        await run_for(clock, 5)
        two = start("two")
        await run_for(clock, 40)
        await one.stop()
        await run_for(clock, 20)
    assert two.working
    told = [(line["lease"], line["leader"]) for line in logs if line["event"] == "term.awaited"]
    assert told == [("leader", "one")]


async def test_a_lease_that_nobody_renews_is_taken_after_we_watched_it_that_long(
    server: LeaseServer, clock: FakeClock, start: Start
) -> None:
    long_ago = {"holderIdentity": "dead", "leaseDurationSeconds": 20, "leaseTransitions": 4, "renewTime": "2020"}
    server.store({"metadata": {"name": "leader"}, "spec": long_ago})
    two = start("two")
    await run_for(clock, 19)
    assert two.terms == []
    await run_for(clock, 5)
    assert two.working
    assert server.spec["leaseTransitions"] == 5


async def test_a_deleted_lease_ends_the_term_and_has_to_run_out_for_others(
    server: LeaseServer, clock: FakeClock, start: Start
) -> None:
    one, two = start("one"), start("two")
    await run_for(clock, 6)
    server.lease = None

    def never_both() -> None:
        assert not (one.working and two.working)

    await run_for(clock, 30, never_both)
    assert len(one.ended_at) >= 1
    assert one.working or two.working


async def test_a_stolen_lease_ends_the_term_at_the_next_renewal(
    server: LeaseServer, clock: FakeClock, start: Start
) -> None:
    one = start("one")
    await run_for(clock, 5)
    server.spec.update(holderIdentity="thief")
    server.store(server.lease or {})
    await run_for(clock, 3)
    assert (one.working, len(one.terms), one.elector.leading) == (False, 1, False)


async def test_a_lost_reply_to_a_renewal_is_no_lost_lease(clock: FakeClock, start: Start) -> None:
    one = start("one")
    await run_for(clock, 5)
    one.client.loses_replies = True
    await run_for(clock, 3)
    one.client.loses_replies = False
    await run_for(clock, 30)
    assert (len(one.terms), one.working) == (1, True)


async def test_a_lost_reply_to_the_acquisition_is_found_out(clock: FakeClock, start: Start) -> None:
    one = start("one")
    one.client.loses_replies = True
    await run_for(clock, 1)
    assert not one.working
    one.client.loses_replies = False
    await run_for(clock, 5)
    assert one.working


async def test_shutdown_ends_the_work_then_releases_the_lease(
    server: LeaseServer, clock: FakeClock, start: Start
) -> None:
    one, two = start("one"), start("two")
    await run_for(clock, 5)
    one.slow_end = 2.0
    ended = len(server.requests)
    await one.stop()
    assert [verb for verb in server.requests[ended:] if verb != "get"] == ["edit"]
    assert server.spec["holderIdentity"] == ""
    assert server.spec["leaseDurationSeconds"] == 1
    assert one.terms[0].remaining() < 0
    await run_for(clock, 2.5)
    assert two.working
    assert server.spec["leaseTransitions"] == 1


async def test_a_lease_that_is_won_while_stopping_is_given_back(
    server: LeaseServer, clock: FakeClock, start: Start
) -> None:
    one, two = start("one"), start("two")
    await run_for(clock, 5)
    two.client.delay = 0.3
    await one.stop()
    before = len(server.requests)
    while "update" not in server.requests[before:]:
        assert await clock.run_to_next()
    await two.stop()
    assert (server.spec["holderIdentity"], server.spec["leaseTransitions"], two.terms) == ("", 1, [])


async def test_a_renewal_that_arrives_while_stopping_does_not_keep_the_lease(
    server: LeaseServer, clock: FakeClock, start: Start
) -> None:
    one = start("one")
    await run_for(clock, 5)
    assert server.lease is not None
    server.store(server.lease)
    await one.stop()
    assert server.spec["holderIdentity"] == ""


@pytest.mark.parametrize("seconds", [1.6, 2.9])
async def test_renewals_that_come_through_while_a_slow_api_server_is_asked_do_not_keep_the_lease(
    server: LeaseServer, clock: FakeClock, start: Start, seconds: float
) -> None:
    """Two that were given up change the version of the lease, one after the other, before the release comes through."""
    one = start("one")
    await run_for(clock, 5)
    one.client.delay = seconds
    stopping = asyncio.create_task(one.stop())
    for _ in range(2):
        await clock.sleep(seconds / 3)
        assert server.lease is not None
        server.store(server.lease)
    await stopping
    assert server.spec["holderIdentity"] == ""


async def test_a_release_leaves_a_lease_alone_that_is_somebody_elses(
    server: LeaseServer, clock: FakeClock, start: Start
) -> None:
    one = start("one")
    await run_for(clock, 5)
    server.spec.update(holderIdentity="thief")
    server.store(server.lease or {})
    with capture_logs() as logs:
        await one.stop()
    assert server.spec["holderIdentity"] == "thief"
    assert [line["event"] for line in logs if line["event"].startswith("lease.")] == []


async def test_a_release_that_meets_other_writes_is_tried_once_more(
    server: LeaseServer, clock: FakeClock, start: Start
) -> None:
    one = start("one")
    await run_for(clock, 5)
    one.client.conflicts = 1
    await one.stop()
    assert server.spec["holderIdentity"] == ""


async def test_without_the_right_to_patch_the_lease_is_released_by_update(
    server: LeaseServer, clock: FakeClock, start: Start
) -> None:
    one = start("one")
    await run_for(clock, 1)
    one.client.may_edit = False  # taken away after the last renewal, so that the release finds out
    await one.stop()
    assert server.spec["holderIdentity"] == ""
    two = start("two")
    two.client.may_edit = False
    await run_for(clock, 20)
    assert server.lease is not None
    server.store(server.lease)
    await two.stop()
    assert server.spec["holderIdentity"] == ""


async def test_a_lease_is_not_released_while_work_under_it_may_go_on(
    server: LeaseServer, clock: FakeClock, start: Start
) -> None:
    one = start("one")
    await run_for(clock, 5)
    one.slow_end = 60.0
    await one.stop()
    assert server.spec["holderIdentity"] == "one"


async def test_a_lease_is_held_until_no_write_of_the_term_can_be_carried_out_any_more(
    server: LeaseServer, clock: FakeClock, start: Start
) -> None:
    one, two = start("one"), start("two")
    await run_for(clock, 5)
    began = clock.monotonic()
    one.terms[0].doubt(began + 4)
    await one.stop()
    assert server.spec["holderIdentity"] == ""
    assert clock.monotonic() == began + 4
    assert two.terms == []


async def test_a_lease_has_to_run_out_where_a_write_may_be_carried_out_long_after(
    server: LeaseServer, clock: FakeClock, start: Start
) -> None:
    one, two = start("one"), start("two")
    await run_for(clock, 5)
    one.terms[0].doubt(clock.monotonic() + 10)
    with capture_logs() as logs:
        await one.stop()
    assert server.spec["holderIdentity"] == "one"
    assert [line["reason"] for line in logs if line["event"] == "lease.kept"] == [
        "a write that got no answer may still be carried out, for 10 s perhaps"
    ]
    await run_for(clock, 10)
    assert two.terms == []
    await run_for(clock, 8)
    assert two.working


async def test_work_that_fails_releases_the_lease_only_after_its_writes(
    server: LeaseServer, clock: FakeClock, start: Start
) -> None:
    one = start("one")
    await run_for(clock, 5)
    one.terms[0].doubt(clock.monotonic() + 4)
    one.failure = RuntimeError("broken")
    await run_for(clock, 3.5)
    assert server.spec["holderIdentity"] == "one"
    await run_for(clock, 1)
    assert one.task is not None
    with pytest.raises(RuntimeError, match="broken"):
        await one.task
    assert server.spec["holderIdentity"] == ""


async def test_a_lost_term_is_not_followed_by_another_one_before_its_writes_are_over(
    server: LeaseServer, clock: FakeClock, start: Start
) -> None:
    """The lease may still be ours: then nobody else, but we ourselves, would write before the last write lands."""
    one = start("one")
    await run_for(clock, 5)
    one.terms[0].doubt(clock.monotonic() + 5)
    one.failure = LeadershipLost("late")
    await run_for(clock, 1)
    one.failure = None
    await run_for(clock, 3.9)
    assert (len(one.terms), server.spec["holderIdentity"]) == (1, "one")
    await run_for(clock, 1)
    assert (len(one.terms), one.working) == (2, True)


async def test_a_process_that_was_frozen_in_a_write_campaigns_at_once(clock: FakeClock, start: Start) -> None:
    """Its lease has run out: others wait for that, not for its write."""
    one = start("one")
    await run_for(clock, 5)
    clock.shift(60)
    one.terms[0].doubt(clock.monotonic() + 10)
    await run_for(clock, 3)
    assert (len(one.terms), one.working) == (2, True)


async def test_shutdown_while_the_api_server_is_down_ends_the_work(clock: FakeClock, start: Start) -> None:
    one = start("one")
    await run_for(clock, 5)
    one.client.error = KubeUnavailable("down")
    await one.stop()
    assert (one.working, one.elector.leading) == (False, False)


async def test_what_the_work_raises_reaches_the_caller_with_the_lease_released(
    server: LeaseServer, clock: FakeClock, start: Start
) -> None:
    one = start("one")
    one.failure = RuntimeError("broken")
    await run_for(clock, 1)
    assert one.task is not None
    with pytest.raises(RuntimeError, match="broken"):
        await one.task
    assert server.spec["holderIdentity"] == ""


@pytest.mark.parametrize("error", [LeadershipLost("late"), ExceptionGroup("group", [LeadershipLost("late")])])
async def test_work_that_notices_the_loss_itself_campaigns_again(
    clock: FakeClock, start: Start, error: Exception
) -> None:
    one = start("one")
    one.failure = error
    await run_for(clock, 1)
    one.failure = None
    await run_for(clock, 20)
    assert (len(one.terms), one.working) == (2, True)


async def test_a_pause_of_the_process_ends_the_term_before_any_write(clock: FakeClock, start: Start) -> None:
    one = start("one")
    await run_for(clock, 5)
    clock.shift(60)  # SIGSTOP, SIGCONT: time has passed, nothing has run
    assert not one.elector.leading
    with pytest.raises(LeadershipLost):
        one.terms[0].check()
    await run_for(clock, 1)
    assert one.ended_at != []


async def test_no_election_leads_at_once_until_cancelled() -> None:
    clock = FakeClock()
    election = NoElection(clock=clock, identity="alone")
    seen: list[Any] = []

    async def work(term: Term) -> None:
        seen.append((term.holder, election.leading, term.remaining()))

    await election.lead(work)
    assert seen == [("alone", True, float("inf"))]
    assert not election.leading


async def test_a_missing_permission_is_named(clock: FakeClock, start: Start) -> None:
    one = start("one")
    one.client.error = KubeForbidden("no", status=403)
    await run_for(clock, 5)
    want = "electing a leader is forbidden: grant get, create, update, patch on leases in namespace ours"
    assert one.elector.problem.startswith(want)
    assert not one.working
