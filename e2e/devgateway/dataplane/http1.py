"""HTTP/1.1 on asyncio streams: reads and writes messages unchanged; no routing, no policy.

The data plane must forward raw paths, unknown methods and upgrades untouched, which is why no web framework is used.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from http import HTTPStatus

Headers = list[tuple[str, str]]

HEAD_LIMIT = 64 * 1024
BODY_LIMIT = 64 * 1024 * 1024
IDLE_TIMEOUT = 75.0
REASONS = {status.value: status.phrase for status in HTTPStatus} | {302: "Moved Temporarily"}


class BadMessage(Exception):
    """The received data is not HTTP/1.1."""


@dataclass(slots=True)
class Message:
    """The head of a message: the start line split in three, and the headers in their order and spelling."""

    start: tuple[str, str, str]
    headers: Headers

    def get(self, name: str) -> str | None:
        """Return the first value of a header, or None."""
        lower = name.lower()
        for key, value in self.headers:
            if key.lower() == lower:
                return value
        return None

    def has_token(self, name: str, token: str) -> bool:
        """Return whether a comma-separated header names `token`."""
        return token in (self.get(name) or "").lower().replace(" ", "").split(",")


@dataclass(slots=True)
class Request(Message):
    """A request with its body read.

    Attributes:
        body: The whole body.
        peer: The client's address.
        local_address: The address that the client connected to.
        local_port: The port that the client connected to.
        secure: Whether it was received by a TLS listener.
        server_name: The server name of the handshake.
        has_certificate: Whether the client has a verified certificate.
    """

    body: bytes = b""
    peer: str = ""
    local_address: str = ""
    local_port: int = 0
    secure: bool = False
    server_name: str | None = None
    has_certificate: bool = False

    @property
    def method(self) -> str:
        return self.start[0]

    @property
    def target(self) -> str:
        return self.start[1]

    @property
    def keep_alive(self) -> bool:
        if self.has_token("connection", "close"):
            return False
        return self.start[2] != "HTTP/1.0" or self.has_token("connection", "keep-alive")


async def read_head(reader: asyncio.StreamReader) -> Message | None:
    """Read one head; None if the connection was closed before it; raises BadMessage."""
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial.strip():
            raise BadMessage("the head is cut short") from error
        return None
    except asyncio.LimitOverrunError as error:
        raise BadMessage("the head is too long") from error
    lines = raw.decode("latin-1").lstrip("\r\n").split("\r\n")
    start = lines[0].split(" ", 2)
    if len(start) != 3 and not (len(start) == 2 and start[0].startswith("HTTP/")):
        raise BadMessage(f"bad start line {lines[0]!r}")
    headers = []
    for line in lines[1:]:
        if line:
            name, colon, value = line.partition(":")
            if not colon:
                raise BadMessage(f"bad header line {line!r}")
            headers.append((name, value.strip()))
    return Message((start[0], start[1], start[2] if len(start) == 3 else ""), headers)


async def iter_body(reader: asyncio.StreamReader, head: Message, *, until_close: bool = False) -> AsyncIterator[bytes]:
    """Yield a message's body in pieces as they arrive; raises BadMessage if it ends early."""
    try:
        if head.has_token("transfer-encoding", "chunked"):
            while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
                yield await reader.readexactly(size)
                await reader.readexactly(2)
            while (await reader.readuntil(b"\r\n")) != b"\r\n":
                pass
        elif (length := head.get("content-length")) is not None:
            remaining = int(length)
            while remaining:
                piece = await reader.read(min(remaining, 65536))
                if not piece:
                    raise BadMessage("the body is cut short")
                remaining -= len(piece)
                yield piece
        elif until_close:
            while piece := await reader.read(65536):
                yield piece
    except (ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        raise BadMessage("the body is broken") from error


async def read_body(reader: asyncio.StreamReader, head: Message) -> bytes:
    """Read a whole body; raises BadMessage if it is malformed or exceeds the limit."""
    pieces: list[bytes] = []
    size = 0
    async for piece in iter_body(reader, head):
        size += len(piece)
        if size > BODY_LIMIT:
            raise BadMessage("the body is too large")
        pieces.append(piece)
    return b"".join(pieces)


def encode_head(start: str, headers: Iterable[tuple[str, str]]) -> bytes:
    """Return a head as bytes."""
    lines = [start, *(f"{name}: {value}" for name, value in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


class Connection:
    """One client connection, over which a handler sends responses."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.requests = 0
        self.open = True

    async def respond(self, status: int, headers: Headers, body: bytes = b"", *, head_only: bool = False) -> None:
        """Send a complete response with its length; one without a body may have the length that a body would have."""
        named = any(name.lower() == "content-length" for name, _ in headers)
        length = [] if named or status in (204, 304) else [("Content-Length", str(len(body)))]
        self.writer.write(self._head(status, headers + length) + (b"" if head_only else body))
        await self.writer.drain()

    async def stream(self, status: int, headers: Headers, body: AsyncIterator[bytes]) -> None:
        """Send a response in pieces: chunked, unless its headers contain the length."""
        chunked = all(name.lower() != "content-length" for name, _ in headers)
        coding = [("Transfer-Encoding", "chunked")] if chunked else []
        self.writer.write(self._head(status, headers + coding))
        async for piece in body:
            self.writer.write(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
            await self.writer.drain()
        if chunked:
            self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()

    def _head(self, status: int, headers: Headers) -> bytes:
        connection = ("Connection", "keep-alive" if self.open else "close")
        return encode_head(f"HTTP/1.1 {status} {REASONS.get(status, '')}".rstrip(), [*headers, connection])

    def abort(self) -> None:
        """Reset the connection."""
        self.open = False
        transport = self.writer.transport
        if isinstance(transport, asyncio.Transport):
            transport.abort()


Handler = Callable[[Request, Connection], Awaitable[None]]
Refuse = Callable[[Connection], Awaitable[None]]


@dataclass(slots=True)
class Server:
    """Serves one listener; `refuse` responds to data that is not HTTP."""

    handler: Handler
    refuse: Refuse
    secure: bool = False
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _server: asyncio.Server | None = None

    async def start(self, host: str, port: int, context: ssl.SSLContext | None = None) -> None:
        """Listen; raises OSError if the address is taken."""
        self._server = await asyncio.start_server(self._accept, host, port, ssl=context, limit=HEAD_LIMIT, backlog=1024)

    async def close(self) -> None:
        """Stop listening and end the open connections."""
        if self._server is None:
            return
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        connection = Connection(reader, writer)
        try:
            await self._serve(connection)
        except (OSError, ssl.SSLError, asyncio.CancelledError):
            connection.abort()
        finally:
            writer.close()
            with contextlib.suppress(OSError, ssl.SSLError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _serve(self, connection: Connection) -> None:
        while connection.open:
            try:
                request = await self._read(connection)
            except BadMessage:
                connection.open = False
                await self.refuse(connection)
                return
            if request is None:
                return
            connection.requests += 1
            connection.open = request.keep_alive
            await self.handler(request, connection)

    async def _read(self, connection: Connection) -> Request | None:
        try:
            async with asyncio.timeout(IDLE_TIMEOUT):
                head = await read_head(connection.reader)
        except TimeoutError:
            return None
        if head is None:
            return None
        if (head.get("expect") or "").lower() == "100-continue":
            connection.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = await read_body(connection.reader, head)
        writer = connection.writer
        address, port, *_ = writer.get_extra_info("sockname")
        tls = writer.get_extra_info("ssl_object")
        return Request(
            start=head.start,
            headers=head.headers,
            body=body,
            peer=str(writer.get_extra_info("peername")[0]),
            local_address=str(address),
            local_port=int(port),
            secure=self.secure,
            server_name=getattr(tls, "server_name", None),
            has_certificate=tls is not None and bool(tls.getpeercert(True)),
        )
