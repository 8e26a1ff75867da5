"""Ends the responses of aiohttp's session, for clients that may leave a body unread."""

from __future__ import annotations

import aiohttp


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
