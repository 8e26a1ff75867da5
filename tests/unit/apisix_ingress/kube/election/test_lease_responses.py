"""Responses with status 200 that are not a Lease: a proxy in front of the API server may return them."""

from collections.abc import Sequence

import pytest

from apisix_ingress.errors import KubeUnavailable
from apisix_ingress.kube.election.interface import LeaseOptions
from apisix_ingress.kube.election.lease import Lease
from apisix_ingress.model.json import JsonObject
from tests.fakes.clock import FakeClock
from tests.unit.apisix_ingress.kube.election.electing import Start, run_for

NO_LEASES: list[JsonObject] = [
    {},
    {"metadata": {"name": "leader"}},
    {"metadata": {"name": "leader"}, "spec": [1]},
    {"metadata": {"name": "leader"}, "spec": {"holderIdentity": "somebody"}},
    {"metadata": {"name": "leader"}, "spec": {"holderIdentity": ["us"]}},
]


class Liar:
    """Returns the same response to everything."""

    def __init__(self, answer: JsonObject) -> None:
        self.answer = answer

    async def get(self, path: str, *, timeout: float = 1.0) -> JsonObject:
        return self.answer

    async def create(self, path: str, body: JsonObject, *, timeout: float = 1.0) -> JsonObject:
        return self.answer

    async def update(self, path: str, body: JsonObject, *, timeout: float = 1.0) -> JsonObject:
        return self.answer

    async def edit(self, path: str, operations: Sequence[JsonObject], *, timeout: float = 1.0) -> JsonObject:
        return self.answer


def make_lease(answer: JsonObject, clock: FakeClock) -> Lease:
    return Lease(Liar(answer), LeaseOptions("leader", "ours", "us"), clock=clock)


@pytest.mark.parametrize("answer", NO_LEASES)
async def test_a_renewal_succeeds_only_if_the_response_contains_it(answer: JsonObject, clock: FakeClock) -> None:
    with pytest.raises(KubeUnavailable, match="not what was written"):
        await make_lease(answer, clock).renew(1.0)


@pytest.mark.parametrize("answer", NO_LEASES)
@pytest.mark.parametrize("seen", [None, {"metadata": {"name": "leader"}, "spec": {}}], ids=["create", "replace"])
async def test_a_lease_is_acquired_only_if_the_response_confirms_it(
    answer: JsonObject, seen: JsonObject | None, clock: FakeClock
) -> None:
    with pytest.raises(KubeUnavailable, match="not what was written"):
        await make_lease(answer, clock).take(seen)


@pytest.mark.parametrize(
    "answer", [{}, {"metadata": [1]}, {"metadata": {"name": "x"}}, {"metadata": {"name": "leader"}, "spec": [1]}]
)
async def test_a_response_that_is_not_the_lease_is_unavailable(answer: JsonObject, clock: FakeClock) -> None:
    with pytest.raises(KubeUnavailable, match="the response to the read is not this lease"):
        await make_lease(answer, clock).look()


async def test_a_leader_whose_renewals_are_swallowed_stops_before_another_leads(
    clock: FakeClock, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = start("one")
    await run_for(clock, 5)
    two = start("two")
    await run_for(clock, 1)
    for verb in ("edit", "update"):
        monkeypatch.setattr(one.client, verb, getattr(Liar({}), verb))
    both: list[float] = []
    await run_for(clock, 40, lambda: both.append(clock.monotonic()) if one.working and two.working else None)
    assert (both, one.working, two.working) == ([], False, True)


async def test_a_restored_permission_to_patch_is_used_in_the_next_term(clock: FakeClock, start: Start) -> None:
    one = start("one")
    one.client.may_edit = False
    await run_for(clock, 5)
    assert one.elector._lease.overlaps is False
    one.client.hangs = True
    await run_for(clock, 30)
    one.client.hangs, one.client.may_edit = False, True
    await run_for(clock, 30)
    assert (one.working, len(one.terms), one.elector._lease.overlaps) == (True, 2, True)
