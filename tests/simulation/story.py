"""One run: what happens when, drawn from a seed, and what must hold all the time and at the end."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import replace
from typing import Any

import structlog

from apisix_ingress.settings import Settings
from tests.simulation.apiserver import ApiFaults, SimApiServer
from tests.simulation.gateway import ADMIN_KEY, MANAGED, AdminFaults, Body, Key, SimGateway, Write
from tests.simulation.loop import PROCESS, Process, running_loop
from tests.simulation.oracle import Expectation, Oracle, crc, is_ours
from tests.simulation.replica import Replica, Seams, replaced
from tests.simulation.trace import Trace
from tests.simulation.users import APISIX, CORE, PASSWORDS, SELECTOR, Users, pair

FOREIGN: dict[Key, Body] = {
    ("upstreams", "theirs"): {"id": "theirs", "nodes": {"10.8.8.8:80": 1}},
    ("routes", "theirs"): {"id": "theirs", "uri": "/theirs", "upstream_id": "theirs"},
    ("routes", "other"): {"id": "other", "uri": "/o", "labels": {"managed-by": "somebody"}, "upstream_id": "theirs"},
    ("global_rules", "theirs"): {"id": "theirs", "plugins": {"real-ip": {"source": "http_x"}}},
    ("ssls", "theirs"): {"id": "theirs", "snis": ["theirs.example.org"], "cert": "c", "key": "k"},
}
"""Records that are none of the controller's business."""

LEFTOVER: dict[Key, Body] = {
    ("upstreams", crc("gone_web_80")): {
        "id": crc("gone_web_80"),
        "name": "gone_web_80",
        "labels": MANAGED,
        "nodes": [],
    },
    ("routes", crc("gone_r_rule")): {
        "id": crc("gone_r_rule"),
        "name": "gone_r_rule",
        "labels": MANAGED,
        "uris": ["/gone"],
        "upstream_id": crc("gone_web_80"),
    },
}
"""Records of objects that went while no controller ran."""

SETTLE_SECONDS = 400.0
"""Within this time after the last fault everything has to be as it should be."""
QUIET_SECONDS = 130.0
"""So long nothing may be written afterwards: two audits at least."""
KNOWN_SECONDS = 100.0
"""What was wanted for so long is known to every replica that works."""
BUGS = frozenset({"record.crashed", "audit.crashed", "object.translate_failed", "status.failed", "term.failed"})
"""Lines of the log that tell of a defect."""


