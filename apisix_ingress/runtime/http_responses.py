"""Reads and ends the responses of aiohttp's session, for clients that may leave a body unread."""

from __future__ import annotations

import aiohttp

_KEPT = 64 * 1024
"""Bytes of a body that is too long: enough for an error message."""


async def read_body(response: aiohttp.ClientResponse, largest: int) -> tuple[bytes, bool]:
    """Return a body and False; if it is longer than `largest`, its beginning and True."""
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > largest:
            return bytes(body[: min(largest, _KEPT)]), True
    return bytes(body), False


def finish(response: aiohttp.ClientResponse) -> None:
    """Return the connection to the pool if the body was read to its end, else abort it.

    Closing a TLS connection waits up to 30 s for the peer's close_notify, and sends what is still to be sent. A watch
    that the client leaves, or a body that is too long, does not need that.
    """
    if response.content.at_eof():
        response.release()
        return
    if response.connection is not None and response.connection.transport is not None:
        response.connection.transport.abort()
    response.close()
