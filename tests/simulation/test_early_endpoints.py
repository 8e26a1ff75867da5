"""Endpoints that change during a restart reach the gateways before ApisixRoutes have been listed; nothing else does."""

from __future__ import annotations

import asyncio

import pytest

from tests.fakes.faults import Seen
from tests.simulation.checking.oracle import crc
from tests.simulation.servers.api_responses import Reply
from tests.simulation.test_detection import Calm, play
from tests.simulation.users import NAMESPACES

SEEDS = range(6)

CHANGED = ("upstreams", crc("alpha_web_80"))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_endpoints_that_changed_during_a_restart_do_not_wait_for_routes(seed: int, how: str) -> None:
    async def tale(calm: Calm) -> None:
        for namespace in NAMESPACES:
            calm.users.serve(namespace)
        calm.checks.look()
        await calm.settle()
        await (calm.replica.stop() if how == "stop" else calm.replica.kill())
        calm.users.move("alpha", "web", "10.0.0.2")
        calm.checks.look()
        before = {gateway.name: len(gateway.writes) for gateway in calm.gateways}
        faulty = calm.server._faulty

        def without_routes(asked: Seen) -> Reply | None:
            return Reply(503) if asked.plural == "apisixroutes" else faulty(asked)

        calm.server._faulty = without_routes  # type: ignore[method-assign, assignment]
        calm.replica.start()
        await asyncio.sleep(40.0)
        for gateway in calm.gateways:
            assert [write.key for write in gateway.writes[before[gateway.name] :]] == [CHANGED]
            assert [node["host"] for node in gateway.records["upstreams"][CHANGED[1]]["nodes"]] == ["10.0.0.2"]
        calm.server._faulty = faulty  # type: ignore[method-assign]
        await calm.settle()
        for gateway in calm.gateways:
            assert [write.key for write in gateway.writes[before[gateway.name] :]].count(CHANGED) == 1

    play(seed, tale)
