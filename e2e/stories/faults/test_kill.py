"""A controller is killed or stopped at random points of a run; the next one continues from the state of the gateway.

Each round edits some objects, ends the process at a random write (before it reaches the gateway, while it is processed,
or after it, when the response is lost) or at any other moment, edits more objects while no controller runs, starts the
next process and compares the gateway with the records that the objects require, derived independently
(`e2e.faults.world`). A failure message contains its seed, which determines the edits and the way to end, but not the
scheduling of processes. `make kill` runs many rounds: `KILLS=200`, and a quarter as many that end with SIGTERM.
"""

import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from e2e.cluster.client import KubeClient, WaitError, wait_until
from e2e.conftest import OWN
from e2e.controller import Controller
from e2e.devgateway.process import DevGateway
from e2e.faults import checks
from e2e.faults.dumps import OF_THE_GATEWAY
from e2e.faults.figures import note, spread
from e2e.faults.proxies.admin_proxy import AdminProxy
from e2e.faults.world import World, differences

KILLS = int(os.environ.get("KILLS", "4"))
START = int(os.environ.get("START", "0"))
LEASE = {"lease_duration": "3s", "renew_deadline": "2s", "retry_period": "0.3s"}
CONVERGED = 60.0
DIES = 3.0
"""Seconds to wait for the write that is chosen as the last one; there may be fewer writes."""

WRITES = "PUT|DELETE"


@dataclass
class Run:
    """One gateway, one set of objects, one controller after another."""

    gateway: DevGateway
    proxy: AdminProxy
    controller: Controller
    world: World
    first_writes: list[float] = field(default_factory=list)
    """Seconds from the start of a process to its first write, if there was one."""
    converged: list[float] = field(default_factory=list)
    """Seconds from the start of a process until the gateway is in sync."""
    ends: dict[str, int] = field(default_factory=dict)
    """How often each way to end was used."""

    def play(self, seed: str, number: int) -> None:
        """Run one round: end the process with a signal at some point, start the next one, compare."""
        rng = self.world.rng = random.Random(seed)
        before = len(self.proxy.entries())
        self.world.begin()
        way = rng.choice(["kill_before", "kill_during", "kill_after", "kill_after", "moment", "start"])
        self.ends[way] = self.ends.get(way, 0) + 1
        edits = rng.randint(2, 10)
        if way.startswith("kill"):
            rule = {"action": way, "pid": self.controller.process.pid, "signal": number, "skip": rng.randrange(edits)}
            self.proxy.play({**rule, "match": {"method": WRITES}, "times": 1})
        for _ in range(edits):
            self.world.edit()
        self._end(way, number, rng)
        for _ in range(rng.choice([0, 0, 1, 4])):
            self.world.edit()
        self._restart(rng if way == "start" else None, number)
        self._check(before)

    def _end(self, way: str, number: int, rng: random.Random) -> None:
        """Wait until a rule of the proxy has ended the process, or end it now."""
        process = self.controller.process
        if way.startswith("kill"):
            try:
                wait_until(lambda: process.pid, lambda pid: pid is None, "the last write", DIES)
            except WaitError:
                self.ends["idle"] = self.ends.get("idle", 0) + 1
        else:
            time.sleep(rng.uniform(0, 0.3))  # the moment is random
        self.proxy.play()
        self._finish(number)

    def _finish(self, number: int) -> None:
        process = self.controller.process
        if number == signal.SIGKILL:
            process.kill()
            assert process.returncode == -signal.SIGKILL
        else:
            assert self.controller.stop() == 0

    def _restart(self, rng: random.Random | None, number: int) -> None:
        """Start the next process; with `rng`, end that one as well in the middle of its start, and start another."""
        if rng is not None:
            self.controller.start(wait=False)
            # As above. SIGTERM ends a process immediately before its handler is installed, like any program.
            time.sleep(rng.uniform(0.5, 2.0))
            self.controller.process.kill() if number == signal.SIGKILL else self._hurry()
        takeovers = len(self.controller.events("cluster.takeover"))
        began = time.monotonic()
        self.controller.start(wait=False)
        try:
            wait_until(self._takeovers, lambda got: got > takeovers, "the takeover", CONVERGED)
        except WaitError as error:
            error.add_note(f"{self.controller.process.pid=}; its log ends with\n{self.controller.process.tail()}")
            raise
        wait_until(self.differences, lambda found: found == [], "the gateway to be right", CONVERGED)
        self.converged.append(time.monotonic() - began)
        first = next((entry for entry in self.proxy.writes() if entry.received > began), None)
        if first is not None:
            self.first_writes.append(first.received - began)

    def _takeovers(self) -> int:
        """Return how many processes have taken over so far; one must be running."""
        process = self.controller.process
        assert process.pid is not None, f"it ended with {process.returncode}:\n{process.tail()}"
        return len(self.controller.events("cluster.takeover"))

    def _hurry(self) -> None:
        self.controller.stop()
        assert self.controller.process.returncode in (0, -signal.SIGTERM)

    def differences(self) -> list[str]:
        """Return the differences between the gateway and the records that the objects require."""
        return differences(self.world.held(self.gateway), self.world.expected())

    def _check(self, before: int) -> None:
        journal = self.proxy.entries(before)
        assert checks.late_writes(journal) == []
        assert checks.forced(journal) == []
        assert checks.deleted(journal, self.world.always) == []
        assert checks.dangling(journal) == []

    def figures(self) -> dict[str, Any]:
        """Return the measurements."""
        return {
            "points": len(self.converged),
            "ends": self.ends,
            "start_to_first_write_s": spread(self.first_writes),
            "start_to_right_s": spread(self.converged),
        }


