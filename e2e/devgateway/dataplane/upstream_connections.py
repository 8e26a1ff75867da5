"""Connections to upstream nodes: one exchange at a time, idle ones kept for the next request."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from e2e.devgateway.dataplane.balancer import Node
from e2e.devgateway.dataplane.http1 import HEAD_LIMIT, BadMessage, Headers, Message, encode_head, iter_body, read_head

IDLE_LIMIT = 64


class Unreachable(Exception):
    """No connection, or it was closed before a response: another node may be tried."""


class TooSlow(Exception):
    """The node did not respond in time."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds, as in an upstream's `timeout`."""

    connect: float = 60.0
    send: float = 60.0
    read: float = 60.0


@dataclass(slots=True)
class Link:
    """One open connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    used: bool = False

    def close(self) -> None:
        self.writer.close()


@dataclass(slots=True)
class Answer:
    """The head of a node's response, and its connection: the body has not been read yet."""

    head: Message
    link: Link
    pool: Pool
    key: str
    has_body: bool

    @property
    def status(self) -> int:
        return int(self.head.start[1])

    async def body(self) -> AsyncIterator[bytes]:
        """Yield the body and return the connection to the pool."""
        try:
            if self.has_body:
                async for piece in iter_body(self.link.reader, self.head, until_close=True):
                    yield piece
        except BaseException:
            self.link.close()
            raise
        self.pool.put_back(self)

    async def read(self) -> bytes:
        return b"".join([piece async for piece in self.body()])


@dataclass(slots=True)
class Pool:
    """Idle connections by destination."""

    _idle: dict[str, list[Link]] = field(default_factory=dict)

    async def exchange(
        self,
        node: Node,
        start: str,
        headers: Headers,
        body: bytes,
        *,
        timeouts: Timeouts,
        tls: ssl.SSLContext | None = None,
        server_name: str = "",
    ) -> Answer:
        """Send one request and return the head of the response; raises Unreachable or TooSlow.

        If an idle connection turns out to be closed, a new one is tried, because the node may be available.
        """
        key = f"{node.host}:{node.port}:{id(tls) if tls else ''}:{server_name}"
        while True:
            link = self._take(key) or await self._connect(node, timeouts, tls, server_name)
            try:
                head = await self._converse(link, encode_head(start, headers) + body, timeouts)
            except BaseException as error:
                link.close()
                if isinstance(error, Unreachable) and link.used:
                    continue
                raise
            no_body = start.startswith("HEAD ") or head.start[1] in ("204", "304", "101")
            return Answer(head, link, self, key, has_body=not no_body)

    def put_back(self, answer: Answer) -> None:
        """Keep a connection whose response was read to its end."""
        head, link = answer.head, answer.link
        bounded = not answer.has_body or head.has_token("transfer-encoding", "chunked") or head.get("content-length")
        idle = self._idle.setdefault(answer.key, [])
        if not bounded or head.has_token("connection", "close") or len(idle) >= IDLE_LIMIT:
            link.close()
            return
        link.used = True
        idle.append(link)

    def close(self) -> None:
        for links in self._idle.values():
            for link in links:
                link.close()
        self._idle.clear()

    def _take(self, key: str) -> Link | None:
        links = self._idle.get(key, [])
        while links:
            link = links.pop()
            if not link.reader.at_eof() and not link.writer.is_closing():
                return link
            link.close()
        return None

    async def _connect(self, node: Node, timeouts: Timeouts, tls: ssl.SSLContext | None, name: str) -> Link:
        try:
            async with asyncio.timeout(timeouts.connect):
                reader, writer = await asyncio.open_connection(
                    node.host.strip("[]"),
                    node.port,
                    ssl=tls,
                    server_hostname=(name or node.host) if tls else None,
                    limit=HEAD_LIMIT,
                )
        except (OSError, ssl.SSLError) as error:  # TimeoutError is an OSError
            raise Unreachable(str(error)) from error
        return Link(reader, writer)

    async def _converse(self, link: Link, message: bytes, timeouts: Timeouts) -> Message:
        try:
            link.writer.write(message)
            async with asyncio.timeout(timeouts.send):
                await link.writer.drain()
            async with asyncio.timeout(timeouts.read):
                while (head := await read_head(link.reader)) is not None:
                    if head.start[1] != "100":
                        return head
        except TimeoutError as error:
            raise TooSlow from error
        except (OSError, ssl.SSLError, BadMessage) as error:
            raise Unreachable(str(error)) from error
        raise Unreachable("closed without an answer")
