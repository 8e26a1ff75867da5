"""Tenants who forge names: no request reaches the record of another name, and a victim's ids stay.

Each seed runs a story on virtual time, with the product's translations and engines: objects are created and deleted in
any order, are broken and repaired, and controllers are killed and restarted while users continue.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Iterable

import pytest

from apisix_ingress.gateway.ledger import LedgeredBackend, MemoryLedger
from apisix_ingress.gateway.sync.cluster_sync import ClusterSync
from apisix_ingress.gateway.sync.comparison.adoption import IdAdoption
from apisix_ingress.gateway.sync.config import SyncConfig
from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.names import is_id_of
from apisix_ingress.model.records import Former
from apisix_ingress.runtime.term import Term
from apisix_ingress.state.world import World
from providers.core.deps import ChangeSink
from providers.core.registry import Registry
from tests.fakes.gateway import FakeBackend, FakeGateway, Faults, LoopClock
from tests.forging import forge
from tests.property.replay import play_each
from tests.unit.translation.objects import OPTIONS, make

SEEDS = 120
BLOCK = 10
NAMED_KINDS = ("upstreams", "plugin_configs", "routes")


def forged(name: str, prefix: str, suffix: str = "", *, number: int) -> str:
    """Return the name of an attacker's object whose record has the CRC-32 of another one."""
    return forge(name, prefix, suffix, number=number)[len(prefix) : -len(suffix) or None]


class WatchedGateway(FakeGateway):
    """Records violations: changes that must not happen to the records of the victim."""

    def put(self, key: RecordKey, body: FrozenJson) -> None:
        before, name = self.stored.get(key, {}).get("name"), body.get("name")
        if key.kind in NAMED_KINDS and before is not None and before != name and is_id_of(key.id, before):
            self.violations.append(f"{key} goes from {before} to {name} in place")
        if str(name).startswith("victim_"):
            others = [other for other, record in self.stored.items() if record.get("name") == name and other != key]
            if any(other.kind == key.kind for other in others):
                self.violations.append(f"{name} moves from {others} to {key}")
        super().put(key, body)
        self._look()

    def delete(self, key: RecordKey) -> None:
        super().delete(key)
        self._look()

    def _look(self) -> None:
        for key, body in self.stored.items():
            name = str(body.get("name", ""))
            if name.startswith(("victim_", "ing_victim_")):
                for ref in self.refs_of(key) & self.stored.keys():
                    if not str(self.stored[ref]["name"]).startswith("victim_"):
                        self.violations.append(f"{name} is served by {ref}, which is {self.stored[ref]['name']}")


class Controller(ChangeSink):
    """One process of the program, with some gateways."""

    def __init__(
        self, gateways: Iterable[FakeGateway], objects: Iterable[JsonObject], *, wide: bool, rng: random.Random
    ) -> None:
        clock = LoopClock()
        self.world = World(RESOURCES.values(), wide_ids=wide)
        self.registry = Registry(self.world, OPTIONS, self, clock=clock, rng=random.Random(0))
        adoptions = IdAdoption(self.world.ids, self.world.desired, self.registry.drained, clock=clock)
        self.syncs = [
            ClusterSync(
                SyncConfig(f"c{number}", self.world.desired, clock=clock, rng=random.Random(1), adopt=adoptions.adopt),
                LedgeredBackend(FakeBackend(gateway, timeout=2.0), MemoryLedger(), f"c{number}"),
            )
            for number, gateway in enumerate(gateways)
        ]
        for sync in self.syncs:
            adoptions.add(sync)
        self._term, self._ready, self._rng = Term(clock, holder="test"), asyncio.Event(), rng
        self._tasks = [asyncio.create_task(self.registry.run())]
        for item in rng.sample(list(objects), len(list(objects))):
            self.put(item)

    def put(self, raw: JsonObject) -> None:
        self.world.stores[raw["kind"]].set(RESOURCES[raw["kind"]].decode(raw))

    def remove(self, key: ObjectKey) -> None:
        self.world.stores[key.kind].delete(key)

    async def run(self) -> None:
        """Translate everything, and write changes from then on."""
        self._tasks += [asyncio.create_task(sync.run(self._term, self._ready)) for sync in self.syncs]
        await self.registry.drained()
        self.world.ids.settle()
        self._ready.set()

    async def kill(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)

    # As a sink.

    def mark_dirty(self, keys: Collection[RecordKey], *, urgent: bool, former: Former, since: float) -> None:
        for sync in self.syncs:
            sync.mark_dirty(keys, urgent=urgent, former=former, since=since)


