"""A running program takes the steps of the two paths in docs/architecture.md in order."""

import inspect
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tests.fakes.adminapi import AdminFault, FakeAdminApi
from tests.fakes.kube.apiserver import FakeApiServer
from tests.flow.program import App, put_slice, put_world, route, running
from tests.unit.test_architecture import PATHS, Place, found, traced

OPTIONAL = ("FairRests.worked", "RecordRateLimit.delay", "StatusSchedule.until_rewrite", "StatusSchedule.until_next")
"""Steps that are taken after a translation or a write, or not the first time: they delay the next one."""


@contextmanager
def recording(places: list[Place]) -> Iterator[list[str]]:
    """Record which of these methods are called."""
    calls: list[str] = []

    def recorded(place: Place) -> Any:
        original: Any = found(place)

        def call(*args: Any, **options: Any) -> Any:
            calls.append(place.name)
            return original(*args, **options)

        return call

    with ExitStack() as held:
        for place in places:
            owner = found(place._replace(name=place.name.rpartition(".")[0]))
            assert inspect.isclass(owner)
            held.enter_context(patch.object(owner, place.name.rpartition(".")[2], recorded(place)))
        yield calls


def in_order(calls: list[str], names: list[str]) -> list[str]:
    """Return the names that were not called after the one before them."""
    missing, rest = [], iter(calls)
    for name in names:
        if not any(call == name for call in rest):
            missing.append(name)
            break
    return missing


@asynccontextmanager
async def settled(server: FakeApiServer, gateway: FakeAdminApi, folder: Path) -> AsyncIterator[App]:
    """Run the program with a few objects, and wait until everything is written."""
    names = put_world(server)
    async with running(server, gateway, folder) as app:
        await app.until_served(*names)
        await app.until(lambda: app.controller.state.clusters.syncs[0].idle(), "nothing left to do")
        yield app


@pytest.fixture
def steps(request: pytest.FixtureRequest) -> list[Place]:
    return [place for place in traced(request.param) if place.name not in OPTIONAL]


@pytest.mark.parametrize("steps", PATHS[:1], indirect=True)
async def test_an_endpoint_change_follows_the_documented_path(
    server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path, steps: list[Place]
) -> None:
    with recording(steps) as calls:
        async with settled(server, gateway, tmp_path) as app:
            calls.clear()
            put_slice(server, "10.244.1.2")
            await app.until(lambda: "AdminClient.put" in calls, "the write")
    assert in_order(calls, [place.name for place in steps]) == [], calls


@pytest.mark.parametrize("steps", PATHS[1:], indirect=True)
async def test_a_rejection_follows_the_documented_path(
    server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path, steps: list[Place]
) -> None:
    with recording(steps) as calls:
        async with settled(server, gateway, tmp_path) as app:
            gateway.faults.append(AdminFault("PUT", path="routes/", status=400))
            calls.clear()
            server.put(route("rejected"))
            await app.until(lambda: bool(conditions(server, "rejected")), "the condition")
    assert [each["status"] for each in conditions(server, "rejected")] == ["False"]
    assert in_order(calls, [place.name for place in steps]) == [], calls


def conditions(server: FakeApiServer, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ((server.get("apisixroutes", name) or {}).get("status") or {}).get("conditions", [])
    return found
