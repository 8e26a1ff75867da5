"""The whole program in one process, between an API server and a gateway that fail in every way they can.

Whatever happens, it converges, nothing is deleted by mistake, and `run` ends with nothing left behind.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from apisix_ingress.app import Controller, build
from apisix_ingress.kube.watching import ReflectorOptions
from apisix_ingress.model.resources import CUSTOM_GROUP, RESOURCES
from apisix_ingress.settings import Settings
from e2e.devgateway.ports import free_port
from tests.fakes.adminapi import AdminFault, FakeAdminApi
from tests.fakes.apiserver import KINDS, FakeApiServer, Fault, Kind, Manifest
from tests.samples import sample

ROUTES = 30
BOUND = 40.0
QUICK = partial(
    ReflectorOptions,
    page_size=8,
    watch_shortest=1.0,
    watch_longest=2.0,
    watch_margin=0.5,
    backoff_base=0.02,
    backoff_cap=0.2,
    absent_poll=0.5,
    hold_seconds=0.2,
)
SERVED = {kind.kind: kind for kind in KINDS} | {
    resource.kind: Kind(resource.kind, resource.api_version, resource.plural, resource.namespaced)
    for resource in RESOURCES.values()
    if resource.group == CUSTOM_GROUP
}


@dataclass
class App:
    """The program at work."""

    server: FakeApiServer
    gateway: FakeAdminApi
    controller: Controller
    port: int

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for a condition; the bound only ends a test that would never end."""
        try:
            async with asyncio.timeout(BOUND):
                while not condition():  # noqa: ASYNC110  # servers in this process make it true
                    await asyncio.sleep(0.01)
        except TimeoutError:
            pytest.fail(f"never came: {what}; {self.controller.source.problems()} {self.gateway.seen[-5:]}")

    async def until_served(self, *names: str) -> None:
        """Wait until the gateway has the routes of these objects and no others."""
        want = {f"default_{name}_rule" for name in names}
        await self.until(lambda: self.names() == want, f"the routes {sorted(want)}, there are {sorted(self.names())}")

    def names(self) -> set[str]:
        """Return the names of the routes that the gateway has."""
        return {body["name"] for body in self.gateway.records.get("routes", {}).values()}

    @property
    def deletes(self) -> list[str]:
        """The paths of all records that were deleted."""
        return [path for method, path in self.gateway.seen if method == "DELETE"]

    async def probe(self) -> tuple[int, str]:
        """Return what /readyz says."""
        return await self.ask("/readyz")

    async def ask(self, path: str) -> tuple[int, str]:
        """Return what a path says."""
        url = f"http://127.0.0.1:{self.port}{path}"
        async with aiohttp.ClientSession() as session, session.get(url) as reply:
            return reply.status, await reply.text()

    def is_paused(self) -> float | None:
        """Return what the metrics say of the cluster."""
        return sample(self.controller.metrics, "breaker_open", {"cluster": "default"})


def settings(server: FakeApiServer, gateway: FakeAdminApi, folder: Path, port: int, key: str = "") -> Settings:
    election = {"lease_duration": "4s", "renew_deadline": "2.6s", "retry_period": "0.2s"}
    sync = {"timeout": "1s", "audit_interval": "1s"}
    return Settings.model_validate(
        {
            "http": {"listen": f"127.0.0.1:{port}"},
            "kubernetes": {"kubeconfig": str(server.kubeconfig(folder / "kubeconfig")), "election": election},
            "clusters": [{"admin_url": gateway.url, "admin_key": key or gateway.key, "sync": sync}],
        }
    )


@asynccontextmanager
async def running(server: FakeApiServer, gateway: FakeAdminApi, folder: Path, *, key: str = "") -> AsyncIterator[App]:
    """Run the program; at the end it is stopped, and has to leave no task behind."""
    before, stop, port = asyncio.all_tasks(), asyncio.Event(), free_port()
    async with AsyncExitStack() as held:
        controller = await build(settings(server, gateway, folder, port, key), None, held)
        task = asyncio.create_task(controller.run(stop), name="app")
        try:
            yield App(server, gateway, controller, port)
        finally:
            stop.set()
            await asyncio.wait_for(task, BOUND)
    await asyncio.wait_for(_ended(before), BOUND)


