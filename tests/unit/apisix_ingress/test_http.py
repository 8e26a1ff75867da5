"""The endpoints over a loopback socket, and what a port that can't be had looks like."""

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import aiohttp
import pytest

from apisix_ingress.errors import ConfigError
from apisix_ingress.http import HttpServer, Readiness
from apisix_ingress.metrics import Metrics
from apisix_ingress.redaction import register_secret


def make_server(
    readiness: Readiness | None = None, gateways: Callable[[], str | None] | None = None, port: int = 0
) -> HttpServer:
    metrics = Metrics(pod="pod-a", namespace="ingress")
    make = partial(HttpServer, "127.0.0.1", port, readiness=readiness or Readiness(), metrics=metrics)
    return make() if gateways is None else make(gateways=gateways)


@asynccontextmanager
async def client(server: HttpServer) -> AsyncIterator[Callable[[str], Any]]:
    async with server, aiohttp.ClientSession(f"http://127.0.0.1:{server.port}") as session:

        async def get(path: str) -> tuple[int, Any]:
            async with session.get(path) as response:
                return response.status, await response.json()

        yield get


async def test_liveness_needs_no_check_to_hold() -> None:
    readiness = Readiness()
    readiness.add("synced", lambda: "nothing is listed yet")
    async with client(make_server(readiness)) as get:
        assert await get("/healthz") == (200, {"status": "ok"})


async def test_readiness_names_each_check_and_why_it_fails() -> None:
    readiness, waiting = Readiness(), ["Ingress is not listed yet"]
    readiness.add("synced", lambda: waiting[0] if waiting else None)
    readiness.add("leader", lambda: None)
    async with client(make_server(readiness)) as get:
        want = {"status": "not ready", "checks": {"synced": "Ingress is not listed yet", "leader": "ok"}}
        assert await get("/readyz") == (503, want)
        waiting.clear()
        assert await get("/readyz") == (200, {"status": "ok", "checks": {"synced": "ok", "leader": "ok"}})


async def test_broken_check_is_a_reason_not_a_broken_probe() -> None:
    def broken() -> str | None:
        raise KeyError("canary")

    readiness = Readiness()
    readiness.add("synced", broken)
    async with client(make_server(readiness)) as get:
        assert await get("/readyz") == (
            503,
            {"status": "not ready", "checks": {"synced": "the check failed: KeyError"}},
        )


async def test_reason_shows_no_secret() -> None:
    register_secret("canary-of-readyz")
    readiness = Readiness()
    readiness.add("gateway", lambda: "401 for key canary-of-readyz\nforged")
    assert readiness.failures() == {"gateway": "401 for key [redacted]\\nforged"}


async def test_gateway_health_is_worded_as_in_the_1_8_line() -> None:
    async with client(make_server()) as get:
        assert await get("/apisix/healthz") == (200, {"status": "ok"})
    async with client(make_server(gateways=lambda: "cluster a does not answer")) as get:
        assert await get("/apisix/healthz") == (500, {"status": "cluster a does not answer"})


async def test_metrics_are_text() -> None:
    async with make_server() as server, aiohttp.ClientSession() as session:
        response = await session.get(f"http://127.0.0.1:{server.port}/metrics")
        assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        assert "apisix_ingress_controller_apisix_requests" in await response.text()


async def test_busy_port_is_one_clear_line() -> None:
    async with make_server() as server:
        rival = make_server(port=server.port)
        with pytest.raises(ConfigError) as caught:
            await rival.start()
    want = "another process does; stop it or set http.listen to a free port"
    assert str(caught.value) == f"http.listen: can't listen on 127.0.0.1:{rival.port}: {want}"


async def test_address_of_another_host_is_one_clear_line() -> None:
    server = HttpServer("203.0.113.1", 8080, readiness=Readiness(), metrics=Metrics(pod="p", namespace="n"))
    with pytest.raises(ConfigError, match=r"203\.0\.113\.1:8080: .*set http\.listen to an address of this host"):
        await server.start()


async def test_stopped_server_frees_its_port_and_stops_twice() -> None:
    server = make_server()
    assert server.port == 0
    await server.start()
    port = server.port
    await server.stop()
    await server.stop()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0