class Story:
    """One seed. `play` raises AssertionError if something did not hold."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.trace = Trace()
        self.settled_after = 0.0
        self.rng = random.Random(seed)
        self.server = SimApiServer(random.Random(seed + 1), self.trace)
        self.gateways = {
            name: SimGateway(name, random.Random(f"{seed} {name}"), self.trace, self._check_write)
            for name in ("one", "two")
        }
        self.seams = Seams(seed, self.server, self.gateways)
        self.seams.trap = self._spring
        self.users = Users(self.server, self.rng, self.trace)
        selective = self.rng.random() < 0.5
        self.oracle = Oracle(self.server, selective=selective)
        self.settings = _settings(selective=selective, audit=self.rng.choice([10, 30, 60]))
        self.replicas: list[Replica] = []
        self._reign: tuple[str, int] | None = None
        self._past: set[tuple[str, int]] = set()
        self._ready: set[str] = set()
        self._wanted_since: dict[Key, float] = {}
        self._core: dict[Key, Body] = {}
        self._backups: list[tuple[SimGateway, dict[str, dict[str, Body]]]] = []
        self._background: list[asyncio.Task[None]] = []
        self._trap: tuple[str, int, str] | None = None
        self._secrets = [ADMIN_KEY, *PASSWORDS, *(pair(number)[1].decode().split("\n")[1] for number in range(3))]

    async def play(self) -> None:
        """Play it to its end."""
        with replaced(self.seams, self._take_log):
            self._begin()
            for _ in range(self.rng.randint(6, 18)):
                await self._act()
                await asyncio.sleep(self.rng.choice([0.0, 0.01, 0.1, 1.0, 4.0, 16.0]))
            await self._heal()
            await self._settle()
            await self._stay_quiet()
            await self._end()
        assert not self.trace.violations, "\n".join(self.trace.violations)

    # What happens.

    def _begin(self) -> None:
        self.users.begin()
        for gateway in self.gateways.values():
            for (kind, id_), body in {**FOREIGN, **(LEFTOVER if self.rng.random() < 0.5 else {})}.items():
                gateway.records[kind][id_] = body
        self._look(first=True)
        self._core = {key: fields for key, fields in self.oracle.expect().records.items() if key in _core_keys()}
        assert len(self._core) == len(_core_keys()), "the oracle does not know the core"
        self.replicas = [Replica(name, self.settings, self.server, self._crashed) for name in ("a", "b")]
        for replica in self.replicas:
            self._later(self.rng.choice([0.0, 0.3, 4.0]), replica.start)

    async def _act(self) -> None:
        actions: tuple[tuple[int, Callable[[], Awaitable[None]]], ...] = (
            (16, self._edit),
            (3, self._fail_api),
            (4, self._disturb_watches),
            (3, self._cut_link),
            (5, self._fail_gateway),
            (2, self._close_gateway),
            (4, self._meddle),
            (2, self._restore),
            (3, self._kill),
            (3, self._freeze),
            (4, self._set_trap),
            (1, self._jump),
            (1, self._restart),
        )
        chosen = self.rng.choices([each for _, each in actions], [weight for weight, _ in actions])[0]
        await chosen()

    async def _edit(self) -> None:
        for _ in range(self.rng.randint(1, 4)):
            self.users.act()
            self._look()
            if self.rng.random() < 0.5:
                await asyncio.sleep(self.rng.choice([0.0, 0.001, 0.02, 0.5]))

    async def _fail_api(self) -> None:
        rng = self.rng
        self.server.fault = ApiFaults(
            error=rng.choice([0, 0.2, 0.5]),
            throttled=rng.choice([0, 0.3]),
            conflict=rng.choice([0, 0.4]),
            lost_request=rng.choice([0, 0.2]),
            lost_reply=rng.choice([0, 0.2]),
            slow=rng.choice([0, 0.3]),
            lost_bookmark=rng.choice([0, 0.5]),
        )
        self.trace.note("fault", str(self.server.fault))
        self._later(rng.choice([1.0, 10.0, 40.0]), self._mend_api)

    def _mend_api(self) -> None:
        self.server.fault = ApiFaults()

    async def _disturb_watches(self) -> None:
        what = self.rng.choice(["cut", "end", "stall", "gone", "bookmark", "half", "garbage"])
        if self.rng.random() < 0.4:
            self.trace.note("fault", "the API server forgets its history")
            self.server.compact()
        self.trace.note("fault", f"watches: {what}")
        self.server.disturb(what, self.rng.choice([0.3, 1.0]))

    async def _cut_link(self) -> None:
        replica = self._anyone()
        if replica.process is None:
            return
        process, state = replica.process, self.rng.choice(["refused", "dropped"])
        self.trace.note("fault", f"the API server is {state} for {process.name}")
        self.server.set_link(process, "refused" if state == "refused" else "dropped")
        self._later(self.rng.choice([1.0, 8.0, 30.0]), lambda: self.server.set_link(process, "up"))

    async def _fail_gateway(self) -> None:
        rng, gateway = self.rng, self._any_gateway()
        gateway.fault = AdminFaults(
            error=rng.choice([0, 0.3]),
            throttled=rng.choice([0, 0.2]),
            lost_request=rng.choice([0, 0.2]),
            lost_reply=rng.choice([0, 0.3]),
            slow=rng.choice([0, 0.3]),
            hang=rng.choice([0, 0.1]),
            guard_lag=rng.choice([0, 0.3]),
        )
        self.trace.note("fault", f"{gateway.name}: {gateway.fault}")
        self._later(rng.choice([1.0, 10.0, 40.0]), lambda: self._mend(gateway))

    async def _close_gateway(self) -> None:
        gateway, refuses_key = self._any_gateway(), self.rng.random() < 0.4
        self.trace.note("fault", f"{gateway.name} {'refuses the key' if refuses_key else 'is down'}")
        gateway.fault = replace(gateway.fault, refuses_key=refuses_key, is_down=not refuses_key)
        self._later(self.rng.choice([0.5, 5.0, 40.0]), lambda: self._mend(gateway))

    def _mend(self, gateway: SimGateway) -> None:
        gateway.fault = AdminFaults()

    async def _meddle(self) -> None:
        gateway = self._any_gateway()
        for kind, records in gateway.records.items():
            for id_, body in sorted(records.items()):
                if self.rng.random() < 0.1 and is_ours(kind, body):
                    luck = self.rng.random()
                    edited = {**body, "desc": "edited"} if luck < 0.3 else {**body, "nodes": [], "uris": ["/edited"]}
                    if not gateway.users((kind, id_)) or luck < 0.6:
                        gateway.meddle((kind, id_), edited if luck < 0.6 else None)

    async def _restore(self) -> None:
        gateway, rng = self._any_gateway(), self.rng
        mine = [records for owner, records in self._backups if owner is gateway]
        if rng.random() < 0.4 or not mine:
            self._backups.append((gateway, gateway.backup()))
            if rng.random() < 0.5:
                return
        strangers: dict[str, dict[str, Body]] = {}
        for (kind, id_), body in FOREIGN.items():
            strangers.setdefault(kind, {})[id_] = body
        gateway.restore(rng.choice([*mine, strangers]))

    async def _kill(self) -> None:
        replica = self._anyone()
        if replica.process is not None:
            self.trace.note("fault", f"kill -9 of {replica.process.name}")
            await replica.kill()
            self._later(self.rng.choice([0.1, 3.0, 30.0]), replica.start)

    async def _freeze(self) -> None:
        self._freeze_one(self._anyone(), self.rng.choice([0.5, 4.0, 12.0, 20.0, 60.0]))

    def _freeze_one(self, replica: Replica, seconds: float) -> None:
        if replica.process is not None:
            self.trace.note("fault", f"{replica.process.name} is frozen for {seconds:g} s")
            replica.freeze()
            self._later(seconds, replica.thaw)

    async def _set_trap(self) -> None:
        """Have something happen to whoever makes the next requests, in the middle of one."""
        self._trap = (
            self.rng.choice(["connect", "sent", "reply"]),
            self.rng.randint(0, 6),
            self.rng.choice(["kill", "freeze"]),
        )

    def _spring(self, process: Process, point: str, method: str) -> bool:
        if self._trap is None or method == "GET" or self._trap[0] != point or process.is_gone:
            return False
        _, left, what = self._trap
        self._trap = (point, left - 1, what)
        if left > 0:
            return False
        self._trap = None
        replica = next(replica for replica in self.replicas if replica.process is process)
        seconds = self.rng.choice([1.0, 4.9, 6.0, 20.0, 40.0])
        self.trace.note("fault", f"trap: {what} of {process.name} at {point} of a {method}")
        if what == "freeze":
            self._freeze_one(replica, seconds)
            return True
        process.is_gone = True
        self._spawn(self._kill_at_once(replica, seconds))
        return True

    async def _kill_at_once(self, replica: Replica, seconds: float) -> None:
        await replica.kill()
        self._later(seconds, replica.start)

    async def _jump(self) -> None:
        replica = self._anyone()
        if replica.process is not None:
            replica.process.wall_offset += self.rng.choice([-3600.0, 3600.0])
            self.trace.note("fault", f"the clock of {replica.process.name} jumps")

    async def _restart(self) -> None:
        replica = self._anyone()
        if replica.process is not None and not replica.process.is_frozen:
            self.trace.note("fault", f"{replica.process.name} is stopped")
            self._spawn(self._stop_and_start(replica))

    async def _stop_and_start(self, replica: Replica) -> None:
        await replica.stop()
        replica.start()

    # How it ends.

    async def _heal(self) -> None:
        self.trace.note("story", "the last fault is over")
        self._trap = None
        for task in self._background:
            task.cancel() if task.get_name() == "later" else None
        self._mend_api()
        for gateway in self.gateways.values():
            self._mend(gateway)
        for replica in self.replicas:
            replica.thaw()
        await asyncio.gather(*(task for task in self._background if task.get_name() != "later"))
        for replica in self.replicas:
            replica.start()
            if replica.process is not None:
                self.server.set_link(replica.process, "up")

    async def _settle(self) -> None:
        loop = asyncio.get_running_loop()
        began, found = loop.time(), self._differences()
        while found:
            assert loop.time() - began < SETTLE_SECONDS, "not converged: " + "; ".join(found)
            await asyncio.sleep(5.0)
            found = self._differences()
        self.settled_after = loop.time() - began
        # Lines in the log and second writes of what is right already have their time as well.
        await asyncio.sleep(70.0)

    async def _stay_quiet(self) -> None:
        before = self._counts()
        self.trace.note("story", "from here on nothing may be written")
        lists = [gateway.lists for gateway in self.gateways.values()]
        await asyncio.sleep(QUIET_SECONDS)
        assert self._counts() == before, f"writes although nothing changed: {before} → {self._counts()}"
        assert all(gateway.lists > count for gateway, count in zip(self.gateways.values(), lists, strict=True)), (
            "no audit"
        )
        assert self._differences() == []

    async def _end(self) -> None:
        for replica in self.replicas:
            await replica.stop()
        lease = self.server.all("leases")[0]
        assert lease["spec"]["holderIdentity"] == "", "the lease was not given back"
        failures = running_loop().failures
        assert failures == [], "\n".join(failures)

    def _counts(self) -> tuple[int, ...]:
        leases = [entry for entry in self.trace.entries if entry.who == "apiserver"]
        return (*(len(gateway.writes) for gateway in self.gateways.values()), len(leases))

    def _differences(self) -> list[str]:
        """Return in words what is not as it should be."""
        want = self.oracle.expect()
        found = [
            f"{gateway.name} {difference}"
            for gateway in self.gateways.values()
            for difference in self.oracle.differences(want, gateway.records, forgiven=self._forgiven(gateway))
        ]
        for gateway in self.gateways.values():
            found += [
                f"{gateway.name}: {key} of others was changed"
                for key, body in FOREIGN.items()
                if gateway.records[key[0]].get(key[1]) != body
            ]
        return found + self._wrong_conditions(want)

    def _forgiven(self, gateway: SimGateway) -> set[Key]:
        """Return records without labels that came back with a backup: nobody can know whose they are."""
        return {key for key in gateway.excused if key[0] == "global_rules"}

    def _wrong_conditions(self, want: Expectation) -> list[str]:
        found = []
        for (kind, namespace, name), status in want.conditions.items():
            item = self.server.get(f"{kind.lower()}{'es' if kind.endswith('s') else 's'}", name, namespace) or {}
            conditions = (item.get("status") or {}).get("conditions", [])
            got = [(each["status"], each["observedGeneration"]) for each in conditions]
            if got != [(status, item["metadata"]["generation"])]:
                found.append(f"{kind} {namespace}/{name}: conditions {got}, not {status}: {conditions}")
        return found

    # What must hold all the time.

    def _look(self, *, first: bool = False) -> None:
        """Note since when which records are wanted."""
        now, records = asyncio.get_running_loop().time(), self.oracle.expect().records
        since = float("-inf") if first else now
        self._wanted_since = {key: self._wanted_since.get(key, since) for key in records}

    def _check_write(self, gateway: SimGateway, write: Write) -> None:
        key, now = write.key, write.time
        self._check_reign(gateway, write)
        what = f"{write.writer[0]} {write.method} {key}"
        stored = gateway.records[key[0]].get(key[1])
        if stored is not None and not is_ours(key[0], stored):
            self.trace.violate(gateway.name, f"{what}: it is not ours")
        if write.writer[0] not in self._ready:
            self.trace.violate(gateway.name, f"{what}: it does not know the world yet")
        if write.body is not None:
            fields = self._core.get(key, {})
            if any(write.body.get(name) != value for name, value in fields.items()):
                self.trace.violate(gateway.name, f"{what}: {write.body} is not what was always wanted")
            return
        if now - self._wanted_since.get(key, now) > KNOWN_SECONDS:
            self.trace.violate(gateway.name, f"{what}: it was always wanted")
        users = [user for user in gateway.users(key) if user not in gateway.excused]
        if users:
            self.trace.violate(gateway.name, f"{what}: {users} name it")

    def _check_reign(self, gateway: SimGateway, write: Write) -> None:
        if write.writer == self._reign:
            return
        if write.writer in self._past:
            self.trace.violate(gateway.name, f"{write.writer} writes {write.key} after {self._reign}")
        if self._reign is not None:
            self._past.add(self._reign)
        self._reign = write.writer

    def _take_log(self, _: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        """Take down a line of the log (a structlog processor)."""
        process = PROCESS.get()
        if process.is_gone:
            raise structlog.DropEvent
        name, level = event.pop("event"), event.pop("level")
        text = f"{level} {name} " + " ".join(f"{key}={value}" for key, value in event.items())
        if name == "term.started":
            process.terms += 1
        if name == "world.ready":
            self._ready.add(process.name)
        if any(secret in text for secret in self._secrets):
            self.trace.violate(process.name, f"a secret in the log: {name}")
        if name in BUGS:
            self.trace.violate(process.name, f"{name}: {event.get('exception')}")
        self.trace.note(process.name, text[:600])
        raise structlog.DropEvent

    def _crashed(self, name: str, error: BaseException) -> None:
        self.trace.violate(name, f"the program ended with {error!r}")

    # Helpers of the plot.

    def _anyone(self) -> Replica:
        """Return a replica, most often the one that leads."""
        leaders = [replica for replica in self.replicas if replica.is_leading]
        return leaders[0] if leaders and self.rng.random() < 0.7 else self.rng.choice(self.replicas)

    def _any_gateway(self) -> SimGateway:
        return self.rng.choice(list(self.gateways.values()))

    def _later(self, seconds: float, what: Callable[[], object]) -> None:
        async def wait() -> None:
            await asyncio.sleep(seconds)
            what()

        self._spawn(wait(), name="later")

    def _spawn(self, work: Any, *, name: str = "act") -> None:
        # Whatever asks for it, the story carries it out: a trap is sprung inside a replica.
        loop = running_loop()
        self._background.append(loop.create_task(work, name=name, context=loop.world))


def _core_keys() -> set[Key]:
    return {
        ("routes", crc(f"{CORE}_r0_rule")),
        ("upstreams", crc(f"{CORE}_web_80")),
        ("plugin_configs", crc(f"{CORE}_p")),
        ("ssls", crc(f"{CORE}_t")),
        ("consumers", f"{CORE}_c"),
        ("global_rules", crc(f"{CORE}_g")),
    }


def _settings(*, selective: bool, audit: int) -> Settings:
    sync = {"audit_interval": f"{audit}s"}
    return Settings.model_validate(
        {
            "kubernetes": {"ingress_class": APISIX, "namespace_selector": SELECTOR if selective else ""},
            "clusters": [
                {"name": name, "admin_url": f"http://{name}/apisix/admin", "admin_key": ADMIN_KEY, "sync": sync}
                for name in ("one", "two")
            ],
        }
    )
