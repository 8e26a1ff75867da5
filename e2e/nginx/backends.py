"""Backends: the pods of a case. They respond as a request's `x-echo` header specifies, and record every request."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from h2.exceptions import ProtocolError

from e2e.nginx.http2 import Echo

Json = dict[str, Any]
PORTS = (8080, 9090)
_HANDSHAKE = b"\x16"
"""The first byte of TLS, to which a backend without TLS does not respond."""


@dataclass
class Backend:
    """One pod."""

    name: str
    kind: str
    address: str
    seen: list[Json]
    context: ssl.SSLContext | None = None
    ports: tuple[int, ...] = PORTS
    virtual: bool = False
    closers: list[Callable[[], Any]] = field(default_factory=list)

    async def start(self) -> None:
        """Listen."""
        if self.kind == "dead":
            return
        if self.kind == "blackhole":
            self._saturate()
            return
        for port in self.ports:
            server = await asyncio.start_server(
                self._serve, self.address, port, ssl=self.context if self.kind in ("https", "h2s") else None
            )
            self.closers.append(server.close)

    def stop(self) -> None:
        """Stop listening."""
        for close in self.closers:
            close()

    def _saturate(self) -> None:
        for port in self.ports:
            listener = socket.socket()
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((self.address, port))
            listener.listen(0)
            self.closers.append(listener.close)
            for _ in range(4):
                client = socket.socket()
                client.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    client.connect((self.address, port))
                self.closers.append(client.close)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.closers.append(writer.transport.abort)
        if self.kind in ("h2c", "h2s"):
            with contextlib.suppress(OSError, ProtocolError, asyncio.CancelledError):
                await Echo(self.name, self.seen).serve(reader, writer)
            writer.close()
            return
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, ValueError, asyncio.CancelledError):
            while await self._one(reader, writer):
                pass
        writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        first = await reader.readexactly(1)
        if first == _HANDSHAKE:
            return False
        head = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        line, headers = (
            head[0],
            [tuple(part.split(": ", 1)) if ": " in part else (part.rstrip(":"), "") for part in head[1:] if part],
        )
        lower = {name.lower(): value for name, value in headers}
        body = b""
        if "content-length" in lower:
            body = await reader.readexactly(int(lower["content-length"]))
        elif "chunked" in lower.get("transfer-encoding", ""):
            body = await chunks(reader)
        if self.kind == "reset":
            _reset(writer)
            return False
        reported = json.loads(lower.get("x-echo", "{}"))
        echo = reported.get(self.name) or reported.get("*") or {}
        shown = [[name, value] for name, value in headers if name.lower() != "x-echo"]
        self.seen.append({"backend": self.name, "line": line, "headers": shown, "body": body.decode("latin-1")})
        if echo.get("reset"):
            _reset(writer)
            return False
        if echo.get("sleep"):
            await asyncio.sleep(echo["sleep"])
        if "upgrade" in lower:
            fields = f"Upgrade: {lower['upgrade']}\r\nConnection: Upgrade\r\nX-Backend: {self.name}"
            writer.write(f"HTTP/1.1 101 Switching Protocols\r\n{fields}\r\n\r\n".encode())
            await writer.drain()
            while data := await reader.read(65536):
                writer.write(data)
            return False
        stays = lower.get("connection", "").lower() != "close" and not line.endswith("1.0")
        await self._answer(writer, line, echo, stays=stays)
        return stays

    async def _answer(self, writer: asyncio.StreamWriter, line: str, echo: Json, *, stays: bool) -> None:
        status = echo.get("status", 200)
        body = str(echo.get("body", f"{self.name}\n")).encode()
        if "size" in echo:
            body = b"x" * int(echo["size"])
        headers = [["Content-Type", "text/plain"], ["X-Backend", self.name], *echo.get("headers", [])]
        if any(name.lower() == "content-type" for name, _ in echo.get("headers", [])):
            headers = headers[1:]
        headers += [] if stays else [["Connection", "close"]]
        chunked = bool(echo.get("chunked"))
        if status not in (204, 304):
            headers.append(["Transfer-Encoding", "chunked"] if chunked else ["Content-Length", str(len(body))])
        text = f"HTTP/1.1 {status} X\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers)
        writer.write(text.encode("latin-1") + b"\r\n")
        if not line.startswith("HEAD ") and status not in (204, 304):
            if "dribble" in echo:
                part = max(1, len(body) // int(echo["dribble"]))
                for start in range(0, len(body), part):
                    writer.write(body[start : start + part])
                    await writer.drain()
                    await asyncio.sleep(echo.get("pause", 0))
            else:
                writer.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if chunked else body)
        await writer.drain()


async def chunks(reader: asyncio.StreamReader) -> bytes:
    """Read a chunked body."""
    body = b""
    while size := int((await reader.readline()).split(b";")[0], 16):
        body += await reader.readexactly(size)
        await reader.readline()
    while (await reader.readline()).strip():
        pass
    return body


def _reset(writer: asyncio.StreamWriter) -> None:
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
