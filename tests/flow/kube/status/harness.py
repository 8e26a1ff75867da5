"""A status writer between an API server over HTTP and a store."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from apisix_ingress.errors import LeadershipLost
from apisix_ingress.kube.client.api import KubeApi
from apisix_ingress.kube.informer.reflector import Reflector
from apisix_ingress.kube.status.events import EventRecorder
from apisix_ingress.kube.status.interface import StatusObserver
from apisix_ingress.kube.status.writer import StatusWriter
from apisix_ingress.model.condition import Condition
from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.runtime.clock import MonotonicClock
from apisix_ingress.runtime.term import Term
from apisix_ingress.state.store import Store
from tests.fakes.kube.apiserver import FakeApiServer, Manifest
from tests.waiting import until

WEB = ObjectKey("ApisixRoute", "default", "web")


SHOP = ObjectKey("Ingress", "default", "shop")


class StatusHarness(StatusObserver):
    """Reflectors, the writer and the recorder of two kinds."""

    def __init__(self, server: FakeApiServer, api: KubeApi) -> None:
        self.server = server
        self.wanted: dict[ObjectKey, Condition] = {}
        self.published: list[dict[str, Any]] | None = None
        self.dropped = 0
        clock, rng = MonotonicClock(), random.Random(1)
        self.stores: dict[str, Store[Any]] = {
            kind: Store(kind, lambda read: None) for kind in ("ApisixRoute", "Ingress")
        }
        self.outcomes: list[tuple[str, str]] = []
        self.recorder = EventRecorder(api, clock=clock, rng=rng, observer=self)
        self.writer = StatusWriter(api, self.stores, self, clock=clock, rng=rng, recorder=self.recorder, observer=self)
        silent = self.writer.noticed
        self.reflectors = [
            Reflector(RESOURCES[kind], store, api, clock=clock, rng=rng, silent=silent)
            for kind, store in self.stores.items()
        ]
        self.term = Term(clock, holder="tester")
        self.writing: asyncio.Task[None]

    def condition(self, key: ObjectKey) -> Condition | None:
        return self.wanted.get(key)

    def addresses(self, key: ObjectKey) -> list[dict[str, Any]] | None:
        return self.published if key == SHOP else None

    def document(self, key: ObjectKey, status: FrozenJson, now: str) -> JsonObject:
        raise AssertionError(f"{key} has no document to be made of {status} at {now}")

    def status_written(self, kind: str, outcome: str) -> None:
        self.outcomes.append((kind, outcome))

    def event_dropped(self) -> None:
        self.dropped += 1

    def want(self, key: ObjectKey, condition: Condition) -> None:
        self.wanted[key] = condition
        self.writer.wake(key)

    def conditions(self, name: str = "web") -> list[dict[str, Any]]:
        item = self.server.get("apisixroutes", name) or {}
        found: list[dict[str, Any]] = (item.get("status") or {}).get("conditions", [])
        return found

    def events(self) -> list[tuple[str, str, str, int]]:
        return [(each["type"], each["reason"], each["message"], each["count"]) for each in self.server.all("events")]

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for a condition."""
        await until(condition, what, state=lambda: f"{self.server.all('apisixroutes')} {self.events()}")

    async def until_said(self, status: str, generation: int) -> None:
        def said() -> bool:
            return any((c["status"], c.get("observedGeneration")) == (status, generation) for c in self.conditions())

        await self.until(said, f"{status} for generation {generation}")

    async def until_generation(self, generation: int) -> None:
        """Edit the route until it has a generation, and wait until the store has it."""
        while (item := self.server.get("apisixroutes", "web") or route())["metadata"].get("generation", 0) < generation:
            self.server.put({**item, "spec": {**item["spec"], "edited": item["metadata"].get("generation", 0)}})
        await self.until_stored(WEB)

    async def until_stored(self, key: ObjectKey) -> None:
        """Wait until the store has the version of the API server."""

        def stored() -> bool:
            item, there = self.stores[key.kind].get(key), self.server.get(RESOURCES[key.kind].plural, key.name)
            return bool(item and there and item.meta.resource_version == there["metadata"]["resourceVersion"])

        await self.until(stored, f"{key} in the store")

    def shown(self) -> list[dict[str, Any]] | None:
        """Return the addresses of the Ingress."""
        status = (self.server.get("ingresses", "shop") or {}).get("status") or {}
        found: list[dict[str, Any]] | None = (status.get("loadBalancer") or {}).get("ingress")
        return found

    def writes(self) -> int:
        return self.server.count("patch", "apisixroutes") + self.server.count("patch", "ingresses")


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[StatusHarness]:
    async with FakeApiServer() as server, await KubeApi.connect(str(server.kubeconfig(tmp_path / "k"))) as api:
        server.put(route())
        server.put(ingress())
        made = StatusHarness(server, api)
        jobs = [reflector.run() for reflector in made.reflectors]
        tasks = [asyncio.create_task(job) for job in (*jobs, made.recorder.run(made.term))]
        made.writing = asyncio.create_task(made.writer.run(made.term))
        tasks.append(made.writing)
        try:
            await made.until_stored(WEB)
            await made.until_stored(SHOP)
            # Before that, events of a test would reach no watch.
            await made.until(lambda: all(map(server.watching, ("apisixroutes", "ingresses"))), "both watches")
            yield made
        finally:
            for task in tasks:
                task.cancel()
            for task in tasks:
                with contextlib.suppress(asyncio.CancelledError, LeadershipLost, ExceptionGroup):
                    await task


def route(name: str = "web", **spec: Any) -> Manifest:
    return {
        "kind": "ApisixRoute",
        "apiVersion": "apisix.apache.org/v2",
        "metadata": {"name": name},
        "spec": spec or {"http": []},
    }


def ingress() -> Manifest:
    meta = {"name": "shop", "creationTimestamp": "2020-01-01T00:00:00Z"}
    return {"kind": "Ingress", "apiVersion": "networking.k8s.io/v1", "metadata": meta, "spec": {}}
