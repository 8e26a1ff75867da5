"""One HTTP request over a connection of aiohttp's pool, written in the same step that decides to send it.

aiohttp's session also handles cookies, redirects, authentication, proxies and streams, and writes the body in a
separate task, one turn of the event loop later. Only its pool, TLS and response parser are used here. Callers interpret
the errors.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import HttpProcessingError, RawResponseMessage, StreamWriter
from aiohttp.streams import StreamReader
from yarl import URL

_SWITCHING = 101
_KEPT = 2**16
_FIRST_WRITE = 32 * 1024
_PIECE = 128 * 1024


class WriteStalled(Exception):
    """The rest of a body was not sent: the peer stopped reading, or the deadline passed."""


class RawRequest(NamedTuple):
    """A request. The head is written together with the first `_FIRST_WRITE` bytes of the body.

    Attributes:
        target: The URL.
        headers: Names and values; `Host` and `Content-Length` are added if they are missing.
        body: Empty means no body.
        timeout: Limits for a new connection and for the time without a byte from the server.
        stall: Seconds that the peer may take to accept one piece of a larger body; None: no limit.
        check: Called just before the head is written, and before each further piece of the body. If it raises before
            the head, nothing is sent.
    """

    method: str
    target: URL
    headers: Sequence[tuple[str, str]]
    body: bytes
    timeout: aiohttp.ClientTimeout
    stall: float | None
    check: Callable[[], None]


class Answer(NamedTuple):
    """The head of a reply, and its body or the beginning of it.

    Attributes:
        is_cut: Whether the body is incomplete.
        is_early: Whether the reply arrived before the whole request was written.
    """

    head: RawResponseMessage
    body: bytes
    is_cut: bool
    is_early: bool = False


class RawConnection:
    """Requests over the connections of a pool.

    Args:
        connector: The pool.
    """

    def __init__(self, connector: aiohttp.BaseConnector) -> None:
        self._connector = connector
        # The pool reads only the destination of a request, so one request object serves for all to the same origin.
        self._origin: tuple[str, str, ssl.SSLContext | bool] = ("", "", True)
        self._to: aiohttp.ClientRequest | None = None

    async def send(self, request: RawRequest, tls: ssl.SSLContext | bool, most: Callable[[int], int]) -> Answer:
        """Send a request and read the reply.

        Args:
            request: The request.
            tls: For https.
            most: Status → the maximum number of bytes to read of the body; the connection is closed if there are more.

        Raises:
            aiohttp.ClientError, TimeoutError, OSError, WriteStalled: There is no complete reply.
            ValueError: The request cannot be written as HTTP.
        """
        head = _head(request)
        connection = await self._connect(request, tls)
        try:
            found = await _converse(connection, request, head, most)
        except BaseException:
            _abort(connection)
            raise
        if found.is_cut or found.is_early:
            _abort(connection)
        else:
            connection.release()
        return found

    async def _connect(self, request: RawRequest, tls: ssl.SSLContext | bool) -> aiohttp.connector.Connection:
        to = self._request_to(request.target, tls)
        try:
            return await self._connector.connect(to, [], request.timeout)
        except aiohttp.ConnectionTimeoutError:
            raise
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError(f"Connection timeout to host {request.target}") from error

    def _request_to(self, target: URL, tls: ssl.SSLContext | bool) -> aiohttp.ClientRequest:
        origin = (target.scheme, target.raw_authority, tls)
        if self._to is None or self._origin != origin:
            self._to, self._origin = aiohttp.ClientRequest("GET", target, ssl=tls), origin
        return self._to


def _abort(connection: aiohttp.connector.Connection) -> None:
    """Close a connection without sending what is still in the transport's buffer: closing alone would flush it."""
    if connection.protocol is not None:
        connection.protocol.abort()
    connection.close()


