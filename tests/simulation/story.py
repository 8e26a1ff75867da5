"""One run from a seed: users and faults take turns, then the expected state must be reached."""

from __future__ import annotations

import asyncio
import copy
import gc
import random
from collections.abc import Callable

from apisix_ingress.model.target import STANDALONE, Mode
from apisix_ingress.settings import Settings
from tests.simulation.checking.checks import Checks
from tests.simulation.checking.oracle import Expectation, Oracle, crc
from tests.simulation.checking.trace import Trace
from tests.simulation.loop import running_loop
from tests.simulation.mischief import Mischief
from tests.simulation.replica import Replica, Seams
from tests.simulation.servers.apiserver import SimApiServer
from tests.simulation.servers.gateway import ADMIN_KEY, MANAGED, Body, Key, SimGateway
from tests.simulation.servers.standalone import SimStandalone
from tests.simulation.users import APISIX, SELECTOR, Users

FOREIGN: dict[Key, Body] = {
    ("upstreams", "theirs"): {"id": "theirs", "nodes": {"10.8.8.8:80": 1}},
    ("routes", "theirs"): {"id": "theirs", "uri": "/theirs", "upstream_id": "theirs"},
    ("routes", "other"): {"id": "other", "uri": "/o", "labels": {"managed-by": "somebody"}, "upstream_id": "theirs"},
    ("global_rules", "theirs"): {"id": "theirs", "plugins": {"real-ip": {"source": "http_x"}}},
    ("ssls", "theirs"): {"id": "theirs", "snis": ["theirs.example.org"], "cert": "c", "key": "k"},
}
"""Records of other owners."""

GONE = {"labels": MANAGED, "desc": "left over"}
LEFTOVER: dict[Key, Body] = {
    ("upstreams", crc("gone_web_80")): {**GONE, "id": crc("gone_web_80"), "name": "gone_web_80", "nodes": []},
    ("routes", crc("gone_r_rule")): {
        **GONE,
        "id": crc("gone_r_rule"),
        "name": "gone_r_rule",
        "uris": ["/gone"],
        "upstream_id": crc("gone_web_80"),
    },
}
"""Records of objects that were deleted while no controller ran."""

SETTLE_SECONDS = 400.0
"""Seconds after the last fault within which the expected state must be reached."""

CALM_SECONDS = 65.0
"""Seconds during which one-time reports, or work with a backoff, may follow."""

QUIET_SECONDS = 130.0
"""Seconds without any write afterwards: at least two audits."""

NEVER = 36000
"""Seconds between audits in stories without any: losses must be found without them."""