class Story:
    """One seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.wide = self.rng.random() < 0.3
        self.gateways = [WatchedGateway(random.Random(seed + n)) for n in range(self.rng.choice([1, 1, 2]))]
        self.objects: dict[ObjectKey, JsonObject] = {}
        self.controller: Controller | None = None

    async def play(self) -> None:
        try:
            await self._acts()
        finally:
            if self.controller is not None:
                await self.controller.kill()

    async def _acts(self) -> None:
        for create in self.rng.sample(self.victims(), 3):
            create()
        if self.rng.random() < 0.5:
            self._attack()
        await self._start()
        for _ in range(self.rng.randint(5, 12)):
            await self.rng.choice([self._edit, self._edit, self._edit, self._restart, self._trouble])()
            await asyncio.sleep(self.rng.choice([0.0, 0.01, 0.1, 2.0, 8.0]))
        for create in self.victims():
            create()
        await self._calm()
        writes = [list(gateway.log) for gateway in self.gateways]
        await self._restart()
        await self._calm()
        assert [gateway.log for gateway in self.gateways] == writes, "a restart wrote something"
        self._check()

    async def _calm(self) -> None:
        for gateway in self.gateways:
            gateway.faults = Faults()
        await asyncio.sleep(150)

    def _check(self) -> None:
        """Check that the victim has all its records, and never had records of others."""
        assert self.controller is not None
        for gateway in self.gateways:
            assert gateway.violations == []
            wanted = self.controller.world.desired.records("any")
            want = {key: record.body for key, record in wanted.items() if record.name.startswith("victim_")}
            assert {key: gateway.stored.get(key) for key in want} == want
            names = {body["name"] for body in want.values()}
            assert names == {"victim_bank_80", "victim_ext", "victim_guard", "victim_r_r1", "victim_r_r2"}

    # Events.

    async def _start(self) -> None:
        self.controller = Controller(self.gateways, self.objects.values(), wide=self.wide, rng=self.rng)
        await self.controller.run()

    async def _restart(self) -> None:
        assert self.controller is not None
        await self.controller.kill()
        self.controller = None
        for _ in range(self.rng.choice([0, 0, 1, 3]) if self.gateways[0].faults != Faults() else 0):
            await self._edit()
        await self._start()

    async def _trouble(self) -> None:
        rng = self.rng
        rng.choice(self.gateways).faults = Faults(
            lost_request=rng.choice([0, 0.2]),
            lost_reply=rng.choice([0, 0.2]),
            server_error=rng.choice([0, 0.3]),
            stale_guard=rng.choice([0, 0.15]),
            down=rng.random() < 0.2,
        )

    async def _edit(self) -> None:
        if self.rng.random() < 0.4:
            self.rng.choice([*self.victims(), *self.mistakes()])()
        else:
            self._attack()

    def _put(self, kind: str, namespace: str, name: str, spec: JsonObject) -> None:
        # An attacker who edits an old object may be older than the victim.
        key, day = ObjectKey(kind, namespace, name), 1 if namespace == "evil" and self.rng.random() < 0.5 else 9
        raw = make(kind, name, namespace=namespace, spec=spec)
        raw["metadata"]["creationTimestamp"] = f"2026-01-{day:02}T00:00:00Z"
        if key in self.objects:
            raw["metadata"]["creationTimestamp"] = self.objects[key]["metadata"]["creationTimestamp"]
        self.objects[key] = raw
        if self.controller is not None:
            self.controller.put(raw)

    def _remove(self, key: ObjectKey) -> None:
        del self.objects[key]
        if self.controller is not None:
            self.controller.remove(key)

    # The victim, who makes mistakes but deletes nothing.

    def victims(self) -> list[Callable[[], None]]:
        path = f"/{self.rng.randint(0, 3)}"
        rule = {
            "name": "r1",
            "match": {"paths": [path]},
            "backends": [{"serviceName": "bank", "servicePort": 80}],
            "plugin_config_name": "guard",
        }
        other = {"name": "r2", "match": {"paths": ["/ext"]}, "upstreams": [{"name": "ext"}]}
        nodes = [{"type": "Domain", "name": f"{self.rng.randint(0, 3)}.example.com"}]
        return [
            lambda: self._put("Service", "victim", "bank", {"clusterIP": "10.0.0.1", "ports": [{"port": 80}]}),
            lambda: self._put("ApisixPluginConfig", "victim", "guard", {"plugins": [_plugin("key-auth")]}),
            lambda: self._put("ApisixUpstream", "victim", "ext", {"externalNodes": nodes}),
            lambda: self._put("ApisixRoute", "victim", "r", {"http": [rule, other]}),
        ]

    def mistakes(self) -> list[Callable[[], None]]:
        missing = {"name": "r1", "match": {"paths": ["/"]}, "backends": [{"serviceName": "none", "servicePort": 80}]}
        return [
            lambda: self._put("ApisixRoute", "victim", "r", {"http": "no list"}),
            lambda: self._put("ApisixRoute", "victim", "r", {"http": [missing]}),
            lambda: self._put("ApisixPluginConfig", "victim", "guard", {"plugins": "no list"}),
            lambda: self._put("ApisixUpstream", "victim", "ext", {"externalNodes": "no list"}),
        ]

    # The attacker.

    def _attack(self) -> None:
        rng = self.rng
        mine = [key for key in self.objects if key.namespace == "evil"]
        if mine and rng.random() < 0.5:
            self._remove(rng.choice(mine))
            return
        number = rng.randint(0, 2)
        rng.choice([self._service, self._config, self._upstream, self._rule, self._impostor])(number)

    def _service(self, number: int) -> None:
        service = forged("victim_bank_80", "evil_", "_80", number=number)
        if self.rng.random() < 0.5:
            self._put("Service", "evil", service, {"clusterIP": "10.0.0.2", "ports": [{"port": 80}]})
        backends = [{"serviceName": service, "servicePort": 80}]
        rule = {"name": "x", "match": {"paths": ["/evil"]}, "backends": backends}
        self._put("ApisixRoute", "evil", f"s{number}", {"http": [rule]})

    def _config(self, number: int) -> None:
        name = forged("victim_guard", "evil_", number=number)
        wrong = self.rng.random() < 0.2
        self._put("ApisixPluginConfig", "evil", name, {"plugins": "no list" if wrong else [_plugin("mocking")]})

    def _upstream(self, number: int) -> None:
        name = forged("victim_ext", "evil_", number=number)
        self._put("ApisixUpstream", "evil", name, {"externalNodes": [{"type": "Domain", "name": "evil.example.com"}]})
        rule = {"name": "x", "match": {"paths": ["/evil"]}, "upstreams": [{"name": name}]}
        self._put("ApisixRoute", "evil", f"u{number}", {"http": [rule]})

    def _rule(self, number: int) -> None:
        """Edit a route that is older than all others."""
        name = forged(self.rng.choice(["victim_r_r1", "victim_r_r2"]), "evil_r_", number=number)
        self._put("ApisixRoute", "evil", "r", {"http": [{"name": name, "match": {"paths": ["/evil"]}}]})

    def _impostor(self, number: int) -> None:
        """Create a plugin config, and a route that needs it, under an unusual name."""
        name = forged("victim_guard", "evil_", number=number)
        rule = {"name": "x", "match": {"paths": ["/evil"]}, "plugin_config_name": name}
        self._put("ApisixRoute", "evil", f"p{number}", {"http": [rule]})


def _plugin(name: str) -> JsonObject:
    return {"name": name, "enable": True, "config": {}}


@pytest.mark.parametrize("start", range(0, SEEDS, BLOCK))
def test_forged_names_never_get_an_id_of_another_name(start: int) -> None:
    play_each(range(start, start + BLOCK), Story)