async def _converse(
    connection: aiohttp.connector.Connection, request: RawRequest, head: bytes, most: Callable[[int], int]
) -> Answer:
    protocol = connection.protocol
    if protocol is None or protocol.transport is None or protocol.transport.is_closing():
        raise aiohttp.ClientConnectionResetError("Cannot write to closing transport")
    if protocol.should_close:
        # An unsolicited response on an idle connection, such as a 408, would be read as the reply to this request.
        raise aiohttp.ClientConnectionResetError("the server sent a response before the request")
    # Without a Content-Length the body of a reply ends when the connection is closed.
    protocol.set_response_params(read_until_eof=True, auto_decompress=False, read_timeout=request.timeout.sock_read)
    request.check()
    protocol.transport.write(head + request.body[:_FIRST_WRITE])
    try:
        if len(request.body) <= _FIRST_WRITE:
            protocol.start_timeout()
            return await _answer(protocol, most)
        return await _answer_while_writing(protocol, request, most)
    except HttpProcessingError as error:
        raise aiohttp.ClientPayloadError(error.message) from error


async def _answer(protocol: ResponseHandler, most: Callable[[int], int]) -> Answer:
    message, stream = await _reply(protocol)
    return Answer(message, *await read_up_to(stream, most(message.code)))


async def _answer_while_writing(protocol: ResponseHandler, request: RawRequest, most: Callable[[int], int]) -> Answer:
    """Write the rest of a large body while reading the reply: a server may reject it before it has received all."""
    try:
        async with asyncio.TaskGroup() as group:
            writing = group.create_task(_write_rest(protocol, request), name="request-body")
            found = await _answer(protocol, most)
            is_early = not writing.done()
            writing.cancel()
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return found._replace(is_early=is_early)


async def _write_rest(protocol: ResponseHandler, request: RawRequest) -> None:
    """Write the body from `_FIRST_WRITE` on, each piece once the peer has accepted the previous one.

    Raises:
        WriteStalled: The peer does not accept a piece, or `check` raised. A lost connection is reported by the reader.
    """
    writer, rest = StreamWriter(protocol, asyncio.get_running_loop()), memoryview(request.body)[_FIRST_WRITE:]
    try:
        for start in range(0, len(rest), _PIECE):
            async with asyncio.timeout(request.stall):
                await writer.drain()
            request.check()
            if protocol.transport is None:
                return
            protocol.transport.write(rest[start : start + _PIECE])
        async with asyncio.timeout(request.stall):
            await writer.drain()
    except ConnectionError:
        return
    except TimeoutError:
        raise WriteStalled("the server stopped reading the request") from None
    except Exception as error:
        raise WriteStalled(f"the request was not sent completely: {error}") from error
    protocol.start_timeout()


async def read_up_to(stream: StreamReader, most: int) -> tuple[bytes, bool]:
    """Return a body and False; if it is longer than `most`, its first 64 KiB at most and True."""
    pieces, size = list[bytes](), 0
    while piece := await stream.readany():
        size += len(piece)
        pieces.append(piece)
        if size > most:
            return _beginning(pieces, min(most, _KEPT)), True
    return b"".join(pieces), False


def _beginning(pieces: Iterable[bytes], most: int) -> bytes:
    """Return the first bytes of a body without joining the rest, which may be large."""
    begun = bytearray()
    for piece in pieces:
        begun += piece
        if len(begun) >= most:
            break
    return bytes(begun[:most])


async def _reply(protocol: ResponseHandler) -> tuple[RawResponseMessage, StreamReader]:
    """Return the head of the final reply, skipping interim ones such as 100, and the stream of its body."""
    while True:
        message, stream = await protocol.read()
        if not 100 <= message.code < 200 or message.code == _SWITCHING:
            return message, stream


def _head(request: RawRequest) -> bytes:
    lines = [f"{request.method} {request.target.raw_path_qs} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in request.headers]
    names = {name.lower() for name, _ in request.headers}
    if "host" not in names:
        lines.append(f"Host: {request.target.host_port_subcomponent}")
    if "content-length" not in names and (request.body or request.method != "GET"):
        lines.append(f"Content-Length: {len(request.body)}")
    text = "\r\n".join((*lines, "", ""))
    if not text.count("\r") == text.count("\n") == len(lines) + 1 or "\0" in text:
        raise ValueError("the request line or a header contains a line break or NUL")
    return text.encode()