class Story:
    """One seed. `play` raises AssertionError if something did not hold at the end; the trace has the violations."""

    def __init__(self, seed: int, mode: Mode = "apisix") -> None:
        rng, self.trace = random.Random(seed), Trace()
        self.settled_after = 0.0
        self._rng = rng
        self._mode = mode
        self._audit = rng.choice([20, 45, 60, NEVER, NEVER])
        selective = rng.random() < 0.5
        self._settings = _settings(selective=selective, audit=self._audit, mode=mode)
        self._server = SimApiServer(random.Random(seed + 1), self.trace)
        self._gateways: list[SimGateway] = []
        self._oracle = Oracle(self._server, self._gateways, selective=selective)
        self.checks = Checks(self.trace, self._oracle)
        made = SimStandalone if mode == STANDALONE else SimGateway
        self._gateways += [
            made(name, random.Random(f"{seed} {name}"), self.trace, self.checks.write) for name in ("one", "two")
        ]
        self._users = Users(self._server, rng, self.trace)
        self._mischief = Mischief(
            rng,
            self.trace,
            self._server,
            self._gateways,
            waver=self._waver,
            foreign=FOREIGN,
            drift=self._audit != NEVER,
        )
        named = {gateway.name: gateway for gateway in self._gateways}
        self.seams = Seams(seed, self._server, named, self._mischief.spring)

    async def play(self) -> None:
        """Play it to its end."""
        self._begin()
        for _ in range(self._rng.randint(5, 14)):
            await self._act()
        await self._mischief.end()
        self.trace.note("story", "the last fault is over")
        await self._settle()
        await self._stay_quiet()
        await self._end()

    def _begin(self) -> None:
        self._users.begin()
        for gateway in self._gateways:
            for (kind, id_), body in {**FOREIGN, **(LEFTOVER if self._rng.random() < 0.5 else {})}.items():
                gateway.records[kind][id_] = body
            for (kind, id_), name in self._oracle.expect().kept.items():
                if self._rng.random() < 0.5:
                    gateway.records[kind][id_] = _last_good(kind, id_, name)
        if self._mode == STANDALONE:  # one document had all of them
            self._gateways[1].records = copy.deepcopy(self._gateways[0].records)
        self.checks.begin()
        replicas = [Replica(name, self._settings, self._server, self.checks.crashed) for name in ("a", "b")]
        self._mischief.replicas = replicas
        for replica in replicas:
            self._mischief.later(self._rng.choice([0.0, 0.3, 4.0]), replica.start)

    async def _act(self) -> None:
        """Start a fault while users continue."""
        if self._rng.random() < 0.7:
            self._mischief.act()
        for _ in range(self._rng.choice([0, 1, 2, 4])):
            self._let(self._users.act)
            await asyncio.sleep(self._rng.choice([0.0, 0.001, 0.02, 0.3, 3.0]))
        while asyncio.get_running_loop().time() < self._mischief.alone_until:
            self._let(self._users.act)
            await asyncio.sleep(self._rng.choice([0.1, 0.3, 1.0]))
        await asyncio.sleep(self._rng.choice([0.0, 0.01, 0.1, 1.0, 4.0, 16.0]))

    def _waver(self, seconds: float) -> None:
        self._let(self._users.flicker)
        self._mischief.later(seconds, lambda: self._let(self._users.act))

    def _let(self, act: Callable[[], None]) -> None:
        """Let users do something, and record which records are needed since then or no longer."""
        act()
        self.checks.look()

    # The end.

    async def _settle(self) -> None:
        loop = asyncio.get_running_loop()
        began, found = loop.time(), self._differences()
        while found:
            assert loop.time() - began < SETTLE_SECONDS, "not converged: " + "; ".join(found)
            await asyncio.sleep(5.0)
            found = self._differences()
        self.settled_after = loop.time() - began
        await asyncio.sleep(CALM_SECONDS)

    async def _stay_quiet(self) -> None:
        self.trace.note("story", "from here on nothing may be written")
        before, lists = self._writes(), [gateway.lists for gateway in self._gateways]
        await asyncio.sleep(QUIET_SECONDS)
        assert self._writes() == before, f"writes although nothing changed: {before} → {self._writes()}"
        if self._audit != NEVER:
            assert all(gateway.lists > count for gateway, count in zip(self._gateways, lists, strict=True)), "no audit"
        assert self._differences() == []

    async def _end(self) -> None:
        for replica in self._mischief.replicas:
            await replica.stop()
        holders = [lease["spec"]["holderIdentity"] for lease in self._server.all("leases")]
        assert holders == [""], "the lease was not released"
        gc.collect()  # otherwise unretrieved errors are reported in one run and not in the next
        failures = running_loop().failures
        assert failures == [], "\n".join(failures)
        assert not self.trace.violations, "an invariant was violated"

    def _writes(self) -> tuple[int, ...]:
        """Return the number of writes to each gateway and to the API server, without leases and Events."""
        return (*(gateway.accepted for gateway in self._gateways), self._server.writes)

    def _differences(self) -> list[str]:
        """Return descriptions of the differences from the expected state."""
        want = self._oracle.expect()
        found = self._wrong_conditions(want)
        for gateway in self._gateways:
            differences = self._oracle.differences(want, gateway.records, forgiven=_of_nobody(gateway))
            found += [f"{gateway.name} {difference}" for difference in differences]
            found += [
                f"{gateway.name}: {key} of others was changed"
                for key, body in FOREIGN.items()
                if gateway.records[key[0]].get(key[1]) != body
            ]
        return found

    def _wrong_conditions(self, want: Expectation) -> list[str]:
        found = []
        for (kind, namespace, name), status in want.conditions.items():
            item = self._server.get(f"{kind.lower()}{'es' if kind.endswith('s') else 's'}", name, namespace) or {}
            conditions = (item.get("status") or {}).get("conditions", [])
            got = [(each["status"], each["observedGeneration"]) for each in conditions]
            if got != [(status, item["metadata"]["generation"])]:
                generation = item["metadata"]["generation"]
                found.append(f"{kind} {namespace}/{name}: conditions {got}, not {status} for {generation}")
        return found


def _last_good(kind: str, id_: str, name: str) -> Body:
    """Return records that a gateway may have from a valid version of an object."""
    bodies: dict[str, Body] = {
        "routes": {"name": name, "uris": ["/good"]},
        "plugin_configs": {"name": name, "plugins": {}},
        "ssls": {"snis": ["good.example.org"], "cert": "good"},
    }
    return {"id": id_, "labels": MANAGED, **bodies[kind]}


def _of_nobody(gateway: SimGateway) -> set[Key]:
    """Return records without labels that came back with a backup: their owner is unknown."""
    return {key for key in gateway.excused if key[0] == "global_rules"}


def _settings(*, selective: bool, audit: int, mode: Mode) -> Settings:
    sync = {"audit_interval": f"{audit}s"}
    urls = {name: f"http://{name}/apisix/admin" for name in ("one", "two")}
    if mode == STANDALONE:
        clusters = [{"name": "both", "mode": mode, "admin_url": urls["one"], "more_admin_urls": [urls["two"]]}]
    else:
        clusters = [{"name": name, "admin_url": url} for name, url in urls.items()]
    return Settings.model_validate(
        {
            "kubernetes": {"ingress_class": APISIX, "namespace_selector": SELECTOR if selective else ""},
            "clusters": [{**cluster, "admin_key": ADMIN_KEY, "sync": sync} for cluster in clusters],
        }
    )
