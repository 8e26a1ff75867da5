"""What carries requests to gateways, on aiohttp: at 16 in flight several times as fast as httpx's own transport.

It carries one request and maps every failure to the exception that httpx's own transport raises, since it depends on
that whether a write may have been carried out. Requests and replies are plain: to build those of httpx takes as long as
to send them. Nothing here knows the Admin API, and nothing is retried.
"""

from __future__ import annotations

import asyncio
import math
import os
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import aiohttp
import httpx
from yarl import URL

from apisix_ingress.gateway.adminapi.raw_http import RawConnection, Small, read_up_to
from apisix_ingress.gateway.adminapi.tls import TlsContext

LARGEST_ERROR = 64 * 1024
"""Bytes that are read of a reply that says no; the rest is not read."""

LARGEST_ANSWER = 8 * 2**20
"""Bytes of any other reply but lists: a written record, or the schemas of all plugins."""

_CHUNK = 128 * 1024
# Up to here a body goes into the socket's buffer at once: no write can stall.
_SMALL = 32 * 1024
# Seconds an unused connection is kept: well below what gateways keep it (nginx: 60).
_KEEPALIVE = 15.0
_OWN_HEADERS = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
_Errors = tuple[tuple[tuple[type[Exception], ...], type[httpx.TransportError]], ...]


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds that parts of a request may take; None: as long as it likes.

    Attributes:
        deadline: Loop time in seconds after which it is not sent.
    """

    connect: float | None = None
    read: float | None = None
    write: float | None = None
    pool: float | None = None
    deadline: float = math.inf


@dataclass(frozen=True, slots=True)
class Request:
    """A request; `payload` None: it has no body. No more than `most` bytes of a reply that says yes are read."""

    method: str
    url: str
    headers: Sequence[tuple[str, str]]
    payload: bytes | None
    limits: Limits
    most: int = LARGEST_ANSWER


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply; names of headers are found however they are written.

    `resent` says that it is to a second copy of the request: the first one was cut off. `is_cut` says that it is longer
    than what may be read of it: `content` is its beginning.
    """

    status_code: int
    content: bytes
    headers: Mapping[str, str]
    resent: bool = False
    is_cut: bool = False


class HttpTransport(Protocol):
    """What carries requests; `AiohttpTransport` does."""

    async def carry(self, call: Request) -> Reply:
        """Send a request and read the reply, up to its bound; raises httpx.TransportError."""

    async def aclose(self) -> None:
        """Close every connection."""


class _TooLate(Exception):
    """The time of a request was over before it was sent."""


class _Stalled(Exception):
    """The peer took no more of a large body."""


# The first match counts: most of aiohttp's classes inherit from several others.
_ERRORS: _Errors = (
    ((_TooLate,), httpx.PoolTimeout),
    ((aiohttp.ConnectionTimeoutError,), httpx.ConnectTimeout),
    ((TimeoutError,), httpx.ReadTimeout),
    ((aiohttp.ClientConnectorError,), httpx.ConnectError),
    ((aiohttp.InvalidURL,), httpx.UnsupportedProtocol),
    ((aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError), httpx.RemoteProtocolError),
    ((aiohttp.ClientResponseError,), httpx.RemoteProtocolError),
    ((aiohttp.ClientError, OSError), httpx.ReadError),
    ((ValueError,), httpx.LocalProtocolError),
)


