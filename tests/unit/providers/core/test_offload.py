"""Large objects are translated in a thread, from one consistent world, while everybody else waits."""

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.model.resources import RESOURCES
from apisix_ingress.runtime.clock import MonotonicClock
from apisix_ingress.runtime.tasks import cancel
from apisix_ingress.state.view import View
from apisix_ingress.state.world import World
from providers.core.offload import TRIES, is_large
from providers.core.registry import Registry, resources
from providers.route import RouteProvider
from translation.core.options import Options
from translation.core.result import Translation

BOUND = 30.0
PADDING = "x" * 20_000


class Bench:
    """The real providers over a world of their own."""

    def __init__(self) -> None:
        self.world = World(resources(Options()))
        self.registry = Registry(self.world, Options(), self, clock=MonotonicClock(), rng=random.Random(0))

    def mark_dirty(self, keys: Iterable[RecordKey], **_: object) -> None:
        """Forget it."""

    def reported(self, owner: ObjectKey) -> None:
        """Forget it."""

    def put(self, kind: str, name: str, **fields: Any) -> None:
        meta = {"name": name, "namespace": "default", "uid": name, "resourceVersion": "1", "generation": 1}
        self.world.stores[kind].set(RESOURCES[kind].decode({"metadata": meta, **fields}))

    def put_service(self, port: int = 80) -> None:
        self.put("Service", "web", spec={"clusterIP": "10.96.0.1", "ports": [{"name": "http", "port": port}]})

    def put_route(self, name: str, padding: str = "") -> None:
        rule: JsonObject = {"name": "r", "match": {"paths": [f"/{name}"]}}
        rule["backends"] = [{"serviceName": "web", "servicePort": "http"}]
        rule["plugins"] = [{"name": "cors", "enable": True, "config": {"x": padding}}]
        self.put("ApisixRoute", name, spec={"http": [rule]})

    def upstreams(self, name: str) -> set[str]:
        """Return the names of the upstreams that a route claims, `none` for one that failed."""
        claims = self.world.claims.claims_of(ObjectKey("ApisixRoute", "default", name))
        return {str(claim.port) for claim in claims}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.registry.run())
        try:
            async with asyncio.timeout(BOUND):
                yield
        finally:
            await cancel(task)

    async def drained(self) -> None:
        await self.registry.drained()


@pytest.fixture
def bench() -> Bench:
    return Bench()


Noted = list[tuple[str, bool]]


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> Noted:
    """Return the routes that are translated, and whether that is on the event loop."""
    seen: Noted = []
    translate = RouteProvider.translate

    def note(self: RouteProvider, item: CustomObject, view: View) -> Translation:
        seen.append((item.meta.name, threading.current_thread() is threading.main_thread()))
        return translate(self, item, view)

    monkeypatch.setattr(RouteProvider, "translate", note)
    return seen


def interrupting(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Have something done on the event loop while a translation in a thread is about to return."""
    loop, translate = asyncio.get_running_loop(), RouteProvider.translate

    def slow(self: RouteProvider, item: CustomObject, view: View) -> Translation:
        found = translate(self, item, view)
        if threading.current_thread() is not threading.main_thread():
            done = threading.Event()
            loop.call_soon_threadsafe(act)
            loop.call_soon_threadsafe(done.set)
            assert done.wait(BOUND)
        return found

    monkeypatch.setattr(RouteProvider, "translate", slow)


async def test_only_large_objects_are_translated_in_a_thread(bench: Bench, noted: Noted) -> None:
    bench.put_service()
    async with bench.running():
        bench.put_route("small")
        bench.put_route("large", PADDING)
        await bench.drained()
    assert sorted(noted) == [("large", False), ("small", True)]
    assert bench.upstreams("large") == bench.upstreams("small") != set()


async def test_consumers_do_not_wait_for_a_large_object(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.put_service()
    loop, translate, seen = asyncio.get_running_loop(), RouteProvider.translate, list[bool]()
    consumer = ObjectKey("ApisixConsumer", "default", "jack")

    def slow(self: RouteProvider, item: CustomObject, view: View) -> Translation:
        spec = {"authParameter": {"keyAuth": {"value": {"key": "a"}}}}
        loop.call_soon_threadsafe(lambda: bench.put("ApisixConsumer", "jack", spec=spec))
        done = threading.Event()

        def look() -> None:
            if consumer in bench.world.reports:
                done.set()
            else:
                loop.call_soon(look)

        loop.call_soon_threadsafe(look)
        seen.append(done.wait(BOUND / 2))
        return translate(self, item, view)

    monkeypatch.setattr(RouteProvider, "translate", slow)
    async with bench.running():
        bench.put_route("large", PADDING)
        await bench.drained()
    assert seen == [True]


async def test_what_was_read_and_changed_meanwhile_is_read_again(
    bench: Bench, noted: Noted, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.put_service()
    interrupting(monkeypatch, lambda: bench.put_service(81))
    async with bench.running():
        bench.put_route("large", PADDING)
        await bench.drained()
        bench.put_route("small")
        await bench.drained()
    assert noted.count(("large", False)) >= TRIES
    assert bench.upstreams("large") == bench.upstreams("small")


async def test_what_changes_all_the_time_is_translated_on_the_event_loop(
    bench: Bench, noted: Noted, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.put_service()
    ports = iter(range(81, 81 + TRIES))
    interrupting(monkeypatch, lambda: bench.put_service(next(ports, 80 + TRIES)))
    async with bench.running():
        bench.put_route("large", PADDING)
        await bench.drained()
    assert ("large", True) in noted
    assert noted.index(("large", True)) == TRIES


async def test_others_wait_meanwhile(bench: Bench, noted: Noted, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.put_service()
    seen: list[Noted] = []

    async def later() -> None:
        bench.put_route("small")
        for _ in range(20):
            await asyncio.sleep(0)
        seen.append(list(noted))

    tasks: list[asyncio.Task[None]] = []
    interrupting(monkeypatch, lambda: tasks.append(asyncio.create_task(later())))
    async with bench.running():
        bench.put_route("large", PADDING)
        await bench.drained()
        await asyncio.gather(*tasks)
        await bench.drained()
    assert noted == [("large", False), ("small", True)]


async def test_what_crashes_in_a_thread_is_told_as_ever(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(self: RouteProvider, item: CustomObject, view: View) -> Translation:
        raise RuntimeError("dictionary changed size during iteration")

    monkeypatch.setattr(RouteProvider, "translate", crash)
    key = ObjectKey("ApisixRoute", "default", "large")
    async with bench.running():
        bench.put_route("large", PADDING)
        while key not in bench.world.reports:  # noqa: ASYNC110  # a failed object is never drained
            await asyncio.sleep(0.01)
    assert [problem.code for problem in bench.world.reports[key].problems] == ["InternalError"]


def test_large_is_what_takes_many_bytes(bench: Bench) -> None:
    bench.put_route("small")
    bench.put_route("large", PADDING)
    bench.put_service()
    routes = bench.world.stores["ApisixRoute"]
    assert [is_large(routes.get(ObjectKey("ApisixRoute", "default", name))) for name in ("small", "large")] == [
        False,
        True,
    ]
    deep: Any = []
    for _ in range(300):
        deep = [deep]
    assert is_large(CustomObject(routes.values()[0].meta, {"x": deep}))
    assert not is_large(bench.world.stores["Service"].values()[0])
    assert not is_large(None)
