"""The server name in a TLS ClientHello, read before the handshake begins."""

from __future__ import annotations

HANDSHAKE_RECORD = 22
CLIENT_HELLO = 1
SERVER_NAME = 0


class Incomplete(Exception):
    """More bytes are needed."""


class NotTls(Exception):
    """These bytes are not a ClientHello."""


class _Cursor:
    """Reads big-endian fields one after the other."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.place = 0

    def take(self, size: int) -> bytes:
        piece = self.data[self.place : self.place + size]
        if len(piece) < size:
            raise Incomplete
        self.place += size
        return piece

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))

    def block(self, size: int) -> bytes:
        """Read a block that begins with its length in `size` bytes."""
        return self.take(self.number(size))


def _handshake(data: bytes) -> bytes:
    """Join the records that contain the ClientHello and return its body."""
    records, joined = _Cursor(data), b""
    while True:
        if records.number(1) != HANDSHAKE_RECORD:
            raise NotTls
        records.take(2)
        joined += records.block(2)
        message = _Cursor(joined)
        if message.number(1) != CLIENT_HELLO:
            raise NotTls
        size = message.number(3)
        if len(joined) >= size + 4:
            return message.take(size)


def server_name(data: bytes) -> str | None:
    """Return the server name, or None if the client sends none; raises Incomplete or NotTls."""
    hello = _Cursor(_handshake(data))
    hello.take(2 + 32)
    for size in (1, 2, 1):  # session id, cipher suites, compression
        hello.block(size)
    if hello.place == len(hello.data):
        return None
    extensions = _Cursor(hello.block(2))
    while extensions.place < len(extensions.data):
        kind, content = extensions.number(2), extensions.block(2)
        if kind == SERVER_NAME and content:
            names = _Cursor(content)
            names.take(3)  # the list's length, the type: host name
            return names.block(2).decode("ascii", "replace")
    return None
