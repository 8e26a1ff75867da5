"""The allocator of the C library."""

import asyncio
import platform
from asyncio import selector_events, sslproto

import pytest

from apisix_ingress.startup import allocator
from apisix_ingress.startup.allocator import keep_large_blocks_apart, read_small_pieces


def test_glibc_can_keep_large_blocks_apart() -> None:
    assert keep_large_blocks_apart() or platform.libc_ver()[0] != "glibc"


@pytest.fixture
def _restored(monkeypatch: pytest.MonkeyPatch) -> None:
    for reader in (sslproto.SSLProtocol, getattr(selector_events, "_SelectorTransport")):  # noqa: B009
        monkeypatch.setattr(reader, "max_size", 256 * 1024)


@pytest.mark.usefixtures("_restored")
async def test_no_read_of_a_socket_allocates_a_large_block() -> None:
    assert read_small_pieces()
    pieces: list[int] = []
    ended = asyncio.Event()

    class Reader(asyncio.Protocol):
        def data_received(self, data: bytes) -> None:
            pieces.append(len(data))

        def connection_lost(self, exc: Exception | None) -> None:
            ended.set()

    server = await asyncio.get_running_loop().create_server(Reader, "127.0.0.1", 0)
    async with server:
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(bytes(500_000))
        writer.close()
        await writer.wait_closed()
        await ended.wait()
    assert sum(pieces) == 500_000
    assert max(pieces) < allocator._LARGE


def test_an_unsupported_asyncio_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(selector_events, "_SelectorTransport")
    monkeypatch.setattr(sslproto.SSLProtocol, "max_size", 256 * 1024)
    assert not read_small_pieces()
