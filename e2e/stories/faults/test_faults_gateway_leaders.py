"""A leader is frozen in the middle of a write until another one leads and writes, and is then resumed.

The moment is exact: the proxy in front of the gateway stops the process before, after or instead of forwarding its
request. `make kill` runs many rounds (`FREEZES=50`).
"""

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from e2e.cluster.client import KubeClient, wait_until
from e2e.conftest import OWN
from e2e.controller import Controller
from e2e.devgateway.process import DevGateway
from e2e.faults import checks
from e2e.faults.figures import note, spread
from e2e.faults.proxies.admin_proxy import AdminProxy
from e2e.faults.proxies.journal import Entry
from e2e.faults.world import World, differences

FREEZES = int(os.environ.get("FREEZES", "1"))
ELECTION = {"lease_duration": "3s", "renew_deadline": "2s", "retry_period": "0.3s"}
TAKEOVER = 40.0
"""Seconds until the other one writes: the lease, one attempt, and a margin for a loaded machine."""


@dataclass
class Pair:
    """Two controllers for one world and one gateway."""

    gateway: DevGateway
    proxy: AdminProxy
    world: World
    controllers: list[Controller]
    gaps: list[float] = field(default_factory=list)
    """Seconds from the last write of a frozen leader to the first one of its successor."""

    def play(self, seed: str) -> None:
        """Freeze the leader at a write, wait for a write of the other one, resume it, and check the order."""
        rng = self.world.rng = random.Random(seed)
        leader, follower = self._roles()
        before = len(self.proxy.entries())
        ended = len(leader.events("term.ended"))
        rule = {"action": rng.choice(["kill_before", "kill_during", "kill_after"]), "signal": signal.SIGSTOP}
        self.proxy.play(
            {**rule, "pid": leader.process.pid, "match": {"method": "PUT|DELETE"}, "skip": rng.randrange(4), "times": 1}
        )
        try:
            self._edit_until(lambda: any(entry.rule for entry in self._writes(before)), "the leader to be frozen")
            self._edit_until(lambda: bool(self._by(follower, before)), "the follower to write")
        finally:
            leader.process.resume()
        self.proxy.play()
        self._edit_until(lambda: len(leader.events("term.ended")) > ended, "the old leader to give up")
        wait_until(self._differences, lambda found: found == [], "the gateway to be right", TAKEOVER)
        self._check(leader, follower, before)

    def _check(self, leader: Controller, follower: Controller, before: int) -> None:
        writes = self._writes(before)
        assert checks.late_writes(writes) == []
        assert {entry.writer.partition("_")[0] for entry in writes} == {leader.name, follower.name}
        assert checks.forced(writes) == []
        last = max(entry.received for entry in self._by(leader, before))
        self.gaps.append(min(entry.received for entry in self._by(follower, before)) - last)

    def _edit_until(self, holds: Callable[[], bool], what: str) -> None:
        """Edit continuously, so that every process that considers itself the leader has something to write."""

        def edited() -> bool:
            self.world.edit()
            return holds()

        wait_until(edited, bool, what, TAKEOVER)

    def _roles(self) -> tuple[Controller, Controller]:
        """Return the leader and the follower."""
        (leader,) = wait_until(
            lambda: [each for each in self.controllers if each.leads],
            lambda got: len(got) == 1,
            "one to lead",
            TAKEOVER,
        )
        (follower,) = (each for each in self.controllers if each is not leader)
        return leader, follower

    def _writes(self, before: int) -> list[Entry]:
        return self.proxy.writes(before)

    def _by(self, controller: Controller, before: int) -> list[Entry]:
        return [entry for entry in self._writes(before) if entry.writer.startswith(f"{controller.name}_")]

    def _differences(self) -> list[str]:
        return differences(self.world.held(self.gateway), self.world.expected())


@pytest.fixture
def pair(cluster_api: KubeClient, kubeconfig: Path, tmp_path: Path) -> Iterator[Pair]:
    """Two controllers that are ready, with objects for four Services."""
    with ExitStack() as stack:
        namespace = stack.enter_context(cluster_api.namespace("freeze", labels=OWN))
        cluster_api.patch("Namespace", namespace, {"metadata": {"labels": {"e2e-story": namespace}}})
        gateway = stack.enter_context(DevGateway(stream=False))
        proxy = stack.enter_context(AdminProxy(gateway.admin_url, gateway.admin_key, tmp_path))
        world = World(cluster_api, namespace, random.Random(namespace))
        world.found()
        kubernetes = {"namespace_selector": f"e2e-story={namespace}", "election": {"name": namespace, **ELECTION}}
        controllers = [
            stack.enter_context(
                Controller(
                    tmp_path,
                    name=name,
                    kubeconfig=kubeconfig,
                    gateways={"default": proxy},
                    kubernetes=kubernetes,
                    sync={"timeout": "0.9s"},
                )
            )
            for name in ("first", "second")
        ]
        yield Pair(gateway, proxy, world, controllers)


@pytest.mark.timeout(120 + 60 * FREEZES)
def test_a_leader_frozen_in_the_middle_of_a_write_never_writes_after_its_successor(pair: Pair) -> None:
    began, played = time.monotonic(), 0
    try:
        for number in range(FREEZES):
            pair.play(f"freeze-{number}")
            played += 1
    except BaseException as error:
        error.add_note(f"seed freeze-{played}")
        raise
    finally:
        took = time.monotonic() - began
        note("F-14", rounds=played, seconds=round(took), writes=len(pair.proxy.writes()), gap_s=spread(pair.gaps))
