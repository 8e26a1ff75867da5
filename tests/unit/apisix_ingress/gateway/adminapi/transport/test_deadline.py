"""A process may be frozen between checking its lease and writing: the write must not be sent afterwards."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

import httpx
import pytest

from apisix_ingress.gateway.adminapi.transport import AiohttpTransport
from tests.unit.apisix_ingress.gateway.adminapi.transport.servers import OK, read_request, serving


@contextlib.asynccontextmanager
async def recording() -> AsyncIterator[tuple[AiohttpTransport, str, list[bytes]]]:
    """Serve; yield a transport, the URL, and the paths of the complete requests."""
    paths: list[bytes] = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head, _ = await read_request(reader)
            paths.append(head.split()[1])
            writer.write(OK)
            await writer.drain()

    transport = AiohttpTransport(connections=2)
    async with serving(note) as url:
        try:
            yield transport, url, paths
        finally:
            await transport.aclose()


def put(url: str, body: bytes, seconds: float) -> httpx.Request:
    deadline = asyncio.get_running_loop().time() + seconds
    return httpx.Request("PUT", url, content=body, extensions={"deadline": deadline})


@pytest.mark.parametrize("size", [0, 10, 100_000])
async def test_request_is_not_sent_after_its_deadline(size: int) -> None:
    async with recording() as (transport, url, paths):
        with pytest.raises(httpx.PoolTimeout):
            await transport.handle_async_request(put(f"{url}/late", b"x" * size, -0.001))
        await transport.handle_async_request(put(f"{url}/in-time", b"x" * size, 60))
    assert paths == [b"/in-time"]


@pytest.mark.parametrize("size", [0, 10, 100_000])
async def test_process_that_was_frozen_while_it_connected_does_not_send(size: int) -> None:
    async with recording() as (transport, url, paths):
        sending = asyncio.create_task(transport.handle_async_request(put(f"{url}/late", b"x" * size, 0.05)))
        await asyncio.sleep(0)  # the connection is being established
        time.sleep(0.1)  # noqa: ASYNC251  # the freeze
        with pytest.raises(httpx.TransportError):
            await sending
        await transport.handle_async_request(put(f"{url}/last", b"{}", 60))
    assert paths == [b"/last"]


@pytest.mark.parametrize("size", [10, 100_000])
async def test_process_that_was_frozen_does_not_send_the_body_that_it_was_about_to_send(size: int) -> None:
    async with recording() as (transport, url, paths):
        await transport.handle_async_request(put(f"{url}/first", b"{}", 60))
        sending = asyncio.create_task(transport.handle_async_request(put(f"{url}/late", b"x" * size, 0.05)))
        await asyncio.sleep(0)  # the kept connection was obtained; head and body are written in the next step
        time.sleep(0.1)  # noqa: ASYNC251  # the freeze
        with pytest.raises(httpx.TransportError):
            await sending
        await transport.handle_async_request(put(f"{url}/last", b"{}", 60))
    assert paths == [b"/first", b"/last"]
