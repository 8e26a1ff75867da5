"""The state of the controller: what it reports as a leader and as a follower."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from apisix_ingress.gateway.sync.observer import Outage
from apisix_ingress.state.world import World
from apisix_ingress.wiring.clusters import GatewayClusters
from apisix_ingress.wiring.controller_state import ControllerState
from tests.fakes.clock import FakeClock
from translation.core.options import Options

OUTAGE = Outage("unreachable", "no response", datetime(2026, 1, 1, tzinfo=UTC))


@dataclass
class Sync:
    name: str
    outage: Outage | None = None


@dataclass
class Scripted:
    """A source, its election, and a standby probe."""

    leading: bool
    holder: str = "pod-b"
    refused: dict[str, str] = field(default_factory=dict)
    trouble: dict[str, str] = field(default_factory=dict)

    @property
    def election(self) -> Any:
        return self

    def problems(self) -> dict[str, str]:
        return self.trouble

    def watches(self) -> dict[str, float]:
        return {"Ingress": 3.0}


def make_state(scripted: Scripted) -> ControllerState:
    clusters = GatewayClusters()
    clusters.syncs = cast("Any", [Sync("east", OUTAGE), Sync("west")])
    source = cast("Any", scripted)
    return ControllerState(World([]), Options(), clusters, source, source, FakeClock(), "pod-a")


@pytest.mark.parametrize(
    ("leads", "leader", "outages", "report"),
    [
        (True, "pod-a", {"east": OUTAGE}, "cluster east: not reachable since 2026-01-01T00:00:00Z: no response"),
        (False, "pod-b", {}, "cluster west: wrong key"),
    ],
)
def test_leader_reports_outages_and_follower_rejected_keys(
    leads: bool, leader: str, outages: dict[str, Outage], report: str
) -> None:
    state = make_state(Scripted(leads, refused={} if leads else {"west": "wrong key"}))
    got = (state.leads, state.leader, state.outages, state.unhealthy_gateways())
    assert got == (leads, leader, outages, report)
    assert state.readiness().notes() == {"clusters": report}


def test_replica_is_ready_once_objects_are_complete_and_translated() -> None:
    scripted = Scripted(leading=False, trouble={"secrets": "not listed yet"})
    state = make_state(scripted)
    assert (state.is_ready, state.watches, state.problems) == (False, {"Ingress": 3.0}, scripted.trouble)
    assert state.readiness().failures() == {
        "objects": "secrets: not listed yet",
        "translated": "not every object was translated yet",
    }
    scripted.trouble.clear()
    state.ready.set()
    assert (state.is_ready, state.readiness().failures(), state.readiness().notes()) == (True, {}, {})
