"""The transport of the Admin API: its failures are those of httpx, and connections are never reused by mistake."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest

from apisix_ingress.gateway.adminapi.transport import AiohttpTransport
from tests.unit.apisix_ingress.gateway.adminapi.transport.clients import answer, outcome
from tests.unit.apisix_ingress.gateway.adminapi.transport.servers import OK, Behaviour, read_request, serving

QUICK = httpx.Timeout(0.2)


PATIENT = httpx.Timeout(30)
"""A timeout for tests of other subjects: a busy machine may be slow."""


LARGE = b"x" * 40_000_000


async def close_after_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)


async def reset_after_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)
    reset(writer)


async def reset_at_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    reset(writer)


async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)
    await asyncio.sleep(60)


class Hanging:
    """Never responds; signals when a request has arrived, and keeps its connection."""

    def __init__(self) -> None:
        self.arrived = asyncio.Event()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        self.arrived.set()
        await asyncio.sleep(60)


async def take_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)


async def cut_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
    await writer.drain()


async def stall_in_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
    await writer.drain()
    await asyncio.sleep(60)


async def talk_nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)
    writer.write(b"what is HTTP?\r\n\r\n")
    await writer.drain()


async def answer_without_a_length(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)
    writer.write(b"HTTP/1.1 200 OK\r\n\r\nall of it")
    await writer.drain()


async def answer_twice(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)
    writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n" + OK)
    await writer.drain()


async def answer_in_chunks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)
    for piece in (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"3\r\nall\r\n6\r\n of it\r\n0\r\n\r\n"):
        writer.write(piece)
        await writer.drain()


def reset(writer: asyncio.StreamWriter) -> None:
    """Close with a TCP reset."""
    sock: socket.socket = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@contextlib.asynccontextmanager
async def both_clients(
    connections: int = 4, timeout: httpx.Timeout = PATIENT
) -> AsyncIterator[tuple[httpx.AsyncClient, ...]]:
    limits = httpx.Limits(max_connections=connections)
    plain = httpx.AsyncHTTPTransport(limits=limits, trust_env=False)
    async with (
        httpx.AsyncClient(transport=AiohttpTransport(connections=connections), timeout=timeout) as ours,
        httpx.AsyncClient(transport=plain, timeout=timeout) as theirs,
    ):
        yield ours, theirs


@pytest.mark.parametrize(
    ("behaviour", "body", "want"),
    [
        (answer, b"{}", "200"),
        (answer, b"", "200"),
        (answer, b"x" * 1_000_000, "200"),
        (answer_twice, b"{}", "200"),
        (close_after_request, b"{}", "RemoteProtocolError"),
        (reset_after_request, b"{}", "ReadError"),
        (reset_at_once, b"{}", "ReadError"),
        (say_nothing, b"{}", "ReadTimeout"),
        (stall_in_body, b"{}", "ReadTimeout"),
        (cut_body, b"{}", "RemoteProtocolError"),
        (talk_nonsense, b"{}", "RemoteProtocolError"),
    ],
)
@pytest.mark.parametrize("method", ["PUT", "POST"])
async def test_failure_is_the_one_of_plain_httpx(behaviour: Behaviour, body: bytes, want: str, method: str) -> None:
    timeout = QUICK if want.endswith("Timeout") else PATIENT
    async with serving(behaviour) as url, both_clients(timeout=timeout) as (ours, theirs):
        got = [await outcome(client, method, url, body) for client in (ours, theirs)]
    assert got == [want, want]


async def test_refused_connection_is_a_connect_error() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        async with both_clients() as (ours, theirs):
            got = [await outcome(client, "PUT", url) for client in (ours, theirs)]
    assert got == ["ConnectError", "ConnectError"]


async def test_an_unreachable_gateway_is_reported_in_plain_words(monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_such_name(*args: object, **kwargs: object) -> list[object]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{unused.getsockname()[1]}"
        async with both_clients() as (ours, _):
            with pytest.raises(httpx.ConnectError) as refused:
                await ours.put(f"http://{place}")
            monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", no_such_name)
            with pytest.raises(httpx.ConnectError) as unknown:
                await ours.put("http://gateway.invalid/")
    assert str(refused.value) == f"cannot connect to {place}: Connection refused"
    assert str(unknown.value) == "cannot resolve the host name gateway.invalid"


async def test_unknown_host_is_a_connect_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_such_name(*args: object, **kwargs: object) -> list[object]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", no_such_name)
    async with both_clients() as (ours, theirs):
        got = [await outcome(client, "PUT", "http://gateway.invalid/") for client in (ours, theirs)]
    assert got == ["ConnectError", "ConnectError"]


async def test_a_name_is_resolved_again_when_its_address_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = iter(("127.0.0.77", "127.0.0.1"))  # an address without a listener, and that of the gateway

    async def moving(host: str, port: int, **kwargs: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(addresses), port))]

    async with serving(answer) as url, both_clients() as (ours, _):
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", moving)
        url = url.replace("127.0.0.1", "gateway.example")
        assert [await outcome(ours, "PUT", url) for _ in range(3)] == ["ConnectError", "200", "200"]


@pytest.fixture
def full_backlog() -> Iterator[str]:
    """Yield the URL of a listener that accepts no more connections, so that connecting hangs."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


async def test_a_connection_that_is_not_established_is_a_connect_timeout(full_backlog: str) -> None:
    async with both_clients(timeout=QUICK) as (ours, theirs):
        got = [await outcome(client, "PUT", full_backlog) for client in (ours, theirs)]
    assert got == ["ConnectTimeout", "ConnectTimeout"]


