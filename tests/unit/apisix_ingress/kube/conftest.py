"""One Lease, a virtual clock, and candidates for the Lease that are stopped at the end."""

from collections.abc import AsyncIterator

import pytest

from tests.fakes.clock import FakeClock
from tests.unit.apisix_ingress.kube.election.electing import Candidate, LeaseServer, Start


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
