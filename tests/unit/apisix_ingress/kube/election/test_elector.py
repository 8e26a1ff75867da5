"""The elector on a virtual clock: who leads, for how long, and what ends a term."""

import random
from typing import Any

import pytest
from structlog.testing import capture_logs

from apisix_ingress.errors import KubeForbidden, KubeUnavailable, LeadershipLost
from apisix_ingress.kube.election.interface import NoElection
from apisix_ingress.model.json import JsonObject
from apisix_ingress.runtime.term import Term
from tests.fakes.clock import FakeClock
from tests.unit.apisix_ingress.kube.election.electing import LeaseServer, Start, run_for


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
    """A response within renew_deadline less retry_period is in time, even if every response takes that long."""
    one, two, rng = start("one"), start("two"), random.Random(5)
    await run_for(clock, 5)
    for each in (one, two):
        each.client.draw = lambda: rng.uniform(quickest, slowest)
    await clock.advance(600)
    assert (len(one.terms), one.working, two.terms) == (1, True, [])
    assert one.elector.leading


async def test_a_term_never_lasts_longer_than_others_wait(server: LeaseServer, clock: FakeClock, start: Start) -> None:
    """Other replicas wait from the time when they see a renewal, after it took effect."""
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


async def test_without_permission_to_patch_it_renews_with_update(clock: FakeClock, start: Start) -> None:
    one = start("one")
    one.client.may_edit = False
    with capture_logs() as logs:
        await clock.advance(5)
        one.client.delay = 4.5
        await clock.advance(100)
    assert (len(one.terms), one.working, one.elector.problem) == (1, True, "")
    (reported,) = (line for line in logs if line["event"] == "lease.patch_forbidden")
    assert reported["remedy"].startswith("grant patch on leases in namespace ours")


async def test_without_permission_to_patch_a_stolen_lease_ends_the_term_at_the_next_renewal(
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
    """Otherwise a slow acquisition would leave less time for the first renewal."""
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


async def test_wall_clocks_have_no_influence(clock: FakeClock, start: Start) -> None:
    one, two = start("one"), start("two")
    for jump in (3600, -7200, 86400):
        clock.jump_wall(jump)
        await run_for(clock, 20)
    assert (len(one.terms), one.working, two.terms) == (1, True, [])
    one.client.error = KubeUnavailable("down")
    clock.jump_wall(-86400)
    await run_for(clock, 40)
    assert (one.working, two.working) == (False, True)


async def test_a_follower_logs_the_leader_once(clock: FakeClock, start: Start) -> None:
    with capture_logs() as logs:
        one = start("one")
        await run_for(clock, 5)
        two = start("two")
        await run_for(clock, 40)
        await one.stop()
        await run_for(clock, 20)
    assert two.working
    reported = [(line["lease"], line["leader"]) for line in logs if line["event"] == "leader.observed"]
    assert reported == [("leader", "one")]


async def test_a_lease_without_renewals_is_acquired_after_it_was_watched_for_its_duration(
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


async def test_a_lost_reply_to_a_renewal_is_not_a_lost_lease(clock: FakeClock, start: Start) -> None:
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


async def test_a_pause_of_the_process_ends_the_term_before_any_write(clock: FakeClock, start: Start) -> None:
    one = start("one")
    await run_for(clock, 5)
    clock.shift(60)  # SIGSTOP, SIGCONT: time has passed, but no code has run
    assert not one.elector.leading
    with pytest.raises(LeadershipLost):
        one.terms[0].check()
    await run_for(clock, 1)
    assert one.ended_at != []


async def test_a_stop_while_the_work_of_a_lost_term_ends_waits_for_the_work(
    server: LeaseServer, clock: FakeClock, start: Start
) -> None:
    one = start("one")
    await run_for(clock, 5)
    one.slow_end, one.end_failure = 2.0, LeadershipLost("writing stopped")
    server.spec.update(holderIdentity="thief")
    server.store(server.lease or {})
    while one.elector.leading:
        assert await clock.run_to_next()
    assert one.working
    await one.stop()
    assert not one.working


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
    want = "leader election is forbidden: grant get, create, update, patch on leases in namespace ours"
    assert one.elector.problem.startswith(want)
    assert not one.working