async def _ended(before: set[asyncio.Task[Any]]) -> None:
    """Wait until no task is left of those that were not there before; the servers' end with their connections."""
    while asyncio.all_tasks() - before - {asyncio.current_task()}:  # noqa: ASYNC110  # see above
        await asyncio.sleep(0.01)


def put_world(server: FakeApiServer) -> list[str]:
    """Put a Service with an endpoint and many routes to it; return the routes' names."""
    server.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
    port = {"name": "http", "port": 80, "targetPort": 8080}
    spec = {"clusterIP": "10.96.0.1", "ports": [port]}
    server.put({"apiVersion": "v1", "kind": "Service", "metadata": meta("web"), "spec": spec})
    put_slice(server, "10.244.1.1")
    names = [f"r{number}" for number in range(ROUTES)]
    for name in names:
        server.put(route(name))
    return names


def put_slice(server: FakeApiServer, address: str) -> None:
    server.put(
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": meta("web-1", labels={"kubernetes.io/service-name": "web"}),
            "addressType": "IPv4",
            "ports": [{"name": "http", "port": 8080}],
            "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        }
    )


def meta(name: str, **fields: Any) -> Manifest:
    return {"name": name, "namespace": "default", **fields}


def route(name: str) -> Manifest:
    match = {"paths": [f"/{name}"]}
    rule = {"name": "rule", "match": match, "backends": [{"serviceName": "web", "servicePort": 80}]}
    spec = {"http": [rule]}
    return {"apiVersion": "apisix.apache.org/v2", "kind": "ApisixRoute", "metadata": meta(name), "spec": spec}


def nodes(gateway: FakeAdminApi) -> list[str]:
    """Return the addresses behind the one upstream."""
    return [node["host"] for body in gateway.records.get("upstreams", {}).values() for node in body["nodes"]]


def is_ready(item: Manifest) -> bool:
    """Say whether the object has a condition that is True for what it says now."""
    conditions = (item.get("status") or {}).get("conditions", [])
    return any(c["status"] == "True" and c["observedGeneration"] == item["metadata"]["generation"] for c in conditions)


@pytest.fixture(autouse=True)
def quick_reflectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apisix_ingress.kube.reflector.ReflectorOptions", QUICK)


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer(SERVED.values()) as started:
        yield started


@pytest.fixture
async def gateway() -> AsyncIterator[FakeAdminApi]:
    async with FakeAdminApi() as started:
        yield started


async def test_objects_become_records_and_the_lease_is_given_back(
    server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path
) -> None:
    names = put_world(server)
    async with running(server, gateway, tmp_path) as app:
        await app.until_served(*names)
        await app.until(lambda: all(map(is_ready, server.all("apisixroutes"))), "a condition on every route")
        assert (await app.probe())[0] == 200
        assert [lease["spec"]["holderIdentity"] != "" for lease in server.all("leases")] == [True]
        holder = server.all("leases")[0]["spec"]["holderIdentity"]
    assert (nodes(gateway), app.deletes) == (["10.244.1.1"], [])
    assert {agent for agent in gateway.agents if holder in agent} == gateway.agents
    assert [lease["spec"]["holderIdentity"] for lease in server.all("leases")] == [""]


async def test_restart_writes_nothing(server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path) -> None:
    names = put_world(server)
    async with running(server, gateway, tmp_path) as app:
        await app.until_served(*names)
    gateway.seen.clear()
    async with running(server, gateway, tmp_path) as app:
        await app.until(lambda: app.controller.syncs[0].idle(), "the comparison of a new term")
    assert gateway.writes == []


@pytest.mark.parametrize(
    "fault",
    [
        Fault("list", status=410, times=20),
        Fault("list", status=429, retry_after="0", times=20),
        Fault("list", status=500, times=20),
        Fault("list", status=200, body="<html>", times=20),
        Fault("list", cut=True, times=20),
        Fault("watch", status=410, times=30),
        Fault("watch", status=429, times=30),
        Fault(delay=0.1, times=60),
        Fault("create", "leases", status=500, apply=True, times=1),
    ],
    ids=lambda fault: f"{fault.verb}-{fault.status or ('cut' if fault.cut else 'slow')}",
)
async def test_api_server_that_fails_at_the_start_is_outlived(
    server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path, fault: Fault
) -> None:
    names = put_world(server)
    server.faults.append(fault)
    async with running(server, gateway, tmp_path) as app:
        await app.until_served(*names)
        server.put(route("more"))
        put_slice(server, "10.244.1.2")
        await app.until_served(*names, "more")
        await app.until(lambda: nodes(gateway) == ["10.244.1.2"], "the new endpoint")
    assert app.deletes == []


