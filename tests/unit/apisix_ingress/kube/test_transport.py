"""Connections to the API server: used again, and ended when we say so."""

import asyncio
import ssl
from pathlib import Path

import aiohttp
import yaml
from trustme import CA

from apisix_ingress.kube.credentials import Kubeconfig
from apisix_ingress.kube.transport import Request, Transport
from apisix_ingress.runtime.clock import MonotonicClock

HOST = "127.0.0.1"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{}\n\r\n"
LIMITS = aiohttp.ClientTimeout(total=30)


def make_transport(folder: Path, cluster: dict[str, str]) -> Transport:
    config = {
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "clusters": [{"name": "x", "cluster": cluster}],
        "users": [{"name": "x", "user": {"token": "t"}}],
    }
    (folder / "config").write_text(yaml.safe_dump(config))
    return Transport(Kubeconfig(str(folder / "config"), clock=MonotonicClock()), clock=MonotonicClock())


async def test_a_watch_that_is_left_is_cut_though_the_server_says_no_goodbye(tmp_path: Path) -> None:
    left = asyncio.Event()

    async def begin_and_fall_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer with the first line of a watch, then read nothing more, not even the end of the connection."""
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


async def test_a_request_goes_over_the_connection_of_the_one_before(tmp_path: Path) -> None:
    heads: list[list[str]] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append([])
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                heads[-1].append(head.decode().partition(" HTTP/")[0])
                writer.write(HEAD + b"0\r\n\r\n")
        except asyncio.IncompleteReadError:
            writer.close()

    async with await asyncio.start_server(answer, HOST, 0) as server:
        transport = make_transport(tmp_path, {"server": f"http://{HOST}:{server.sockets[0].getsockname()[1]}"})
        await transport.open()
        for request in (Request("GET", "/a", LIMITS), Request("GET", "/b", LIMITS, [("fieldSelector", "x=a/b&c")])):
            async with transport.exchange(request) as response:
                assert await response.read() == b"{}\n"
        await transport.close()
    assert heads == [["GET /a", "GET /b?fieldSelector=x%3Da/b%26c"]]
