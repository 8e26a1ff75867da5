"""A follower checks its admin keys: it reports a rejection but not an outage, and a leader does not check."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from structlog.testing import capture_logs

from apisix_ingress.errors import GatewayError, GatewayUnauthorized, GatewayUnavailable
from apisix_ingress.gateway.sync.observer import SyncObserver
from apisix_ingress.runtime.tasks import cancel
from apisix_ingress.wiring.standby_probe import INTERVAL, StandbyProbe
from tests.fakes.clock import FakeClock

REFUSED = GatewayUnauthorized("the gateway rejects the admin key: set clusters[0].admin_key", status=401)
AWAY = GatewayUnavailable("no response")


@dataclass
class ProbeHarness(SyncObserver):
    """Two gateways with scripted responses."""

    clock: FakeClock = field(default_factory=FakeClock)
    answers: dict[str, GatewayError | None] = field(default_factory=lambda: {"a": None, "b": None})
    asked: list[str] = field(default_factory=list)
    changes: list[tuple[str, bool]] = field(default_factory=list)
    leading: bool = False
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    answering: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.answering.set()

    def standby(self) -> StandbyProbe:
        clusters = [Cluster(name, self) for name in self.answers]
        return StandbyProbe(clusters, self, clock=self.clock, observer=self)

    def breaker(self, cluster: str, is_open: bool) -> None:
        self.changes.append((cluster, is_open))

    async def probe(self, name: str) -> None:
        self.asked.append(name)
        await self.answering.wait()
        if (error := self.answers[name]) is not None:
            raise error


@dataclass
class Cluster:
    name: str
    harness: ProbeHarness

    async def probe(self) -> None:
        await self.harness.probe(self.name)


@asynccontextmanager
async def running(harness: ProbeHarness) -> AsyncIterator[StandbyProbe]:
    standby = harness.standby()
    task = asyncio.create_task(standby.run(harness.ready))
    await harness.clock.settle()
    yield standby
    await cancel(task)


async def test_refused_key_is_reported_once_until_it_is_accepted() -> None:
    harness = ProbeHarness(answers={"a": REFUSED, "b": None})
    harness.ready.set()
    with capture_logs() as logs:
        async with running(harness) as standby:
            assert standby.refused == {"a": str(REFUSED)}
            await harness.clock.advance(INTERVAL)
            harness.answers["a"] = None
            await harness.clock.advance(INTERVAL)
            assert standby.refused == {}
    assert harness.changes == [("a", True), ("a", False)]
    assert [(line["event"], line["cluster"]) for line in logs] == [
        ("standby.unauthorized", "a"),
        ("standby.authorized", "a"),
    ]
    assert harness.asked == ["a", "b"] * 3


async def test_an_unreachable_gateway_does_not_show_whether_the_key_is_valid() -> None:
    harness = ProbeHarness(answers={"a": REFUSED, "b": AWAY})
    harness.ready.set()
    async with running(harness) as standby:
        harness.answers["a"] = AWAY
        await harness.clock.advance(INTERVAL)
        assert standby.refused == {"a": str(REFUSED)}
    assert harness.changes == [("a", True)]


@pytest.mark.parametrize("ready", [True, False])
async def test_leaders_and_unready_replicas_send_no_request(ready: bool) -> None:
    harness = ProbeHarness(leading=ready)
    if ready:
        harness.ready.set()
    async with running(harness):
        await harness.clock.advance(3 * INTERVAL)
    assert harness.asked == []


async def test_a_leader_forgets_a_rejected_key_and_a_follower_detects_it_again() -> None:
    harness = ProbeHarness(answers={"a": REFUSED})
    harness.ready.set()
    async with running(harness) as standby:
        harness.leading = True
        assert standby.refused == {}
        standby.forget()
        harness.leading = False
        assert standby.refused == {}
        assert harness.changes == [("a", True), ("a", False)]
        await harness.clock.advance(INTERVAL)
        assert standby.refused == {"a": str(REFUSED)}
        assert harness.changes[2:] == [("a", True)]


async def test_a_rejection_after_a_term_began_is_dropped_and_probing_stops() -> None:
    harness = ProbeHarness(answers={"a": REFUSED, "b": REFUSED})
    harness.ready.set()
    harness.answering.clear()
    async with running(harness) as standby:
        harness.leading = True
        standby.forget()
        harness.answering.set()
        await harness.clock.settle()
        harness.leading = False
        assert (standby.refused, harness.asked, harness.changes) == ({}, ["a"], [])