@pytest.mark.parametrize(
    "fault",
    [
        AdminFault("PUT", status=500, times=12),
        AdminFault("PUT", status=429, times=12),
        AdminFault("PUT", status=503, apply=True, cut=True, times=20),
        AdminFault("PUT", cut=True, times=20),
        AdminFault("PUT", delay=1.5, times=3),
        AdminFault("GET", status=500, times=2),
    ],
    ids=["500", "429", "reply-lost", "request-lost", "slow", "list-500"],
)
async def test_gateway_that_fails_is_outlived(
    server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path, fault: AdminFault
) -> None:
    names = put_world(server)
    gateway.faults.append(fault)
    async with running(server, gateway, tmp_path) as app:
        await app.until_served(*names)
        await app.until(lambda: all(map(is_ready, server.all("apisixroutes"))), "a condition on every route")
    assert (nodes(gateway), app.deletes) == (["10.244.1.1"], [])


async def test_storm_of_410_loses_no_change(server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path) -> None:
    names = put_world(server)
    async with running(server, gateway, tmp_path) as app:
        await app.until_served(*names)
        for number in range(5):
            for plural in server.kinds:
                server.order(plural, "cut")
            server.remove("apisixroutes", f"r{number}")
            server.put(route(f"new{number}"))
            put_slice(server, f"10.244.2.{number + 1}")
            server.compact()
            await app.until(lambda: nodes(gateway) == [f"10.244.2.{number + 1}"], "the endpoint")  # noqa: B023
        await app.until_served(*names[5:], *(f"new{number}" for number in range(5)))
    assert len(app.deletes) == 5


async def test_half_open_watches_are_noticed(server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path) -> None:
    names = put_world(server)
    async with running(server, gateway, tmp_path) as app:
        await app.until_served(*names)
        for plural in server.kinds:
            server.order(plural, "stall")
        server.put(route("more"))
        server.remove("apisixroutes", "r0")
        await app.until_served(*names[1:], "more")
    assert len(app.deletes) == 1


async def test_list_that_is_empty_by_mistake_deletes_nothing(
    server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path
) -> None:
    names = put_world(server)
    body = '{"metadata": {"resourceVersion": "9000"}, "items": []}'
    async with running(server, gateway, tmp_path) as app:
        await app.until_served(*names)
        listed = server.count("list", "apisixroutes")
        server.faults.append(Fault("list", "apisixroutes", status=200, body=body, times=1))
        server.compact()
        server.order("apisixroutes", "cut")
        await app.until(lambda: server.count("list", "apisixroutes") > listed + 1, "the list that clears the suspicion")
        server.put(route("more"))
        await app.until_served(*names, "more")
    assert app.deletes == []


async def test_kind_that_is_forbidden_at_the_start_holds_writing_back(
    server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path
) -> None:
    names = put_world(server)
    forbidden = Fault("list", "secrets", status=403)
    server.faults.append(forbidden)
    async with running(server, gateway, tmp_path) as app:
        await app.until(lambda: "secrets" in str(app.controller.source.problems()), "the problem")
        await app.until(lambda: server.count("list", "secrets") > 3, "some tries")
        status, text = await app.probe()
        assert (status, "grant list, watch on secrets" in text, gateway.writes) == (503, True, [])
        server.faults.remove(forbidden)
        await app.until_served(*names)
        assert (await app.probe())[0] == 200
    assert app.deletes == []


async def test_kind_that_becomes_forbidden_harms_no_other(
    server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path
) -> None:
    names = put_world(server)
    async with running(server, gateway, tmp_path) as app:
        await app.until_served(*names)
        server.faults.append(Fault("*", "secrets", status=403))
        server.order("secrets", "cut")
        await app.until(lambda: "secrets" in app.controller.source.problems(), "the problem")
        server.remove("apisixroutes", "r0")
        server.put(route("more"))
        await app.until_served(*names[1:], "more")
    assert len(app.deletes) == 1