class AiohttpTransport:
    """Requests over one pool of connections, which the first request opens; large ones go by a session of aiohttp.

    A request whose deadline is over is not sent, looked at in the last moment: a process that was frozen must not go on
    with a write that it was about to send, since others may lead by now.

    Args:
        connections: How many requests may be in flight; more wait for the pool timeout.
        tls: Where https requests get their context from.
    """

    def __init__(self, *, connections: int, tls: TlsContext | None = None) -> None:
        self._slots = asyncio.Semaphore(connections)
        self._tls = tls
        self._connector: aiohttp.TCPConnector | None = None
        self._direct: RawConnection | None = None
        self._session: aiohttp.ClientSession | None = None

    async def carry(self, call: Request) -> Reply:
        """Send a request and read the reply, up to its bound.

        Raises:
            httpx.TransportError: As httpx's own transport would; ReadTimeout, ReadError, WriteTimeout and
                RemoteProtocolError mean that the request may have been carried out.
        """
        await self._take_slot(call.limits.pool)
        try:
            return await self._exchange(call, call.limits)
        finally:
            self._slots.release()

    async def aclose(self) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()
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
            raise httpx.PoolTimeout("no connection became free") from error

    async def _exchange(self, call: Request, limits: Limits) -> Reply:
        send = self._send_small if len(call.payload or b"") <= _SMALL else self._send_large
        try:
            url = URL(call.url, encoded=True)
            _check(limits.deadline)
            tls = self._tls.get() if self._tls and url.scheme == "https" else True
            return await send(call, url, tls)
        except _Stalled as error:
            raise httpx.WriteTimeout(str(error)) from error
        except Exception as error:
            if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
                self._pool().clear_dns_cache()  # the name may have another address by now
            raise _kind_of(error)(_words(error)) from error

    async def _send_small(self, call: Request, url: URL, tls: ssl.SSLContext | bool) -> Reply:
        if url.scheme not in ("http", "https") or not url.raw_host:
            raise aiohttp.InvalidURL(url)
        if self._direct is None:
            self._direct = RawConnection(self._pool())
        limits = call.limits
        timeout = _timeout(limits.connect, limits.read)
        small = Small(call.method, url, call.headers, call.payload or b"", timeout, lambda: _check(limits.deadline))
        answer = await self._direct.send(small, tls, lambda status: _most(call, status))
        return Reply(answer.head.code, answer.body, answer.head.headers, is_cut=answer.is_cut)

    async def _send_large(self, call: Request, url: URL, tls: ssl.SSLContext | bool) -> Reply:
        limits = call.limits
        try:
            async with asyncio.timeout(None) as writing:
                reply = await self._opened().request(
                    call.method,
                    url,
                    headers=call.headers,
                    data=_chunks(call.payload or b"", limits.deadline, writing, limits.write),
                    allow_redirects=False,
                    ssl=tls,
                    timeout=_timeout(limits.connect, limits.read),
                )
                content, is_cut = await read_up_to(reply.content, _most(call, reply.status))
        except Exception as error:
            if writing.expired():
                raise _Stalled(_words(error)) from error
            raise
        if is_cut:
            reply.close()
        return Reply(reply.status, content, reply.headers, is_cut=is_cut)

    def _pool(self) -> aiohttp.TCPConnector:
        if self._connector is None:
            self._connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEPALIVE)
        return self._connector

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=self._pool(),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                skip_auto_headers=_OWN_HEADERS,
            )
            # aiohttp would by itself send PUT, DELETE and GET again when a kept connection turns out closed.
            self._session._retry_connection = False
        return self._session


def _most(call: Request, status: int) -> int:
    return call.most if status < 300 else LARGEST_ERROR


def _kind_of(error: Exception) -> type[httpx.TransportError]:
    for classes, kind in _ERRORS:
        if isinstance(error, classes):
            return kind
    raise error


def _words(error: Exception) -> str:
    """Return what went wrong; where nobody is reached aiohttp's words are for programmers."""
    match error:
        case aiohttp.ClientConnectorDNSError():
            return f"the host name {error.host} can't be resolved"
        case aiohttp.ClientConnectorCertificateError(certificate_error=ssl.SSLCertVerificationError() as why):
            place = f"{error.host}:{error.port}"
            return f"the certificate of {place} is not valid ({why.verify_message}): see tls.ca_file and the host name"
        case aiohttp.ClientConnectorError() if not isinstance(error, aiohttp.ClientSSLError) and error.os_error.errno:
            return f"can't connect to {error.host}:{error.port}: {os.strerror(error.os_error.errno)}"
        case _:
            return str(error) or type(error).__name__


def _check(deadline: float) -> None:
    if asyncio.get_running_loop().time() > deadline:
        raise _TooLate("its time was over before it was sent")


@lru_cache(maxsize=8)
def _timeout(connect: float | None, read: float | None) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(sock_connect=connect, sock_read=read)


async def _chunks(
    body: bytes, deadline: float, writing: asyncio.Timeout, seconds: float | None
) -> AsyncIterator[bytes]:
    """Hand out a large body piece by piece; a piece that the peer does not take within `seconds` ends the request."""
    loop = asyncio.get_running_loop()
    for start in range(0, len(body), _CHUNK):
        _check(deadline)
        if seconds is not None:
            writing.reschedule(loop.time() + seconds)
        yield body[start : start + _CHUNK]
    writing.reschedule(None)
