"""The two connections of a request through an Admin API proxy: to the client, and to the gateway. No faults here."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Mapping
from typing import Any

from e2e.devgateway.dataplane.http1 import (
    HEAD_LIMIT,
    REASONS,
    BadMessage,
    Headers,
    Message,
    encode_head,
    read_body,
    read_head,
)

UNFORWARDED = frozenset({"connection", "transfer-encoding", "content-length", "keep-alive"})
ABORT_WITH_RESET = struct.pack("ii", 1, 0)


class ClientConnection:
    """A connection from a client of the gateway."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.closed = False
        certificate = writer.get_extra_info("peercert") or {}
        self.certificate = str(certificate.get("serialNumber", ""))
        self._writer = writer

    def reset(self) -> None:
        """Reset the connection."""
        self.closed = True
        sock = self._writer.get_extra_info("socket")
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT_WITH_RESET)
        self._writer.transport.abort()

    async def refuse(self, status: int, options: Mapping[str, Any]) -> None:
        """Respond instead of the gateway."""
        body = str(options.get("body", '{"error_msg":"played by a proxy"}')).encode()
        headers = [("Content-Type", "application/json")]
        if "retry_after" in options:
            headers.append(("Retry-After", str(options["retry_after"])))
        await self._send(f"HTTP/1.1 {status} {REASONS.get(status, 'Unknown')}", headers, body, len(body))

    async def answer(self, reply: Message, content: bytes, *, half: bool) -> None:
        """Forward a response, or half of it followed by a reset."""
        headers = [(name, value) for name, value in reply.headers if name.lower() not in UNFORWARDED]
        sent = content[: len(content) // 2] if half else content
        await self._send(" ".join(reply.start), headers, sent, len(content))
        if half:
            self.closed = True
            self._writer.close()
        elif reply.has_token("connection", "close"):
            self.closed = True

    async def _send(self, start: str, headers: Headers, body: bytes, length: int) -> None:
        self._writer.write(encode_head(start, [*headers, ("Content-Length", str(length))]) + body)
        await self._writer.drain()


class GatewayConnection:
    """A connection to the gateway, opened for the first request and reused for later ones."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, head: Message, body: bytes, key: str | None) -> tuple[Message, bytes]:
        """Return the response to a request, sent with another admin key if `key` is set; raises OSError, BadMessage."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._address, limit=HEAD_LIMIT)
        reader, writer = self._streams
        headers = [(name, value) for name, value in head.headers if name.lower() not in UNFORWARDED]
        if key is not None:
            headers = [(name, key if name.lower() == "x-api-key" else value) for name, value in headers]
        start = " ".join(head.start)
        writer.write(encode_head(start, [*headers, ("Content-Length", str(len(body)))]) + body)
        await writer.drain()
        reply = await read_head(reader)
        if reply is None:
            raise BadMessage("the gateway closed the connection")
        return _split_status(reply), await read_body(reader, reply)

    def close(self) -> None:
        """Close it."""
        if self._streams is not None:
            self._streams[1].close()


def _split_status(reply: Message) -> Message:
    """Check that the response has a status."""
    if not reply.start[1].isdigit():
        raise BadMessage(f"no status in {reply.start!r}")
    return reply