async def test_object_that_cannot_be_read_harms_only_itself(
    server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path
) -> None:
    names = put_world(server)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": meta("odd"), "data": {"key": "no base64!"}}
    server.put(secret)
    server.put({**route("odd"), "spec": {"http": "no list"}})
    async with running(server, gateway, tmp_path) as app:
        await app.until_served(*names)
        assert (await app.probe())[0] == 200
        await app.until(lambda: conditions(server, "odd") == ["False"], "the condition of the odd route")
        server.put(route("odd"))
        await app.until_served(*names, "odd")
        await app.until(lambda: conditions(server, "odd") == ["True"], "its recovery")
    assert app.deletes == []


def conditions(server: FakeApiServer, name: str) -> list[str]:
    item = server.get("apisixroutes", name) or {}
    return [condition["status"] for condition in (item.get("status") or {}).get("conditions", [])]


async def test_lost_lease_stops_writing_until_it_is_won_again(
    server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path
) -> None:
    names = put_world(server)
    async with running(server, gateway, tmp_path) as app:
        await app.until_served(*names)
        await app.until(lambda: app.controller.syncs[0].idle(), "nothing left to do")
        lease = server.all("leases")[0]
        server.put({**lease, "spec": {**lease["spec"], "holderIdentity": "somebody-else"}})
        await app.until(lambda: not app.controller.source.election.leading, "the end of the term")
        written = len(gateway.writes)
        server.put(route("more"))
        await app.until(lambda: len(app.controller.world.desired.keys()) > ROUTES + 1, "the translation")
        assert (await app.probe())[0] == 200
        assert len(gateway.writes) == written
        server.put({**lease, "spec": {**lease["spec"], "holderIdentity": ""}})
        await app.until_served(*names, "more")
        assert gateway.writes[written:] == [gateway.writes[-1]]
    assert app.deletes == []


async def test_outage_is_told_by_who_leads_and_by_a_former_leader_no_more(
    server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path
) -> None:
    names = put_world(server)
    async with running(server, gateway, tmp_path) as app:
        await app.until_served(*names)
        gateway.faults.append(AdminFault(status=503))
        for number in range(12):
            server.put(route(f"late{number}"))
        await app.until(lambda: not app.controller.syncs[0].reachable, "the breaker to open")
        assert ((await app.ask("/apisix/healthz"))[0], app.is_paused()) == (500, 1)
        assert '"notes"' in (await app.probe())[1]
        lease = server.all("leases")[0]
        server.put({**lease, "spec": {**lease["spec"], "holderIdentity": "somebody-else"}})
        await app.until(lambda: not app.controller.source.election.leading, "the end of the term")
        assert ((await app.ask("/apisix/healthz"))[0], app.is_paused()) == (200, 0)
        assert '"notes"' not in (await app.probe())[1]


async def test_refused_key_that_a_follower_was_told_of_is_forgotten_by_a_term(
    server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path
) -> None:
    names = put_world(server)
    async with running(server, gateway, tmp_path) as app:
        await app.until_served(*names)
        lease = server.all("leases")[0]
        taken = {**lease, "spec": {**lease["spec"], "holderIdentity": "somebody-else"}}
    server.put(taken)
    async with running(server, gateway, tmp_path, key="another-key") as app:
        await app.until(lambda: app.controller.gateways() is not None, "the refusal")
        assert ((await app.ask("/apisix/healthz"))[0], app.is_paused()) == (500, 1)
        gateway.key = "another-key"
        server.put({**lease, "spec": {**lease["spec"], "holderIdentity": ""}})
        await app.until(lambda: app.controller.syncs[0].taken_over, "the term")
        server.put(taken)
        await app.until(lambda: not app.controller.source.election.leading, "the end of the term")
        assert ((await app.ask("/apisix/healthz"))[0], app.is_paused()) == (200, 0)


async def test_stop_before_anything_answers_returns(
    server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path
) -> None:
    server.faults.append(Fault(hang=True))
    async with running(server, gateway, tmp_path) as app:
        await app.until(lambda: len(server.seen) > 3, "the first requests")
        assert (await app.probe())[0] == 503
    assert gateway.writes == []
