"""One small request over a connection of aiohttp's pool, written in the moment in which it is decided to be sent.

aiohttp's session prepares for cookies, redirects, sign-in, proxies and streams, and has a task of its own write the
body, a turn of the event loop later. Its pool, its TLS and its parser of replies do the work here as well. What an
error means is known to `transport`.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import HttpProcessingError, RawResponseMessage
from aiohttp.streams import StreamReader
from yarl import URL

_SWITCHING = 101
_KEPT = 2**16


@dataclass(frozen=True, slots=True)
class Small:
    """A request of which all goes into the socket's buffer at once.

    Attributes:
        target: What is asked for, with the server.
        headers: Names and values; `Host` and `Content-Length` are added where they are missing.
        body: Empty: it has none.
        timeout: Bounds of a new connection, and of the silence of the server.
        check: Called just before it is written; what it raises ends the request unsent.
    """

    method: str
    target: URL
    headers: Sequence[tuple[str, str]]
    body: bytes
    timeout: aiohttp.ClientTimeout
    check: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Answer:
    """The head of a reply, and as much of its body as was read."""

    head: RawResponseMessage
    body: bytes
    is_cut: bool


class RawConnection:
    """Requests over the connections of a pool.

    Args:
        connector: The pool.
    """

    def __init__(self, connector: aiohttp.BaseConnector) -> None:
        self._connector = connector
        # The pool asks a request where it goes to, and nothing else: one serves for all to the same place.
        self._origin: tuple[str, str, ssl.SSLContext | bool] = ("", "", True)
        self._to: aiohttp.ClientRequest | None = None

    async def send(self, small: Small, tls: ssl.SSLContext | bool, most: Callable[[int], int]) -> Answer:
        """Send a request and read the reply.

        Args:
            small: The request.
            tls: For https.
            most: Status → bytes of the body that are read at most; with more the connection is closed.

        Raises:
            aiohttp.ClientError, TimeoutError, OSError: There is no reply, or not all of it.
            ValueError: It can't be written as HTTP.
        """
        head = _head(small)
        connection = await self._connect(small, tls)
        try:
            found = await _converse(connection, small, head, most)
        except BaseException:
            connection.close()
            raise
        (connection.close if found.is_cut else connection.release)()
        return found

    async def _connect(self, small: Small, tls: ssl.SSLContext | bool) -> aiohttp.connector.Connection:
        to = self._request_to(small.target, tls)
        try:
            return await self._connector.connect(to, [], small.timeout)
        except aiohttp.ConnectionTimeoutError:
            raise
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError(f"Connection timeout to host {small.target}") from error

    def _request_to(self, target: URL, tls: ssl.SSLContext | bool) -> aiohttp.ClientRequest:
        origin = (target.scheme, target.raw_authority, tls)
        if self._to is None or self._origin != origin:
            self._to, self._origin = aiohttp.ClientRequest("GET", target, ssl=tls), origin
        return self._to


async def _converse(
    connection: aiohttp.connector.Connection, small: Small, head: bytes, most: Callable[[int], int]
) -> Answer:
    protocol = connection.protocol
    if protocol is None or protocol.transport is None or protocol.transport.is_closing():
        raise aiohttp.ClientConnectionResetError("Cannot write to closing transport")
    if protocol.should_close:
        # A reply to nothing, such as a 408 on a kept connection, would be taken for the one to this request.
        raise aiohttp.ClientConnectionResetError("the server spoke before it was asked")
    # A reply that does not say how long it is ends with the connection.
    protocol.set_response_params(read_until_eof=True, auto_decompress=False, read_timeout=small.timeout.sock_read)
    small.check()
    protocol.transport.write(head + small.body)
    protocol.start_timeout()
    try:
        message, stream = await _reply(protocol)
        return Answer(message, *await read_up_to(stream, most(message.code)))
    except HttpProcessingError as error:
        raise aiohttp.ClientPayloadError(error.message) from error


async def read_up_to(stream: StreamReader, most: int) -> tuple[bytes, bool]:
    """Return a body and False; or its first 64 KiB at most and True, if there are more bytes than so many."""
    pieces, size = list[bytes](), 0
    while piece := await stream.readany():
        size += len(piece)
        pieces.append(piece)
        if size > most:
            return _beginning(pieces, min(most, _KEPT)), True
    return b"".join(pieces), False


def _beginning(pieces: Iterable[bytes], most: int) -> bytes:
    """Return the first bytes of a body; the rest, which may be large, is not put together."""
    begun = bytearray()
    for piece in pieces:
        begun += piece
        if len(begun) >= most:
            break
    return bytes(begun[:most])


async def _reply(protocol: ResponseHandler) -> tuple[RawResponseMessage, StreamReader]:
    """Return the head of the reply, without those that only say that one will come, and the stream of its body."""
    while True:
        message, stream = await protocol.read()
        if not 100 <= message.code < 200 or message.code == _SWITCHING:
            return message, stream


def _head(small: Small) -> bytes:
    lines = [f"{small.method} {small.target.raw_path_qs} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in small.headers]
    names = {name.lower() for name, _ in small.headers}
    if "host" not in names:
        lines.append(f"Host: {small.target.host_port_subcomponent}")
    if "content-length" not in names and (small.body or small.method != "GET"):
        lines.append(f"Content-Length: {len(small.body)}")
    text = "\r\n".join((*lines, "", ""))
    if not text.count("\r") == text.count("\n") == len(lines) + 1 or "\0" in text:
        raise ValueError("a line of the request holds a line end, or a NUL")
    return text.encode()
