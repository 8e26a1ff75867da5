"""The elector on a virtual clock: when the lease is released, depending on the work under it."""

import asyncio

import pytest
from structlog.testing import capture_logs

from apisix_ingress.errors import KubeUnavailable, LeadershipLost
from tests.fakes.clock import FakeClock
from tests.unit.apisix_ingress.kube.election.electing import LeaseServer, Start, run_for


async def test_a_stop_before_a_slow_win_is_confirmed_gives_the_lease_back(
    server: LeaseServer, clock: FakeClock, start: Start
) -> None:
    one = start("one")
    one.client.delay = 8.0
    await clock.advance(18)  # one read, one write, and the first renewal is in flight
    assert (server.spec["holderIdentity"], one.terms) == ("one", [])
    one.client.delay = 0.0
    await one.stop()
    assert (server.spec["holderIdentity"], one.terms) == ("", [])


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


async def test_a_lease_acquired_while_stopping_is_released(server: LeaseServer, clock: FakeClock, start: Start) -> None:
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
async def test_renewals_sent_during_a_slow_request_do_not_extend_the_lease(
    server: LeaseServer, clock: FakeClock, start: Start, seconds: float
) -> None:
    """Two abandoned renewals change the version of the lease before the release takes effect."""
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


async def test_a_release_does_not_change_the_lease_of_another_holder(
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


async def test_a_release_of_the_lease_is_retried_after_a_conflict(
    server: LeaseServer, clock: FakeClock, start: Start
) -> None:
    one = start("one")
    await run_for(clock, 5)
    one.client.conflicts = 1
    await one.stop()
    assert server.spec["holderIdentity"] == ""


async def test_without_permission_to_patch_the_lease_is_released_with_update(
    server: LeaseServer, clock: FakeClock, start: Start
) -> None:
    one = start("one")
    await run_for(clock, 1)
    one.client.may_edit = False  # removed after the last renewal, so that the release detects it
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


async def test_a_lease_is_held_until_no_write_of_the_term_can_take_effect_any_more(
    server: LeaseServer, clock: FakeClock, start: Start
) -> None:
    one, two = start("one"), start("two")
    await run_for(clock, 5)
    began = clock.monotonic()
    one.terms[0].note_unacked(began + 4)
    await one.stop()
    assert server.spec["holderIdentity"] == ""
    assert clock.monotonic() == began + 4
    assert two.terms == []


async def test_a_lease_has_to_expire_if_a_write_may_take_effect_much_later(
    server: LeaseServer, clock: FakeClock, start: Start
) -> None:
    one, two = start("one"), start("two")
    await run_for(clock, 5)
    one.terms[0].note_unacked(clock.monotonic() + 10)
    with capture_logs() as logs:
        await one.stop()
    assert server.spec["holderIdentity"] == "one"
    assert [line["reason"] for line in logs if line["event"] == "lease.not_released"] == [
        "an unacknowledged write may still take effect for up to 10 s"
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
    one.terms[0].note_unacked(clock.monotonic() + 4)
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
    """This process may still hold the lease: then it would write before its last write takes effect."""
    one = start("one")
    await run_for(clock, 5)
    one.terms[0].note_unacked(clock.monotonic() + 5)
    one.failure = LeadershipLost("late")
    await run_for(clock, 1)
    one.failure = None
    await run_for(clock, 3.9)
    assert (len(one.terms), server.spec["holderIdentity"]) == (1, "one")
    await run_for(clock, 1)
    assert (len(one.terms), one.working) == (2, True)


async def test_a_process_that_was_frozen_in_a_write_campaigns_at_once(clock: FakeClock, start: Start) -> None:
    """Its lease has expired: other replicas wait for that, not for its write."""
    one = start("one")
    await run_for(clock, 5)
    clock.shift(60)
    one.terms[0].note_unacked(clock.monotonic() + 10)
    await run_for(clock, 3)
    assert (len(one.terms), one.working) == (2, True)


async def test_shutdown_while_the_api_server_is_down_ends_the_work(clock: FakeClock, start: Start) -> None:
    one = start("one")
    await run_for(clock, 5)
    one.client.error = KubeUnavailable("down")
    await one.stop()
    assert (one.working, one.elector.leading) == (False, False)


async def test_an_exception_of_the_work_is_raised_after_the_lease_is_released(
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
