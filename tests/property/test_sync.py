"""The sync engine converges under random faults, and never breaks the order of dependencies on the way.

Each seed plays a story on virtual time: edits of desired records, lost requests and responses, errors, rejected
bodies, outages, manual changes, and controllers that are killed and restarted.
"""

import asyncio
import random
from collections.abc import Iterator
from typing import Any

import pytest

from apisix_ingress.gateway.sync.cluster_sync import ClusterSync
from apisix_ingress.gateway.sync.config import SyncConfig
from apisix_ingress.model.json import FrozenJson
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Record
from apisix_ingress.runtime.term import Term
from tests.fakes.gateway import FakeBackend, FakeGateway, FakeWanted, Faults, LoopClock, make_record
from tests.property.replay import play_each
from translation import closing
from translation.plugins.exposure import exposure

SEEDS = 2000
BLOCK = 50
UPSTREAMS = [RecordKey("upstreams", f"u{n}") for n in range(4)]
CONFIGS = [RecordKey("plugin_configs", f"p{n}") for n in range(2)]
ROUTES = [RecordKey("routes", f"r{n}") for n in range(6)]
SSLS = [RecordKey("ssls", f"s{n}") for n in range(2)]
FOREIGN: dict[RecordKey, FrozenJson] = {
    RecordKey("upstreams", "theirs"): {"id": "theirs", "nodes": {}},
    RecordKey("routes", "theirs"): {"id": "theirs", "uri": "/theirs", "upstream_id": "theirs"},
    RecordKey("routes", "other"): {"id": "other", "labels": {"managed-by": "somebody"}, "upstream_id": "theirs"},
}


