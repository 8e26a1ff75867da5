"""A Lease that is edited during a term: this ends the term, but never allows two terms at once."""

from collections.abc import Callable

import pytest

from apisix_ingress.errors import KubeUnavailable
from apisix_ingress.model.json import JsonObject
from tests.fakes.clock import FakeClock
from tests.unit.apisix_ingress.kube.election.electing import LeaseServer, Start

LARGEST = 2**31 - 1


async def pass_time(clock: FakeClock, seconds: float, check: Callable[[], None]) -> None:
    """Check whenever something may have happened."""
    end = clock.monotonic() + seconds
    while clock.monotonic() < end:
        assert await clock.run_to_next()
        check()


async def pass_request(server: LeaseServer, clock: FakeClock, verb: str) -> None:
    """Return as soon as there is one more request of that kind."""
    before = server.requests.count(verb)
    while server.requests.count(verb) == before:
        assert await clock.run_to_next()


def edit(server: LeaseServer, change: Callable[[JsonObject], JsonObject]) -> None:
    assert server.lease is not None
    server.store({**server.lease, "spec": change(server.spec)})


@pytest.mark.parametrize(
    "change",
    [
        lambda spec: {},
        lambda spec: {**spec, "holderIdentity": ""},
        lambda spec: {name: value for name, value in spec.items() if name != "holderIdentity"},
        lambda spec: {**spec, "holderIdentity": "two"},
        lambda spec: {**spec, "holderIdentity": "two", "leaseDurationSeconds": 1},
    ],
    ids=["emptied", "nobody's", "without holder", "given to the other", "given for a second"],
)
@pytest.mark.parametrize("renewals", [1, 2, 3, 4])
async def test_an_edit_of_the_lease_never_makes_two_leaders(
    server: LeaseServer, clock: FakeClock, start: Start, change: Callable[[JsonObject], JsonObject], renewals: int
) -> None:
    one = start("one")
    await clock.advance(5)
    two = start("two")
    await clock.advance(5)
    for _ in range(renewals):
        await pass_request(server, clock, "edit")
    edit(server, change)

    def never_both() -> None:
        assert not (one.working and two.working)

    await pass_time(clock, 40, never_both)
    assert len(one.ended_at) >= 1
    assert one.working or two.working


@pytest.mark.parametrize("edited", ["emptied", "given to the other", "deleted"])
async def test_a_candidate_that_could_not_read_counts_from_its_first_read(
    server: LeaseServer, clock: FakeClock, start: Start, edited: str
) -> None:
    """The holder may have renewed until a moment ago."""
    one, two = start("one"), start("two")
    await clock.advance(5)
    two.client.error = KubeUnavailable("down")
    await clock.advance(20)
    await pass_request(server, clock, "edit")
    if edited == "deleted":
        server.lease = None
    else:
        edit(server, lambda spec: {**spec, "holderIdentity": "two"} if edited == "given to the other" else {})
    two.client.error = None

    def never_both() -> None:
        assert not (one.working and two.working)

    await pass_time(clock, 30, never_both)
    assert one.working or two.working


async def test_a_lease_acquired_without_a_response_is_used_once_it_is_seen(clock: FakeClock, start: Start) -> None:
    one, two = start("one"), start("two")
    await clock.advance(5)
    two.client.loses_replies = True
    await one.stop()
    await clock.advance(3)
    two.client.loses_replies = False
    await clock.advance(3)
    assert two.working


async def test_a_lease_without_an_observed_holder_is_acquired_at_once(
    server: LeaseServer, clock: FakeClock, start: Start
) -> None:
    server.store({"metadata": {"name": "leader"}, "spec": {}})
    one = start("one")
    await clock.advance(0)
    assert one.working


async def test_a_lease_with_the_maximum_number_of_transitions_is_acquired(
    server: LeaseServer, clock: FakeClock, start: Start
) -> None:
    server.store({"metadata": {"name": "leader"}, "spec": {"leaseTransitions": LARGEST}})
    one = start("one")
    await clock.advance(0)
    assert (one.working, server.spec["leaseTransitions"]) == (True, LARGEST)


async def test_a_released_lease_is_acquired_within_one_retry_period(
    server: LeaseServer, clock: FakeClock, start: Start
) -> None:
    """The follower read the lease just before it was released, so that the wait is as long as possible."""
    for number in range(20):
        one = start(f"one-{number}")
        await clock.advance(5)
        two = start(f"two-{number}")
        await clock.advance(5)
        await pass_request(server, clock, "get")
        assert one.task is not None
        one.task.cancel()
        await clock.advance(0)
        assert server.spec["holderIdentity"] == ""
        await clock.advance(2)
        assert two.working
        await two.stop()
