"""How soon the whole control plane detects external changes, with default settings and on virtual time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.fakes.kube.faults import Seen
from tests.simulation.loop import SimulationLoop
from tests.simulation.replica import Replica, replaced
from tests.simulation.runner import end_all
from tests.simulation.servers.api_responses import Reply
from tests.simulation.servers.apiserver import SimApiServer
from tests.simulation.servers.gateway import SimGateway
from tests.simulation.story import FOREIGN, Story
from tests.simulation.users import Users

GATEWAY_SECONDS, WATCH_SECONDS = 10.0, 20.0
"""Bounds in seconds for detecting a gateway that is down, emptied or restored, and a silent watch."""

SEEDS = range(3)


class Calm(Story):
    """A settled state with one replica, which leads."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._settings = self._settings.model_copy(
            update={
                "clusters": [each.model_copy(update={"sync": type(each.sync)()}) for each in self._settings.clusters]
            }
        )

    @property
    def gateway(self) -> SimGateway:
        """One of the two."""
        return self._gateways[0]

    @property
    def gateways(self) -> list[SimGateway]:
        """Both."""
        return self._gateways

    @property
    def users(self) -> Users:
        """The users."""
        return self._users

    @property
    def server(self) -> SimApiServer:
        """The API server."""
        return self._server

    @property
    def replica(self) -> Replica:
        """The only one."""
        return self._mischief.replicas[0]

    async def until_settled(self) -> None:
        """Start, and wait for the expected state."""
        self._users.begin()
        for gateway in self._gateways:
            for (kind, id_), body in FOREIGN.items():
                gateway.records[kind][id_] = body
        self.checks.begin()
        replica = Replica("a", self._settings, self._server, self.checks.crashed)
        self._mischief.replicas = [replica]
        replica.start()
        await self._settle()

    def edit(self) -> None:
        """Let users change something that must reach the gateways."""
        while not self.differences():
            self._let(self._users.act)

    async def settle(self) -> None:
        """Wait for the expected state."""
        await self._settle()

    def differences(self) -> list[str]:
        """Return the differences from the expected state of the gateways."""
        return [each for each in self._differences() if each.startswith(("one", "two"))]

    async def end(self) -> None:
        """Stop everything."""
        await self.replica.stop()


Tale = Callable[[Calm], Coroutine[Any, Any, None]]


def play(seed: int, tale: Tale) -> None:
    """Play a story in a settled state."""
    random.seed(seed)
    loop = SimulationLoop(random.Random(seed))

    async def made() -> Calm:
        return Calm(seed)

    async def whole() -> None:
        await calm.until_settled()
        await asyncio.sleep(random.uniform(0.0, 60.0))
        await tale(calm)
        await calm.end()

    calm = loop.run_until_complete(made())
    with replaced(calm.seams, calm.checks.log):
        try:
            loop.run_until_complete(whole())
        finally:
            end_all(loop)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("fault", ["is_down", "hang", "error", "refuses_key"])
def test_an_outage_and_its_end_are_detected_without_pending_writes(seed: int, fault: str) -> None:
    async def tale(calm: Calm) -> None:
        assert calm.replica.controller is not None
        sync = calm.replica.controller.state.clusters.syncs[0]
        setattr(calm.gateway.fault, fault, True)
        await asyncio.sleep(GATEWAY_SECONDS)
        outage = sync.outage
        assert outage is not None
        want = {"is_down": "unreachable", "hang": "unreachable", "error": "failing", "refuses_key": "unauthorized"}
        assert outage.reason == want[fault]
        await asyncio.sleep(100.0)
        setattr(calm.gateway.fault, fault, False)
        await asyncio.sleep(GATEWAY_SECONDS + (30.0 if fault == "refuses_key" else 0.0))
        assert sync.outage is None
        assert calm.replica.controller.state.clusters.syncs[1].outage is None

    play(seed, tale)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_wiped_gateway_is_refilled(seed: int) -> None:
    async def tale(calm: Calm) -> None:
        calm.gateway.restore({})
        await asyncio.sleep(GATEWAY_SECONDS)
        assert [each for each in calm.differences() if "lacks" in each] == []

    play(seed, tale)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_gateway_restored_from_a_backup_is_repaired(seed: int) -> None:
    async def tale(calm: Calm) -> None:
        backup = calm.gateway.backup()
        calm.edit()
        await calm.settle()
        calm.gateway.restore(backup)
        await asyncio.sleep(GATEWAY_SECONDS)
        assert calm.differences() == []

    play(seed, tale)


@pytest.mark.parametrize("seed", SEEDS)
def test_silent_watches_are_resumed_without_a_list(seed: int) -> None:
    async def tale(calm: Calm) -> None:
        seen: list[Seen] = []
        perform = calm.server.perform

        def noted(asked: Seen, who: str) -> Reply:
            seen.append(asked)
            return perform(asked, who)

        calm.server.perform = noted  # type: ignore[method-assign, assignment]
        calm.server.disturb("stall", 1.0)
        calm.edit()
        await asyncio.sleep(WATCH_SECONDS)
        assert calm.differences() == []
        assert any(asked.verb == "watch" for asked in seen)
        # A GET of one object is not a list: it shows whether the API server went back in time. Kinds without a CRD are
        # polled.
        lists = [asked for asked in seen if asked.verb == "list" and "/gateway.networking.k8s.io/" not in asked.path]
        assert [asked for asked in lists if asked.query["limit"] != "1"] == []

    play(seed, tale)
