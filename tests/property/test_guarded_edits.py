"""A guarded path is never open while edits overlap: after each write, the route that takes a request has the guard.

Each seed plays a story on virtual time. Edits of a path that only some clients may use arrive between any two writes,
also while requests are in flight or their responses are lost.
"""

import asyncio
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from apisix_ingress.gateway.sync.cluster_sync import ClusterSync
from apisix_ingress.gateway.sync.config import SyncConfig
from apisix_ingress.model.json import FrozenJson
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Former, Record
from apisix_ingress.runtime.term import Term
from tests.fakes.gateway import FakeBackend, FakeGateway, FakeWanted, Faults, LoopClock, make_record
from tests.property.replay import play_each
from translation import closing
from translation.plugins.exposure import exposure

SEEDS = 400
BLOCK = 50
HOST: dict[str, Any] = {"hosts": ["a.example"]}
BACKEND = make_record(RecordKey("upstreams", "u1"), nodes={"10.0.0.1:80": 1})
BEHIND = make_record(RecordKey("routes", "behind"), uris=["/*"], upstream_id="u1", **HOST)
REFUSAL: dict[str, Any] = {"plugins": {"fault-injection": {"abort": {"http_status": 403}}}}
PAUSES = (0.001, 0.003, 0.01, 0.02, 0.1, 0.5, 3.0)
FAULTS = Faults(lost_request=0.1, lost_reply=0.1, server_error=0.1, slow=0.1)

MATCHING = ("guard", "serve")
"""The conditions that the request satisfies."""
OTHERS = ("cookie", "header", "method", "query")
"""Conditions of further refusals of the path."""


def rules(*conditions: str, numbered: bool) -> Iterator[Record]:
    """Yield the routes of a path, the highest priority first; named by their numbers, or by condition and priority."""
    for number, condition in enumerate(conditions):
        name = f"b{number}" if numbered else f"{condition}{len(conditions) - number}"
        action: dict[str, Any] = {"upstream_id": "u1"} if condition == "serve" else REFUSAL
        body: dict[str, Any] = {"uris": ["/b"], "priority": len(conditions) - number, "vars": [[condition, "==", "1"]]}
        yield make_record(RecordKey("routes", name), **HOST, **body, **action)


@dataclass
class Watched(FakeGateway):
    """A gateway that records the first write after which the request may reach the backend."""

    watches: bool = False
    history: list[str] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)

    def put(self, key: RecordKey, body: FrozenJson) -> None:
        super().put(key, body)
        self._written(f"put {key.id}: {body.get('vars')} {body.get('priority')}")

    def delete(self, key: RecordKey) -> None:
        super().delete(key)
        self._written(f"delete {key.id}")

    def _written(self, what: str) -> None:
        self.history.append(what)
        if self.watches and not self.opened and self._is_open():
            self.opened = [*self.history]

    def _is_open(self) -> bool:
        """Return whether a route with a backend is among those of the highest priority for the request."""
        routes = [body for key, body in self.stored.items() if key.kind == "routes"]
        matching = [body for body in routes if "vars" not in body or body["vars"][0][0] in MATCHING]
        ranks = [(body["uris"] == ["/b"], body.get("priority", 0)) for body in matching]
        first = [body for body, rank in zip(matching, ranks, strict=True) if rank == max(ranks)]
        return any("upstream_id" in body for body in first)


class Story:
    """One seed: a gateway, the desired records, and an engine."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.gateway = Watched(random.Random(seed + 1))
        self.numbered = self.rng.random() < 0.5
        self.wanted = FakeWanted(self._version())

    async def play(self) -> None:
        clock, ready, rng = LoopClock(), asyncio.Event(), self.rng
        config = SyncConfig(
            "c1",
            self.wanted,
            clock=clock,
            rng=random.Random(1),
            concurrency=rng.choice([1, 2, 4, 16]),
            closing=closing,
            exposure=exposure,
        )
        self.sync = ClusterSync(config, FakeBackend(self.gateway, timeout=2.0))
        task = asyncio.create_task(self.sync.run(Term(clock, holder="test"), ready))
        ready.set()
        try:
            await asyncio.sleep(5)
            await self._edits()
        finally:
            task.cancel()
            await asyncio.wait([task])
        assert self.gateway.opened == []
        assert self.gateway.stored == {key: record.body for key, record in self.wanted.records.items()}

    async def _edits(self) -> None:
        rng, self.gateway.watches = self.rng, True
        self.gateway.faults = rng.choice([Faults(), FAULTS])
        for _ in range(rng.randint(2, 8)):
            version = self._version()
            former = Former("", {**{record.key: record for record in version}, **self.wanted.records})
            changed = self.wanted.replace(version)
            self.gateway.history.append(
                f"edit: {[str(record.body.get('vars')) for record in self.wanted.records.values()]}"
            )
            self.sync.mark_dirty(changed, former=former)
            await asyncio.sleep(rng.choice(PAUSES))
        has_faults, self.gateway.faults = self.gateway.faults is FAULTS, Faults()
        await asyncio.sleep(150 if has_faults else 5)

    def _version(self) -> list[Record]:
        others = self.rng.sample(OTHERS, self.rng.randint(0, len(OTHERS)))
        place = len(others) if self.numbered else self.rng.randint(0, len(others))
        conditions = (*others[:place], "guard", *others[place:], "serve")
        return [BACKEND, *rules(*conditions, numbered=self.numbered), BEHIND]


@pytest.mark.parametrize("start", range(0, SEEDS, BLOCK))
def test_a_guarded_path_is_never_open_while_edits_overlap(start: int) -> None:
    play_each(range(start, start + BLOCK), Story)
