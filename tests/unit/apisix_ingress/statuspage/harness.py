"""A page over a real state and scripted clusters, requested over a loopback socket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from apisix_ingress.gateway.sync.observer import APPLIED, Outage, RecordState
from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.model.keys import RecordKey, RecordKind
from apisix_ingress.observability.http_server import HttpServer, Readiness
from apisix_ingress.observability.metrics import Metrics
from apisix_ingress.runtime.clock import MonotonicClock
from apisix_ingress.state.world import World
from apisix_ingress.statuspage.access import Audience
from apisix_ingress.statuspage.history import History
from apisix_ingress.statuspage.inputs import PageInputs
from apisix_ingress.statuspage.service import StatusPage
from tests.unit.translation.objects import OPTIONS
from tests.unit.translation.settling import settle


@dataclass
class ScriptedCluster:
    name: str = "default"
    taken_over: bool = True
    outage: Outage | None = None
    audit_failure: str = ""
    version: str = "APISIX/3.17.0"
    backlog: int = 0
    trouble: str = ""
    is_away: bool = False
    states: dict[RecordKey, RecordState] = field(default_factory=dict)
    earlier: dict[RecordKey, FrozenJson] = field(default_factory=dict)
    kept: dict[RecordKey, FrozenJson] = field(default_factory=dict)

    def record_state(self, key: RecordKey) -> RecordState:
        return self.states.get(key, APPLIED)

    def body_of(self, key: RecordKey) -> FrozenJson | None:
        return self.earlier.get(key)

    def kept_routes(self) -> Iterable[tuple[RecordKey, FrozenJson]]:
        return self.kept.items()

    def holds(self, key: RecordKey) -> bool:
        return key in self.earlier or self.record_state(key) is APPLIED


@dataclass
class ScriptedController:
    leads: bool = True
    leader: str = "pod-a_1"
    is_ready: bool = True
    watches: dict[str, float] = field(default_factory=lambda: {"Ingress": 3.0})
    problems: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


@dataclass
class Reply:
    status: int
    headers: Mapping[str, str]
    text: str


@dataclass
class PageHarness:
    """Facts that a test may change between two requests."""

    world: World
    clusters: list[ScriptedCluster]
    journal: History
    facts: PageInputs
    controller: ScriptedController
    session: aiohttp.ClientSession | None = None
    url: str = ""

    async def ask(
        self, path: str, *, method: str = "GET", headers: Mapping[str, str] | None = None, follow: bool = True
    ) -> Reply:
        assert self.session is not None
        url = f"{self.url}{path}"
        async with self.session.request(method, url, headers=headers, allow_redirects=follow) as reply:
            return Reply(reply.status, reply.headers, (await reply.text()).replace("<wbr>", ""))

    async def data(self, path: str, **query: str) -> Any:
        assert self.session is not None
        async with self.session.get(f"{self.url}/status/api/{path}", params=query) as reply:
            return await reply.json()

    def record(self, kind: RecordKind, name: str) -> RecordKey:
        found = (record.key for record in self.world.desired.records("default").values() if record.name == name)
        return next(key for key in found if key.kind == kind)


def make_harness(
    *objects: JsonObject, clusters: list[ScriptedCluster] | None = None, world: World | None = None
) -> PageHarness:
    """Return the harness of a world, or of one that these objects make."""
    clock = MonotonicClock()
    world = settle(*objects) if world is None else world
    journal, controller = History(clock, world.reports), ScriptedController()
    journal.ready()
    scripted = [ScriptedCluster()] if clusters is None else clusters
    facts = PageInputs(
        world,
        OPTIONS,
        scripted,
        journal,
        clock,
        identity="pod-a_1",
        version="9.9.9",
        controller=controller,
    )
    return PageHarness(world, scripted, journal, facts, controller)


@asynccontextmanager
async def served(
    harness: PageHarness, audience: Audience = "local", host: str = "127.0.0.1"
) -> AsyncIterator[PageHarness]:
    """Serve the page of a harness."""
    page = StatusPage(harness.facts, audience)
    server = HttpServer(host, 0, readiness=Readiness(), metrics=Metrics(pod="p", namespace="n"), pages=page)
    async with server, aiohttp.ClientSession() as session:
        await server.serve()
        harness.session, harness.url = session, f"http://127.0.0.1:{server.port}"
        yield harness