async def test_a_request_for_which_no_connection_became_available_was_not_sent() -> None:
    hanging = Hanging()
    async with serving(hanging) as url, both_clients(connections=1) as (ours, _):
        holder = asyncio.create_task(ours.put(url))
        await hanging.arrived.wait()
        with pytest.raises(httpx.ConnectTimeout):
            await ours.put(url, timeout=httpx.Timeout(5, pool=0.1))
        holder.cancel()
        await asyncio.wait([holder])


async def test_kept_connection_that_the_server_closes_is_not_silently_used_again() -> None:
    requests = 0

    async def answer_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal requests
        await read_request(reader)
        requests += 1
        writer.write(OK)
        await read_request(reader)
        requests += 1

    async with serving(answer_once) as url, both_clients() as clients:
        got = [(await outcome(client, "PUT", url), await outcome(client, "PUT", url)) for client in clients]
    assert got == [("200", "RemoteProtocolError")] * 2
    assert requests == 4


async def test_an_unsolicited_response_is_not_used_for_the_next_request() -> None:
    answered, spoken = asyncio.Event(), asyncio.Event()

    async def speak_unasked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(OK)
        await answered.wait()
        writer.write(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
        spoken.set()
        await read_request(reader)

    async with serving(speak_unasked) as url, serving(answer) as other, both_clients() as (ours, _):
        first = await outcome(ours, "PUT", url)
        answered.set()
        await spoken.wait()
        await outcome(ours, "PUT", other)  # the data arrives during the response
        second = await outcome(ours, "PUT", url)
    assert (first, second) == ("200", "ReadError")


async def test_cancelled_request_leaves_the_pool_usable() -> None:
    hanging = Hanging()
    async with serving(hanging) as hung, serving(answer) as url, both_clients(connections=1) as (ours, _):
        task = asyncio.create_task(ours.put(hung, timeout=5))
        await hanging.arrived.wait()
        task.cancel()
        await asyncio.wait([task])
        got = await outcome(ours, "PUT", url)
    assert task.cancelled()
    assert got == "200"


async def test_refusal_of_a_large_body_is_read_before_all_of_it_is_sent() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(60)

    transport = AiohttpTransport(connections=1)
    async with serving(refuse) as url:
        response = await transport.handle_async_request(httpx.Request("PUT", f"{url}/large", content=LARGE))
        assert response.status_code == 413
        again = await transport.handle_async_request(httpx.Request("PUT", f"{url}/large", content=b"{}"))
        assert again.status_code == 413, "a connection on which half a request was written must not be used again"
    await transport.aclose()


async def test_the_rest_of_a_body_is_not_sent_after_its_request_was_given_up() -> None:
    given_up, received = asyncio.Event(), asyncio.get_running_loop().create_future()

    async def take_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await given_up.wait()
        received.set_result(len(await reader.read(-1)))

    transport = AiohttpTransport(connections=1)
    async with serving(take_late) as url:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await transport.handle_async_request(httpx.Request("PUT", url, content=LARGE))
        given_up.set()
        assert await received < len(LARGE)
    await transport.aclose()


async def test_a_compressed_response_is_not_decompressed() -> None:
    async def compress(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope")

    transport = AiohttpTransport(connections=1)
    async with serving(compress) as url:
        response = await transport.handle_async_request(httpx.Request("GET", url))
    await transport.aclose()
    assert await response.aread() == b"nope"


async def test_request_and_reply_arrive_whole() -> None:
    seen = []

    async def record(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await read_request(reader))
        head = b"HTTP/1.1 404 Not Found\r\nServer: APISIX/3.13.0\r\nContent-Length: 4\r\n\r\nnope"
        writer.write(head)

    async with serving(record) as url, both_clients() as (ours, _):
        reply = await ours.put(f"{url}/a%2Fb?x=1", content=b'{"a":1}', headers={"X-API-KEY": "k"})
    head, body = seen[0]
    assert head.startswith(b"PUT /a%2Fb?x=1 HTTP/1.1\r\n")
    assert b"\r\nx-api-key: k\r\n" in head.lower()
    assert body == b'{"a":1}'
    assert (reply.status_code, reply.headers["server"], reply.content) == (404, "APISIX/3.13.0", b"nope")


@pytest.mark.parametrize("behaviour", [answer_without_a_length, answer_in_chunks])
@pytest.mark.parametrize("size", [2, 100_000])
async def test_a_response_is_complete_however_its_end_is_signalled(behaviour: Behaviour, size: int) -> None:
    async with serving(behaviour) as url, both_clients() as clients:
        got = [(await client.put(url, content=b"x" * size)).content for client in clients]
    assert got == [b"all of it", b"all of it"]


@pytest.mark.parametrize("header", [("X-API-KEY", "k\r\nX: y"), ("X-API-KEY\n", "k"), ("X", "y\0")])
async def test_a_header_that_would_end_a_line_is_not_sent(header: tuple[str, str]) -> None:
    async with serving(answer) as url:
        transport = AiohttpTransport(connections=1)
        with pytest.raises(httpx.LocalProtocolError):
            await transport.handle_async_request(httpx.Request("PUT", url, headers=[header], content=b"{}"))
        await transport.aclose()


@pytest.mark.parametrize("url", ["ftp://gateway", "http://", "gateway/routes"])
async def test_an_invalid_address_is_distinguished_from_an_unreachable_gateway(url: str) -> None:
    transport = AiohttpTransport(connections=1)
    with pytest.raises(httpx.UnsupportedProtocol):
        await transport.handle_async_request(httpx.Request("PUT", url, content=b"{}"))
    await transport.aclose()
