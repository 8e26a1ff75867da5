"""Connections to the API server end when we say so."""

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
        config = {
            "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
            "clusters": [{"name": "x", "cluster": cluster}],
            "users": [{"name": "x", "user": {"token": "t"}}],
        }
        (tmp_path / "config").write_text(yaml.safe_dump(config))
        transport = Transport(Kubeconfig(str(tmp_path / "config"), clock=MonotonicClock()), clock=MonotonicClock())
        await transport.open()
        request = Request("GET", "/watch", aiohttp.ClientTimeout(total=30), watch=True)
        async with transport.exchange(request) as response:
            assert await response.content.readline() == b"{}\n"
            assert response.connection is not None
            assert response.connection.transport is not None
            socket = response.connection.transport.get_extra_info("socket")
        await transport.close()
        await asyncio.sleep(0)
        assert socket.fileno() == -1
        left.set()
