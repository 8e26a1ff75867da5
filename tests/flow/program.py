"""Runs the whole program in one process, between an API server and a gateway."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp

from apisix_ingress.app import Controller, build
from apisix_ingress.model.kinds.table import CUSTOM_GROUP, RESOURCES
from apisix_ingress.settings import Settings
from e2e.devgateway.ports import free_port
from tests.fakes.adminapi import FakeAdminApi
from tests.fakes.kube.apiserver import KINDS, FakeApiServer, Kind, Manifest
from tests.flow.kube.informer.reflecting import OPTIONS
from tests.samples import sample
from tests.waiting import until

ROUTES = 30
BOUND = 40.0
QUICK = partial(OPTIONS, watch_longest=2.0, backoff_cap=0.2, absent_poll=0.5, hold_seconds=0.2)
"""Slower than for one reflector: there are many, and held-back writes have to be visible."""
SERVED = {kind.kind: kind for kind in KINDS} | {
    resource.kind: Kind(resource.kind, resource.api_version, resource.plural, resource.namespaced)
    for resource in RESOURCES.values()
    if resource.group == CUSTOM_GROUP
}


@dataclass
class App:
    """The running program."""

    server: FakeApiServer
    gateway: FakeAdminApi
    controller: Controller
    port: int

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for a condition."""
        await until(condition, what, state=lambda: (self.controller.state.source.problems(), self.gateway.seen[-5:]))

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
        """Return the response of /readyz."""
        return await self.ask("/readyz")

    async def ask(self, path: str) -> tuple[int, str]:
        """Return the response of a path."""
        url = f"http://127.0.0.1:{self.port}{path}"
        async with aiohttp.ClientSession() as session, session.get(url) as reply:
            return reply.status, await reply.text()

    def is_paused(self) -> float | None:
        """Return the metrics of the cluster."""
        return sample(self.controller.metrics, "breaker_open", {"cluster": "default"})


def settings(
    server: FakeApiServer,
    gateway: FakeAdminApi,
    folder: Path,
    port: int,
    key: str = "",
    more: Mapping[str, Any] | None = None,
    **kubernetes: str,
) -> Settings:
    election = {"lease_duration": "4s", "renew_deadline": "2.6s", "retry_period": "0.2s"}
    sync = {"timeout": "1s", "audit_interval": "1s"}
    return Settings.model_validate(
        {
            "http": {"listen": f"127.0.0.1:{port}"},
            "kubernetes": {
                "kubeconfig": str(server.kubeconfig(folder / "kubeconfig")),
                "election": election,
                **kubernetes,
            },
            "clusters": [{"admin_url": gateway.url, "admin_key": key or gateway.key, "sync": sync}],
            **(more or {}),
        }
    )


@asynccontextmanager
async def running(
    server: FakeApiServer,
    gateway: FakeAdminApi,
    folder: Path,
    *,
    key: str = "",
    more: Mapping[str, Any] | None = None,
    **kubernetes: str,
) -> AsyncIterator[App]:
    """Run the program; at the end it is stopped and must not leave tasks behind."""
    before, stop, port = asyncio.all_tasks(), asyncio.Event(), free_port()
    async with AsyncExitStack() as held:
        controller = await build(settings(server, gateway, folder, port, key, more, **kubernetes), None, held)
        task = asyncio.create_task(controller.run(stop), name="app")
        try:
            yield App(server, gateway, controller, port)
        finally:
            stop.set()
            await asyncio.wait_for(task, BOUND)
    await _ended(before)


async def _ended(before: set[asyncio.Task[Any]]) -> None:
    """Wait until all new tasks have ended; tasks of servers end with their connections."""
    own = asyncio.current_task()
    await until(lambda: not asyncio.all_tasks() - before - {own}, "the end of tasks", state=asyncio.all_tasks)


def put_world(server: FakeApiServer) -> list[str]:
    """Create a Service with an endpoint and many routes to it; return the names of the routes."""
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
    """Return whether the object has a condition that is True for its current generation."""
    conditions = (item.get("status") or {}).get("conditions", [])
    return any(c["status"] == "True" and c["observedGeneration"] == item["metadata"]["generation"] for c in conditions)
