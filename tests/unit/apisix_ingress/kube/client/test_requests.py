"""Connections to the API server: reused, and closed on request."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
import yaml
from trustme import CA

from apisix_ingress.kube.client.credentials import Kubeconfig
from apisix_ingress.kube.client.requests import REREAD_SECONDS, Request, Transport
from apisix_ingress.runtime.clock import Clock, MonotonicClock
from tests.fakes.clock import FakeClock

HOST = "127.0.0.1"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{}\n\r\n"
LIMITS = aiohttp.ClientTimeout(total=30)


def write_config(folder: Path, cluster: dict[str, str]) -> str:
    config = {
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "clusters": [{"name": "x", "cluster": cluster}],
        "users": [{"name": "x", "user": {"token": "t"}}],
    }
    (folder / "config").write_text(yaml.safe_dump(config))
    return str(folder / "config")


def make_transport(folder: Path, cluster: dict[str, str], clock: Clock | None = None) -> Transport:
    clock = clock or MonotonicClock()
    return Transport(Kubeconfig(write_config(folder, cluster), clock=clock), clock=clock)


async def test_an_abandoned_watch_is_closed_without_waiting_for_the_server(tmp_path: Path) -> None:
    left = asyncio.Event()

    async def begin_and_fall_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Respond with the first line of a watch, then stop reading, even the end of the connection."""
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD)
        writer.transport.pause_reading()  # type: ignore[attr-defined]  # of a transport that reads
        try:
            await left.wait()
        finally:
            writer.transport.abort()

    authority = CA()
    (tmp_path / "ca.crt").write_bytes(authority.cert_pem.bytes())
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(HOST).configure_cert(tls)
    async with await asyncio.start_server(begin_and_fall_silent, HOST, 0, ssl=tls) as server:
        port = server.sockets[0].getsockname()[1]
        cluster = {"server": f"https://{HOST}:{port}", "certificate-authority": str(tmp_path / "ca.crt")}
        transport = make_transport(tmp_path, cluster)
        await transport.open()
        request = Request("GET", "/watch", LIMITS)
        async with transport.exchange(request) as response:
            assert await response.content.readline() == b"{}\n"
            assert response.connection is not None
            assert response.connection.transport is not None
            socket = response.connection.transport.get_extra_info("socket")
        await transport.close()
        await asyncio.sleep(0)
        assert socket.fileno() == -1
        left.set()


class OneServer:
    """Responds to each request with an empty object, and records the request lines by connection."""

    def __init__(self) -> None:
        self.heads: list[list[str]] = []

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heads.append(heads := [])
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                heads.append(head.decode().partition(" HTTP/")[0])
                if size := re.search(rb"Content-Length: (\d+)", head):
                    await reader.readexactly(int(size[1]))
                writer.write(HEAD + b"0\r\n\r\n")
        except asyncio.IncompleteReadError:
            writer.close()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[dict[str, str]]:
        """Listen; yield the cluster of a kubeconfig."""
        async with await asyncio.start_server(self.answer, HOST, 0) as server:
            yield {"server": f"http://{HOST}:{server.sockets[0].getsockname()[1]}"}


async def ask(transport: Transport, request: Request) -> None:
    async with transport.exchange(request) as response:
        assert await response.read() == b"{}\n"


async def test_a_request_reuses_the_connection_of_the_previous_one(tmp_path: Path) -> None:
    server = OneServer()
    async with server.running() as cluster:
        transport = make_transport(tmp_path, cluster)
        await transport.open()
        await ask(transport, Request("GET", "/a", LIMITS))
        await ask(transport, Request("GET", "/b", LIMITS, [("fieldSelector", "x=a/b&c")]))
        await transport.close()
    assert server.heads == [["GET /a", "GET /b?fieldSelector=x%3Da/b%26c"]]


async def test_a_patch_uses_the_connections_of_other_requests_and_their_credentials(tmp_path: Path) -> None:
    server = OneServer()
    async with server.running() as cluster:
        transport = make_transport(tmp_path, cluster)
        await transport.open()
        await ask(transport, Request("GET", "/a", LIMITS))
        patch = Request("PATCH", "/b", LIMITS, [("fieldManager", "x")], {"Content-Type": "application/x"}, {"a": 1})
        reply = await transport.fetch(patch)
        assert (reply.status, reply.headers["Content-Type"], reply.body) == (200, "application/json", b"{}\n")
        assert (await transport.fetch(Request("GET", "/c", LIMITS))).body == b"{}\n"
        await transport.close()
    assert server.heads == [["GET /a", "PATCH /b?fieldManager=x", "GET /c"]]


async def test_no_request_uses_the_previous_server_while_its_connections_close(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closing, closed, clock, before, after = asyncio.Event(), asyncio.Event(), FakeClock(), OneServer(), OneServer()
    close = aiohttp.ClientSession.close

    async def close_slowly(session: aiohttp.ClientSession) -> None:
        closing.set()
        await closed.wait()
        await close(session)

    monkeypatch.setattr(aiohttp.ClientSession, "close", close_slowly)
    async with before.running() as old, after.running() as new:
        transport = make_transport(tmp_path, old, clock)
        await transport.open()
        write_config(tmp_path, new)
        clock.shift(REREAD_SECONDS)
        first = asyncio.create_task(ask(transport, Request("GET", "/first", LIMITS)))
        await closing.wait()
        await ask(transport, Request("GET", "/meanwhile", LIMITS))
        closed.set()
        await first
        await transport.close()
    assert (before.heads, after.heads) == ([], [["GET /meanwhile", "GET /first"]])