@pytest.fixture
def run(cluster_api: KubeClient, kubeconfig: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Run]:
    """Objects for four Services, and a controller that is ready; with or without leader election."""
    with ExitStack() as stack:
        namespace = stack.enter_context(cluster_api.namespace("kill", labels=OWN))
        cluster_api.patch("Namespace", namespace, {"metadata": {"labels": {"e2e-story": namespace}}})
        gateway = stack.enter_context(DevGateway(stream=False))
        proxy = stack.enter_context(AdminProxy(gateway.admin_url, gateway.admin_key, tmp_path))
        controller = Controller(
            tmp_path,
            kubeconfig=kubeconfig,
            gateways={"default": proxy},
            kubernetes={
                "namespace_selector": f"e2e-story={namespace}",
                "election": {"enabled": request.param, "name": namespace, **LEASE},
            },
            sync={"timeout": "1s"},
        )
        stack.callback(controller.stop)
        world = World(cluster_api, namespace, random.Random(namespace))
        world.found()
        controller.start()
        made = Run(gateway, proxy, controller, world)
        wait_until(made.differences, lambda found: found == [], "the gateway to be right", CONVERGED)
        yield made


def play_all(run: Run, points: int, number: int, name: str) -> None:
    run.first_writes, run.converged, run.ends = [], [], {}
    try:
        for point in range(START, START + points):
            run.play(f"{name}-{point}", number)
    except BaseException as error:
        error.add_note(f"seed {name}-{START + len(run.converged)}")
        raise
    finally:
        note(f"F-16 {name}", **run.figures())


def assert_clean_sync_gives_the_same(run: Run, kubeconfig: Path, folder: Path) -> None:
    """Let a controller fill an empty gateway, and compare whole bodies except for timestamps."""
    assert run.controller.stop() == 0
    with DevGateway(stream=False) as empty:
        selector = f"e2e-story={run.world.namespace}"
        kubernetes = {"namespace_selector": selector, "election": {"enabled": False}, "status": {"enabled": False}}
        with Controller(
            folder, name="clean", kubeconfig=kubeconfig, gateways={"default": empty}, kubernetes=kubernetes
        ):
            want = wait_until(
                lambda: run.world.held(empty),
                lambda got: differences(got, run.world.expected()) == [],
                "a clean sync",
                CONVERGED,
            )
        assert _bodies(run.world.held(run.gateway)) == _bodies(want)


def _bodies(records: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        record: {name: value for name, value in body.items() if name not in OF_THE_GATEWAY}
        for record, body in records.items()
    }


@pytest.mark.timeout(120 + 25 * KILLS)
@pytest.mark.parametrize("run", [False], indirect=True, ids=["alone"])
def test_after_a_kill_at_any_point_the_next_process_repairs_the_gateway(
    run: Run, kubeconfig: Path, tmp_path: Path
) -> None:
    play_all(run, KILLS - KILLS // 4, signal.SIGKILL, "alone")
    assert_clean_sync_gives_the_same(run, kubeconfig, tmp_path)


@pytest.mark.timeout(120 + 25 * KILLS)
@pytest.mark.parametrize("run", [True], indirect=True, ids=["elected"])
def test_after_a_stop_with_the_lease_the_next_leader_repairs_the_gateway(run: Run) -> None:
    play_all(run, max(1, KILLS // 4), signal.SIGKILL, "elected")
    play_all(run, max(1, KILLS // 4), signal.SIGTERM, "terminated")
