"""The whole controller under a tenant who rewrites 1,500 rules every second, on virtual time.

A write takes 20 ms, 16 are in flight: the tenant alone needs twice the possible writes.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import structlog

from apisix_ingress.settings import Settings
from tests.simulation.checking.oracle import crc
from tests.simulation.checking.trace import Trace
from tests.simulation.loop import SimulationLoop, running_loop
from tests.simulation.replica import Replica, Seams, replaced
from tests.simulation.runner import end_all
from tests.simulation.servers.apiserver import SimApiServer
from tests.simulation.servers.gateway import ADMIN_KEY, SimGateway, Write
from tests.simulation.users import APISIX, Users

HOG, VICTIM = "alpha", "beta"
RULES = 1500
WRITE_SECONDS = 0.02
ROUTE_SECONDS, REVOCATION_SECONDS, CONDITION_SECONDS = 2.0, 1.0, 3.0


class Tenants:
    """One replica, one gateway, a noisy tenant and a victim."""

    def __init__(self) -> None:
        self.trace = Trace()
        self.server = SimApiServer(random.Random(1), self.trace)
        self.gateway = SimGateway("one", random.Random(2), self.trace, lambda gateway, write: None)
        self.gateway.fault.late = WRITE_SECONDS
        self.users = Users(self.server, random.Random(3), self.trace)
        self.seams = Seams(4, self.server, {"one": self.gateway}, lambda *_: False)

    async def play(self, story: Callable[[Tenants], Awaitable[None]]) -> None:
        """Start the noisy tenant and run a story meanwhile."""
        self.users.begin()
        for namespace in (HOG, VICTIM):
            self.users._service(namespace, "web")
            self.users._slice(namespace, "web", ["10.0.0.1"])
        self.users._consumer(VICTIM, "password")
        replica = Replica("a", settings(), self.server, lambda name, error: self.trace.violate(name, repr(error)))
        replica.start()
        await asyncio.sleep(5)
        hog = asyncio.create_task(self._hog())
        await asyncio.sleep(2.3)
        async with asyncio.timeout(10):
            await story(self)
        hog.cancel()
        await asyncio.wait([hog])
        await replica.kill()
        assert not self.trace.violations
        assert len(self.gateway.writes) > RULES, "the noisy tenant was idle"

    async def _hog(self) -> None:
        version = 0
        while True:
            version += 1
            rules = [
                {
                    "name": f"r{number}",
                    "match": {"hosts": [f"h{number}.hog.test"], "paths": [f"/{version}"]},
                    "backends": [{"serviceName": "web", "servicePort": 80}],
                }
                for number in range(RULES)
            ]
            self.users._put("ApisixRoute", HOG, "hog", spec={"http": rules})
            await asyncio.sleep(1.0)

    async def seconds_until(self, done: Callable[[Write], bool]) -> float:
        """Return the seconds from now to a write."""
        began = asyncio.get_running_loop().time()
        while True:
            for write in self.gateway.writes:
                if write.time >= began and done(write):
                    return write.time - began
            await asyncio.sleep(0.01)


def settings() -> Settings:
    cluster = {"name": "one", "admin_url": "http://one/apisix/admin", "admin_key": ADMIN_KEY}
    return Settings.model_validate({"kubernetes": {"ingress_class": APISIX}, "clusters": [cluster]})


def play(story: Callable[[Tenants], Awaitable[None]]) -> None:
    """Play a story in a simulation."""
    loop = SimulationLoop(random.Random(5))

    async def made() -> Tenants:
        return Tenants()

    tenants = loop.run_until_complete(made())
    with replaced(tenants.seams, drop):
        try:
            loop.run_until_complete(tenants.play(story))
        finally:
            end_all(loop)
    assert loop.failures == []


def drop(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Drop a log line."""
    raise structlog.DropEvent


def test_routes_credentials_and_conditions_of_another_tenant_are_not_delayed() -> None:
    async def story(tenants: Tenants) -> None:
        loop, users, server = running_loop(), tenants.users, tenants.server
        for number in range(2):
            began = loop.time()
            users._route(VICTIM, f"fresh{number}", ["web"])
            route = ("routes", crc(f"{VICTIM}_fresh{number}_rule"))
            assert await tenants.seconds_until(lambda write: write.key == route) <= ROUTE_SECONDS  # noqa: B023
            await asyncio.sleep(began + CONDITION_SECONDS - loop.time())
            item = server.get("apisixroutes", f"fresh{number}", VICTIM) or {}
            assert item["status"]["conditions"][0]["status"] == "True"
        users._remove("ApisixConsumer", VICTIM, "c")
        gone = await tenants.seconds_until(lambda write: write.method == "DELETE" and write.key[0] == "consumers")
        assert gone <= REVOCATION_SECONDS

    play(story)
