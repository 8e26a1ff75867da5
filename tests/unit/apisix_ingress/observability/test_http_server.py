"""The endpoints over a loopback socket, and the errors for unusable ports."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import aiohttp
import pytest
import structlog
from aiohttp import web

from apisix_ingress.errors import ConfigError
from apisix_ingress.model.secrets.redaction import register_secret
from apisix_ingress.observability.http_server import Exposition, HttpServer, Limits, Readiness
from apisix_ingress.observability.metrics import Metrics
from apisix_ingress.runtime.tasks import cancel
from tests.fakes.clock import FakeClock


def make_server(
    readiness: Readiness | None = None, gateways: Callable[[], str | None] | None = None, port: int = 0
) -> HttpServer:
    metrics = Metrics(pod="pod-a", namespace="ingress")
    make = partial(HttpServer, "127.0.0.1", port, readiness=readiness or Readiness(), metrics=metrics)
    return make() if gateways is None else make(gateways=gateways)


@asynccontextmanager
async def client(server: HttpServer) -> AsyncIterator[Callable[[str], Any]]:
    async with server, aiohttp.ClientSession(f"http://127.0.0.1:{server.port}") as session:
        await server.serve()

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


async def test_note_is_reported_and_leaves_the_pod_ready() -> None:
    readiness, noted = Readiness(), ["cluster a rejects the admin key"]
    readiness.add("synced", lambda: None)
    readiness.add_note("clusters", lambda: noted[0] if noted else None)
    async with client(make_server(readiness)) as get:
        want = {"status": "ok", "checks": {"synced": "ok"}, "notes": {"clusters": "cluster a rejects the admin key"}}
        assert await get("/readyz") == (200, want)
        noted.clear()
        assert await get("/readyz") == (200, {"status": "ok", "checks": {"synced": "ok"}})


async def test_reason_shows_no_secret() -> None:
    register_secret("canary-of-readyz")
    readiness = Readiness()
    readiness.add("gateway", lambda: "401 for key canary-of-readyz\nforged")
    assert readiness.failures() == {"gateway": "401 for key [redacted]\\nforged"}


async def test_gateway_health_is_worded_as_in_1_8() -> None:
    async with client(make_server()) as get:
        assert await get("/apisix/healthz") == (200, {"status": "ok"})
    async with client(make_server(gateways=lambda: "cluster a does not respond")) as get:
        assert await get("/apisix/healthz") == (500, {"status": "cluster a does not respond"})


async def test_metrics_are_text() -> None:
    async with make_server() as server, aiohttp.ClientSession() as session:
        await server.serve()
        response = await session.get(f"http://127.0.0.1:{server.port}/metrics")
        assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        assert "apisix_ingress_controller_apisix_requests" in await response.text()


async def test_busy_port_is_one_clear_line() -> None:
    async with make_server() as server:
        rival = make_server(port=server.port)
        with pytest.raises(ConfigError) as caught:
            await rival.listen()
    want = "another process listens there; stop it or set http.listen to a free port"
    assert str(caught.value) == f"http.listen: cannot listen on 127.0.0.1:{rival.port}: {want}"


@pytest.mark.parametrize("host", ["a..b", f"{'a' * 64}.example", "\udcff"])
async def test_a_host_that_no_name_can_be_is_one_clear_line(host: str) -> None:
    server = HttpServer(host, 8080, readiness=Readiness(), metrics=Metrics(pod="p", namespace="n"))
    with pytest.raises(ConfigError) as caught:
        await server.listen()
    want = "invalid host name; set http.listen to an address of this host"
    assert str(caught.value) == f"http.listen: cannot listen on {host}:8080: {want}"


async def test_address_of_another_host_is_one_clear_line() -> None:
    server = HttpServer("203.0.113.1", 8080, readiness=Readiness(), metrics=Metrics(pod="p", namespace="n"))
    with pytest.raises(ConfigError, match=r"203\.0\.113\.1:8080: .*set http\.listen to an address of this host"):
        await server.listen()


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00 hello\r\n\r\n",
        b"GET /healthz HTTP/9.9.9\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nno header\r\n\r\n",
        b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    ],
)
async def test_input_that_is_not_http_gets_a_response_and_is_not_logged_as_an_error(
    sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with structlog.testing.capture_logs() as events:
        async with make_server() as server:
            await server.serve()
            # aiohttp itself is quiet about some of it in the first request of a connection.
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
            assert await reader.readuntil(b"}") != b""
            writer.write(sent)
            got = await reader.read()
            writer.close()
            await writer.wait_closed()
    assert got.startswith(b"HTTP/1.0 400 Bad Request")
    assert caplog.records == []
    assert [(each["event"], each["log_level"]) for each in events] == [("http.malformed", "debug")]


async def test_handler_that_fails_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def install(self, app: web.Application) -> None:
            app.router.add_get("/broken", self.answer)

        async def answer(self, _request: web.Request) -> web.Response:
            raise KeyError("canary")

    metrics = Metrics(pod="pod-a", namespace="ingress")
    server = HttpServer("127.0.0.1", 0, readiness=Readiness(), metrics=metrics, pages=Broken())
    async with server, aiohttp.ClientSession(f"http://127.0.0.1:{server.port}") as session:
        await server.serve()
        response = await session.get("/broken")
        assert response.status == 500
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], KeyError)


async def test_stopped_server_frees_its_port_and_stops_twice() -> None:
    server = make_server()
    assert server.port == 0
    await server.listen()
    await server.serve()
    port = server.port
    await server.stop()
    await server.stop()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


async def test_a_server_that_is_cancelled_while_it_starts_frees_its_port() -> None:
    for steps in range(20):
        server = make_server()
        await server.listen()
        port, serve = server.port, asyncio.create_task(server.serve())
        for _ in range(steps):
            await asyncio.sleep(0)
        was_done = serve.done()
        serve.cancel()
        await asyncio.wait([serve])
        await server.stop()
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0, f"after {steps} steps"
    assert was_done


async def test_a_request_before_serving_waits_for_its_response() -> None:
    async with make_server() as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        await server.serve()
        assert (await reader.read()).startswith(b"HTTP/1.1 200 OK")
        writer.close()
        await writer.wait_closed()


async def test_a_server_that_never_served_frees_its_port() -> None:
    async with make_server() as server:
        port = server.port
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


async def test_half_open_connections_leave_room_for_probes() -> None:
    """4,000 clients send half a request: the oldest are closed, and probes are answered meanwhile."""
    server = HttpServer(
        "127.0.0.1", 0, readiness=Readiness(), metrics=Metrics(pod="p", namespace="n"), limits=Limits(connections=64)
    )
    async with client(server) as get, AsyncExitStack() as held:
        readers = []
        for number in range(1000):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            held.callback(writer.close)
            writer.write(b"GET /healthz HTTP/1.1\r\nHost:")
            readers.append(reader)
            if number % 100 == 99:
                assert await get("/healthz") == (200, {"status": "ok"})
        assert await asyncio.wait_for(readers[0].read(), 30) == b""


async def test_a_silent_connection_is_closed_and_an_active_one_is_not() -> None:
    clock = FakeClock()
    metrics = Metrics(pod="p", namespace="n")
    server = HttpServer("127.0.0.1", 0, readiness=Readiness(), metrics=metrics, clock=clock, limits=Limits(first=10))
    async with client(server) as get:
        task = asyncio.create_task(server.run())
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        assert await get("/healthz") == (200, {"status": "ok"})
        for _ in range(2):
            await clock.advance(11)
        assert await asyncio.wait_for(reader.read(), 30) == b""
        writer.close()
        assert await get("/healthz") == (200, {"status": "ok"})
        await cancel(task)


class SlowMetrics(Metrics):
    """Metrics that take two seconds to render."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(pod="pod-a", namespace="ingress")
        self.clock = clock
        self.began: list[float] = []

    def render(self) -> bytes:
        self.began.append(self.clock.monotonic())
        self.clock.shift(2)
        return b"metrics %d" % len(self.began)


async def test_requests_for_metrics_share_a_rendering_and_take_a_fifth_of_the_time() -> None:
    clock = FakeClock()
    metrics = SlowMetrics(clock)
    exposition = Exposition(metrics, clock)
    assert await exposition.text() == b"metrics 1"
    waiting = [asyncio.create_task(exposition.text()) for _ in range(5)]
    await clock.settle()
    assert not any(task.done() for task in waiting)
    await clock.advance(8)
    assert [task.result() for task in waiting] == [b"metrics 2"] * 5
    assert metrics.began == [1000, 1010]
