"""The HTTP transport to gateways, on aiohttp: with 16 requests in flight several times as fast as httpx's transport.

Every failure is mapped to the exception that httpx's transport raises, because callers derive from its class whether a
write may have been carried out. Requests and replies are plain dataclasses: constructing those of httpx takes as long
as sending them. Nothing here knows the Admin API, and nothing is retried.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

import aiohttp
import httpx
from yarl import URL

from apisix_ingress.gateway.adminapi.tls import TlsContext
from apisix_ingress.runtime.connection_errors import unreachable
from apisix_ingress.runtime.raw_http import RawConnection, RawRequest, WriteStalled

LARGEST_ERROR = 64 * 1024
"""Bytes that are read of an error response; the rest is not read."""

LARGEST_ANSWER = 8 * 2**20
"""Bytes of any other reply except lists: a written record, or the schemas of all plugins."""

# Seconds that an idle connection is kept: well below the keep-alive timeout of gateways (nginx: 60).
_KEEPALIVE = 15.0
_Errors = tuple[tuple[tuple[type[Exception], ...], type[httpx.TransportError]], ...]


class Limits(NamedTuple):
    """Seconds that parts of a request may take; None: no limit.

    Attributes:
        deadline: Loop time in seconds after which the request is not sent.
    """

    connect: float | None = None
    read: float | None = None
    write: float | None = None
    pool: float | None = None
    deadline: float = math.inf


class Request(NamedTuple):
    """A request; `payload` None: no body. At most `most` bytes of a successful reply are read."""

    method: str
    url: str
    headers: Sequence[tuple[str, str]]
    payload: bytes | None
    limits: Limits
    most: int = LARGEST_ANSWER


class Reply(NamedTuple):
    """A reply; header names are case-insensitive.

    Attributes:
        resent: Whether this replies to a second copy of the request: the first one was cut off.
        is_cut: Whether the body exceeds the limit; `content` is its beginning.
    """

    status_code: int
    content: bytes
    headers: Mapping[str, str]
    resent: bool = False
    is_cut: bool = False


class HttpTransport(Protocol):
    """Sends requests; implemented by `AiohttpTransport`."""

    async def send(self, call: Request) -> Reply:
        """Send a request and read the reply up to its limit; raises httpx.TransportError."""

    async def aclose(self) -> None:
        """Close every connection."""


class _TooLate(Exception):
    """The deadline of a request passed before it was sent."""


# The first match is used: most of aiohttp's exceptions inherit from several others.
_ERRORS: _Errors = (
    ((_TooLate,), httpx.PoolTimeout),
    ((aiohttp.ConnectionTimeoutError,), httpx.ConnectTimeout),
    ((WriteStalled,), httpx.WriteTimeout),
    ((TimeoutError,), httpx.ReadTimeout),
    ((aiohttp.ClientConnectorError,), httpx.ConnectError),
    ((aiohttp.InvalidURL,), httpx.UnsupportedProtocol),
    ((aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError), httpx.RemoteProtocolError),
    ((aiohttp.ClientResponseError,), httpx.RemoteProtocolError),
    ((aiohttp.ClientError, OSError), httpx.ReadError),
    ((ValueError,), httpx.LocalProtocolError),
)


class AiohttpTransport:
    """Sends requests over one pool of connections, which the first request opens.

    The deadline of a request is checked in the step that writes it: a process that was frozen must not send a write
    that it was about to send, because another replica may lead by now.

    Args:
        connections: The maximum number of requests in flight; others wait, up to the pool timeout.
        tls: Provides the context of https requests.
    """

    def __init__(self, *, connections: int, tls: TlsContext | None = None) -> None:
        self._slots = asyncio.Semaphore(connections)
        self._tls = tls
        self._connector: aiohttp.TCPConnector | None = None
        self._connection: RawConnection | None = None

    async def send(self, call: Request) -> Reply:
        """Send a request and read the reply up to its limit.

        Raises:
            httpx.TransportError: The one that httpx's transport raises; ReadTimeout, ReadError, WriteTimeout and
                RemoteProtocolError mean that the request may have been carried out.
        """
        await self._take_slot(call.limits.pool)
        try:
            return await self._exchange(call, call.limits)
        except Exception as error:
            if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
                self._pool().clear_dns_cache()  # the name may resolve to another address by now
            raise _kind_of(error)(_text_of(error)) from error
        finally:
            self._slots.release()

    async def aclose(self) -> None:
        """Close every connection."""
        if self._connector is not None:
            await self._connector.close()

    async def _take_slot(self, seconds: float | None) -> None:
        if not self._slots.locked():
            await self._slots.acquire()
            return
        try:
            async with asyncio.timeout(seconds):
                await self._slots.acquire()
        except TimeoutError as error:
            raise httpx.PoolTimeout("no connection became available") from error

    async def _exchange(self, call: Request, limits: Limits) -> Reply:
        url = URL(call.url, encoded=True)
        if url.scheme not in ("http", "https") or not url.raw_host:
            raise aiohttp.InvalidURL(url)
        _check(limits.deadline)
        if self._connection is None:
            self._connection = RawConnection(self._pool())
        tls = self._tls.get() if self._tls and url.scheme == "https" else True
        request = RawRequest(
            call.method,
            url,
            call.headers,
            call.payload or b"",
            timeout=_timeout(limits.connect, limits.read),
            stall=limits.write,
            check=lambda: _check(limits.deadline),
        )
        answer = await self._connection.send(request, tls, lambda status: _most(call, status))
        return Reply(answer.head.code, answer.body, answer.head.headers, is_cut=answer.is_cut)

    def _pool(self) -> aiohttp.TCPConnector:
        if self._connector is None:
            self._connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEPALIVE)
        return self._connector


def _most(call: Request, status: int) -> int:
    return call.most if status < 300 else LARGEST_ERROR


def _kind_of(error: Exception) -> type[httpx.TransportError]:
    for classes, kind in _ERRORS:
        if isinstance(error, classes):
            return kind
    raise error


def _text_of(error: Exception) -> str:
    return unreachable(error, "tls.ca_file and the host name") or str(error) or type(error).__name__


def _check(deadline: float) -> None:
    if asyncio.get_running_loop().time() > deadline:
        raise _TooLate("the deadline passed before the request was sent")


@lru_cache(maxsize=8)
def _timeout(connect: float | None, read: float | None) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(sock_connect=connect, sock_read=read)
