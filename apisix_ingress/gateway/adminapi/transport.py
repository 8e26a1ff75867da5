"""The HTTP transport to gateways: a transport of httpx on aiohttp's session, several times as fast as httpx's own.

Every failure is the exception that httpx's transport raises, because callers derive from its class whether a write may
have been carried out. Nothing here knows the Admin API, and nothing is repeated: the session would repeat a request on
a closed connection, but only after errors of aiohttp.

Extensions of a request, besides `timeout`: `deadline`, the loop time in seconds after which it is not sent, and
`largest`, the bytes that are read of a successful response. The connection was released when the response is returned;
its extension `is_cut` is true if the body was longer.
"""

from __future__ import annotations

import asyncio
import math
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

import aiohttp
import httpx
from aiohttp.abc import AbstractStreamWriter
from yarl import URL

from apisix_ingress.gateway.adminapi.tls import TlsContext
from apisix_ingress.runtime.connection_errors import unreachable
from apisix_ingress.runtime.http_responses import finish, read_body

LARGEST_ERROR = 64 * 1024
"""Bytes that are read of an error response; the rest is not read."""

LARGEST_ANSWER = 8 * 2**20
"""Bytes of any other response except lists: a written record, or the schemas of all plugins."""

# Seconds that an idle connection is kept: well below the keep-alive timeout of gateways (nginx: 60).
_KEEPALIVE = 15.0
# Bytes of a body that are written at once.
_PIECE = 64 * 1024
_DEADLINE = ContextVar("deadline", default=math.inf)


# The first match is used: most of aiohttp's exceptions inherit from several others.
_ERRORS: tuple[tuple[type[Exception] | tuple[type[Exception], ...], type[httpx.TransportError]], ...] = (
    (aiohttp.ConnectionTimeoutError, httpx.ConnectTimeout),
    (TimeoutError, httpx.ReadTimeout),
    (aiohttp.ClientConnectorError, httpx.ConnectError),
    ((aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError), httpx.UnsupportedProtocol),
    ((aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError), httpx.RemoteProtocolError),
    (aiohttp.ClientResponseError, httpx.RemoteProtocolError),
    ((aiohttp.ClientError, OSError), httpx.ReadError),
    (ValueError, httpx.LocalProtocolError),
)


class AiohttpTransport(httpx.AsyncBaseTransport):
    """Sends requests over one pool of connections, which the first request opens.

    The deadline of a request is checked before a connection is requested, when it was obtained, and before each piece
    of the body: a process that was frozen must not send a write, because another replica may lead by now.

    Args:
        connections: The maximum number of requests in flight; others wait, up to the pool timeout.
        tls: Provides the context of https requests.
    """

    def __init__(self, *, connections: int, tls: TlsContext | None = None) -> None:
        self._connections = connections
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None
        self._pool: _Pool | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and read the response up to its limit.

        Raises:
            httpx.TransportError: The one that httpx's transport raises; ReadTimeout, ReadError and RemoteProtocolError
                mean that the request may have been carried out.
        """
        deadline = request.extensions.get("deadline", math.inf)
        token = _DEADLINE.set(deadline)
        try:
            with _ERRORS_OF_HTTPX:
                check_deadline(deadline)
                return await self._exchange(request, await request.aread(), deadline)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            if self._pool is not None:
                self._pool.clear_dns_cache()  # the name may resolve to another address by now
            raise
        finally:
            _DEADLINE.reset(token)

    async def aclose(self) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()

    async def _exchange(self, request: httpx.Request, body: bytes, deadline: float) -> httpx.Response:
        response = await self._opened().request(
            request.method,
            URL(str(request.url), encoded=True),
            headers=[(name.decode(), value.decode()) for name, value in request.headers.raw],
            data=_Body(body, deadline) if body else None,
            timeout=_timeout(**request.extensions.get("timeout", {})),
            ssl=self._tls.get() if self._tls and request.url.scheme == "https" else True,
            allow_redirects=False,
        )
        try:
            largest = request.extensions.get("largest", LARGEST_ANSWER) if response.status < 300 else LARGEST_ERROR
            content, is_cut = await read_body(response, largest)
        finally:
            finish(response)
        # Without this header, httpx would decompress the body, to any size.
        headers = [item for item in response.raw_headers if item[0].lower() != b"content-encoding"]
        stream, extensions = httpx.ByteStream(content), {"is_cut": is_cut}
        return httpx.Response(response.status, headers=headers, stream=stream, extensions=extensions)

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._pool = _Pool(limit=self._connections, keepalive_timeout=_KEEPALIVE)
            cookies, middlewares = aiohttp.DummyCookieJar(), (_not_repeated,)
            self._session = aiohttp.ClientSession(
                connector=self._pool, cookie_jar=cookies, auto_decompress=False, middlewares=middlewares
            )
        return self._session


class _Pool(aiohttp.TCPConnector):
    """A pool that checks the deadline of a request and the connection before the request is written."""

    async def connect(self, *args: Any, **kwargs: Any) -> aiohttp.connector.Connection:
        """Return a connection on which the request can be sent in the same step."""
        connection = await super().connect(*args, **kwargs)
        try:
            # An unsolicited response on an idle connection, such as a 408, would be read as the one to this request.
            if connection.protocol is None or connection.protocol.should_close:
                raise aiohttp.ClientConnectionResetError("the server sent a response before the request")
            check_deadline(_DEADLINE.get())
        except BaseException:
            connection.close()
            raise
        return connection


async def _not_repeated(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Send a request; its errors are no longer those after which the session repeats it."""
    with _ERRORS_OF_HTTPX:
        return await handler(request)


class _Body(aiohttp.Payload):
    """A body that checks the deadline of its request before it writes a piece."""

    def __init__(self, content: bytes, deadline: float) -> None:
        super().__init__(content)
        self._content, self._deadline = content, deadline

    @property
    def size(self) -> int:
        """Its bytes."""
        return len(self._content)

    @property
    def autoclose(self) -> bool:
        """Nothing has to be closed."""
        return True

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Return it as text."""
        return self._content.decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Write it; a piece is written when the previous one was accepted."""
        for start in range(0, len(self._content), _PIECE):
            check_deadline(self._deadline)
            await writer.write(self._content[start : start + _PIECE])


class _ErrorsOfHttpx:
    """Replaces exceptions of aiohttp by those of httpx's transport."""

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if not isinstance(error, Exception) or isinstance(error, httpx.TransportError):
            return
        # The session wraps an exception of the body. A gateway ignores a request without its whole body.
        if isinstance(error.__cause__, httpx.PoolTimeout):
            raise error.__cause__ from None
        if (kind := next((kind for classes, kind in _ERRORS if isinstance(error, classes)), None)) is not None:
            text = unreachable(error, "tls.ca_file and the host name") or str(error) or type(error).__name__
            raise kind(text) from error


_ERRORS_OF_HTTPX = _ErrorsOfHttpx()


def check_deadline(deadline: float) -> None:
    """Raise httpx.PoolTimeout, which means that nothing was sent, if the loop time has passed `deadline`."""
    if asyncio.get_running_loop().time() > deadline:
        raise httpx.PoolTimeout("the deadline passed before the request was sent")


@lru_cache(maxsize=8)
def _timeout(
    connect: float | None = None, read: float | None = None, write: float | None = None, pool: float | None = None
) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=None, connect=pool, sock_connect=connect, sock_read=read)