class Story:
    """One seed: a gateway, the desired records, and the current controller."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.gateway = FakeGateway(random.Random(seed + 1), stored=dict(FOREIGN))
        self.wanted = FakeWanted()
        self.bad_share = self.rng.choice([0.0, 0.0, 0.15])

    async def play(self) -> None:
        await self._start()
        try:
            await self._acts()
        finally:
            await self._stop()

    async def _acts(self) -> None:
        for _ in range(self.rng.randint(6, 14)):
            await self.rng.choice([self._edit, self._edit, self._edit, self._restart, self._outage, self._meddle])()
            await asyncio.sleep(self.rng.choice([0.0, 0.005, 0.05, 1.0, 8.0]))
        self.gateway.faults = Faults()
        await asyncio.sleep(150)
        self._check_converged()
        writes = list(self.gateway.log)
        await asyncio.sleep(130)
        assert self.gateway.log == writes, "writes after it had converged"
        assert self.gateway.violations == []

    async def _start(self) -> None:
        rng, clock = self.rng, LoopClock()
        interval = rng.choice([2.0, 60.0])
        config = SyncConfig(
            "c1",
            self.wanted,
            clock=clock,
            rng=random.Random(1),
            concurrency=4,
            audit_interval=interval,
            closing=closing,
            exposure=exposure,
        )
        self.sync = ClusterSync(config, FakeBackend(self.gateway, timeout=2.0))
        ready = asyncio.Event()
        self.task = asyncio.create_task(self.sync.run(Term(clock, holder="test"), ready))
        if rng.random() < 0.5:
            await asyncio.sleep(rng.random())
        self.sync.mark_dirty(self.wanted.keys())
        ready.set()

    async def _stop(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])

    async def _restart(self) -> None:
        await self._stop()
        await self._start()

    async def _edit(self) -> None:
        rng = self.rng
        self.gateway.faults = Faults(
            lost_request=rng.choice([0, 0.2]),
            lost_reply=rng.choice([0, 0.2]),
            server_error=rng.choice([0, 0.3]),
            stale_guard=rng.choice([0, 0.15]),
            slow=rng.choice([0, 0.1]),
        )
        changed = self.wanted.replace(self._random_records())
        self.sync.mark_dirty(changed, urgent=rng.random() < 0.3)

    async def _outage(self) -> None:
        name = self.rng.choice(["down", "unauthorized"])
        setattr(self.gateway.faults, name, True)
        await asyncio.sleep(self.rng.choice([0.5, 3.0, 20.0]))
        setattr(self.gateway.faults, name, False)
        if self.rng.random() < 0.3:
            self._lose_records()

    async def _meddle(self) -> None:
        self._lose_records()
        for key in [*ROUTES, *UPSTREAMS]:
            if key in self.gateway.stored and self.rng.random() < 0.2:
                self.gateway.meddle(key, {**self.gateway.stored[key], "desc": "edited"})

    def _lose_records(self) -> None:
        for key in [*ROUTES, *UPSTREAMS, *CONFIGS]:
            if key in self.gateway.stored and self.rng.random() < 0.3:
                self.gateway.meddle(key, None)

    def _random_records(self) -> Iterator[Record]:
        """Yield a consistent state: every referenced record is desired."""
        rng = self.rng
        named: set[RecordKey] = {key for key in UPSTREAMS if rng.random() < 0.2}
        configs = {key for key in CONFIGS if rng.random() < 0.2}
        for key in rng.sample(ROUTES, rng.randint(0, len(ROUTES))):
            upstream, config = rng.choice(UPSTREAMS), rng.choice([None, *CONFIGS])
            refs = {"upstream_id": upstream.id} | ({"plugin_config_id": config.id} if config else {})
            named.add(upstream)
            configs |= {config} if config else set()
            guard: dict[str, Any] = {"plugins": {"key-auth": {}}} if rng.random() < 0.3 else {}
            yield self._record(key, uri=f"/{rng.randint(0, 3)}", **refs, **guard)
        for key in sorted(configs):
            upstream = rng.choice(UPSTREAMS)
            named.add(upstream)
            split = {"rules": [{"weighted_upstreams": [{"upstream_id": upstream.id}]}]}
            yield self._record(key, plugins={"traffic-split": split})
        for key in sorted(named):
            yield self._record(key, nodes={f"10.0.0.{rng.randint(0, 3)}:80": 1})
        for key in rng.sample(SSLS, rng.randint(0, 2)):
            yield self._record(key, cert=f"cert {rng.randint(0, 2)}")

    def _record(self, key: RecordKey, **body: Any) -> Record:
        if self.rng.random() < self.bad_share:
            body["bad"] = True
        return make_record(key, **body)

    def _check_converged(self) -> None:
        stored = self.gateway.stored
        assert {key: stored.get(key) for key in FOREIGN} == FOREIGN
        states = {key: self.sync.record_state(key) for key in self.wanted.records}
        stuck = {key for key, state in states.items() if state.kind != "applied"}
        for key in stuck:
            record, state = self.wanted.records[key], states[key]
            because_bad = state.kind == "rejected" and record.body.get("bad")
            waits = state.kind == "waiting" and (record.refs & stuck or self._is_to_be_taken_over(key, stuck))
            assert because_bad or waits, (key, state)
        want = {key: dict(record.body) for key, record in self.wanted.records.items() if key not in stuck}
        assert {key: stored.get(key) for key in want} == want
        for key in stuck & set(ROUTES):
            assert key in stored, f"requests for {key}, which cannot be written, reach other routes"
        # Undesired records are deleted, unless an old version of a rejected record still needs them.
        needed: set[RecordKey] = {key for key in stuck if key in stored}
        for _ in range(3):
            needed |= {ref for key in needed & set(stored) for ref in self.gateway.refs_of(key)}
        assert set(stored) - set(want) - set(FOREIGN) - needed == set()
        assert self.sync.idle(), self.sync.counts()

    def _is_to_be_taken_over(self, key: RecordKey, stuck: set[RecordKey]) -> bool:
        """Return whether a route that cannot be written is to have the path that a route still has."""
        path = self.gateway.stored[key].get("uri")
        others = stuck.intersection(ROUTES) - {key}
        return key in ROUTES and any(self.wanted.records[other].body.get("uri") == path for other in others)


@pytest.mark.parametrize("start", range(0, SEEDS, BLOCK))
def test_engine_converges_under_faults_in_the_right_order(start: int) -> None:
    play_each(range(start, start + BLOCK), Story)
