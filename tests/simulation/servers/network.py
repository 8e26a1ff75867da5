"""Network failures for a client: the exceptions that aiohttp raises."""

from __future__ import annotations

import errno

import aiohttp
from aiohttp.client_reqrep import ConnectionKey


def refused(host: str) -> aiohttp.ClientConnectorError:
    """Return the error of a refused connection."""
    key = ConnectionKey(host, 80, False, False, None, None, None)
    return aiohttp.ClientConnectorError(key, OSError(errno.ECONNREFUSED, "refused"))
