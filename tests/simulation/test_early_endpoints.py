"""During a restart, only changes of endpoints reach the gateways before ApisixRoutes have been listed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.fakes.kube.faults import Seen
from tests.simulation.checking.oracle import crc
from tests.simulation.servers.api_responses import Reply
from tests.simulation.test_detection import Calm, play
from tests.simulation.users import NAMESPACES

SEEDS = range(3)

CHANGED = ("upstreams", crc("alpha_web_80"))


async def served(calm: Calm) -> None:
    """Create a route to every Service: an early update needs upstreams that have not changed."""
    for namespace in NAMESPACES:
        calm.users.serve(namespace)
    calm.checks.look()
    await calm.settle()


def move(calm: Calm, address: str) -> None:
    """Set another endpoint for a Service."""
    calm.users.move("alpha", "web", address)
    calm.checks.look()


@contextmanager
def without_routes(calm: Calm) -> Iterator[None]:
    """Let lists of ApisixRoutes fail."""
    faulty = calm.server._faulty

    def fails(asked: Seen) -> Reply | None:
        return Reply(503) if asked.plural == "apisixroutes" else faulty(asked)

    calm.server._faulty = fails  # type: ignore[method-assign, assignment]
    yield
    calm.server._faulty = faulty  # type: ignore[method-assign]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_endpoints_that_changed_during_a_restart_do_not_wait_for_routes(seed: int, how: str) -> None:
    async def tale(calm: Calm) -> None:
        await served(calm)
        await (calm.replica.stop() if how == "stop" else calm.replica.kill())
        move(calm, "10.0.0.2")
        before = {gateway.name: len(gateway.writes) for gateway in calm.gateways}
        with without_routes(calm):
            calm.replica.start()
            await asyncio.sleep(40.0)
            for gateway in calm.gateways:
                assert [write.key for write in gateway.writes[before[gateway.name] :]] == [CHANGED]
                assert [node["host"] for node in gateway.records["upstreams"][CHANGED[1]]["nodes"]] == ["10.0.0.2"]
        await calm.settle()
        for gateway in calm.gateways:
            assert [write.key for write in gateway.writes[before[gateway.name] :]].count(CHANGED) == 1
        assert calm.trace.violations == []

    play(seed, tale)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("fault", ["error", "lost_request", "lost_reply", "late"])
def test_early_updates_of_a_failing_gateway_are_repeated(seed: int, fault: str) -> None:
    """The gateway fails, and the process is killed in the middle of the early update."""

    async def tale(calm: Calm) -> None:
        await served(calm)
        await calm.replica.stop()
        move(calm, "10.0.0.2")
        with without_routes(calm):
            setattr(calm.gateway.fault, fault, 1.0 if fault == "late" else 0.5)
            calm.replica.start()
            await asyncio.sleep(random.choice([0.3, 1.0, 6.0]))
            await calm.replica.kill()
            move(calm, "10.0.0.3")
            calm.replica.start()
            await asyncio.sleep(40.0)
            setattr(calm.gateway.fault, fault, 0.0)
        await calm.settle()
        assert calm.trace.violations == []

    play(seed, tale)
