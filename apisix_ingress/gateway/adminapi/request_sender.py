"""Sends the requests of one Admin API, with its admin key; repeats some of them, and creates the errors of failed ones.

A request that was cut off is repeated immediately, and one that was rejected is repeated if the admin key has
been replaced. All longer retries are up to the callers: the backoff of a record, and the next audit.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_random

from apisix_ingress.errors import GatewayError, GatewayUnavailable
from apisix_ingress.gateway.adminapi.admin_key import AdminKey, Fields
from apisix_ingress.gateway.adminapi.error_text import scrub
from apisix_ingress.gateway.adminapi.redirects import STATUSES as REDIRECTS
from apisix_ingress.gateway.adminapi.redirects import redirected
from apisix_ingress.gateway.adminapi.responses import (
    AdminResponse,
    error_of,
    is_gone,
    is_strange,
    misplaced,
    refused_again,
    strange,
)
from apisix_ingress.gateway.adminapi.transport import LARGEST_ANSWER
from apisix_ingress.model.records import Record
from apisix_ingress.runtime.tasks import in_daemon

T = TypeVar("T")

RequestHook = Callable[[str, str, int | None, float], None]
"""Called after each request with method, path, HTTP status (None: no response) and seconds."""

Limits = Mapping[str, float | None]
"""The timeouts of a request in seconds, as httpx's transports read them."""

NO_HEADERS: Mapping[str, str] = {}

CONNECT_SHARE = 0.4
"""The share of a request's timeout that establishing a connection may take."""

RESENDS = 2
"""How often a request that was cut off is repeated: the next idle connection may be stale as well."""

# How a request fails on an idle connection that the gateway is just closing (contract: fact 22).
_CUT_OFF = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)
_NOT_SENT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.UnsupportedProtocol,
    httpx.LocalProtocolError,
    httpx.InvalidURL,
)
# A larger record is processed in a thread, since that takes longer than a few milliseconds. Bytes.
_SMALL = 16 * 1024


# The next gateway of the same etcd may accept the connection.
_UNREACHABLE = (httpx.ConnectError, httpx.ConnectTimeout)


class RequestSender:
    """Sends requests to one Admin API.

    Args:
        urls: The URLs of the Admin API, without a trailing slash: each is used until no connection is possible.
        key: The admin key.
        timeout: Seconds for one request, including its repetition.
        transport: Sends the requests.
        user_agent: The User-Agent of requests.
        on_request: Called after each request.
        fields: The names of the settings of address and key, for messages.
    """

    def __init__(
        self,
        urls: Sequence[str],
        key: AdminKey,
        *,
        timeout: float,
        transport: httpx.AsyncBaseTransport,
        user_agent: str,
        on_request: RequestHook,
        fields: Fields,
    ) -> None:
        self._urls = tuple(urls)
        self.url = self._urls[0]
        """The URL in use."""
        self.key = key
        self.fields = fields
        self.timeout = timeout
        self.transport = transport
        self._user_agent = user_agent
        self._on_request = on_request
        self._thread = asyncio.Semaphore(1)
        connect = timeout * CONNECT_SHARE
        # No read timeout: the timeout of the whole request limits it.
        self._limits = httpx.Timeout(None, connect=connect, pool=connect).as_dict()
        self._headers = self._new_headers()

    def elsewhere(self, url: str, key: AdminKey, fields: Fields) -> RequestSender:
        """Return a sender to another address that shares the transport."""
        other = copy(self)
        other._urls, other.url, other.key, other.fields = (url,), url, key, fields
        other._headers = other._new_headers()
        return other

    async def request(
        self, method: str, path: str, payload: bytes | None = None, *, headers: Mapping[str, str] = NO_HEADERS
    ) -> AdminResponse:
        """Send a request, with additional headers, that ends within the timeout.

        Raises:
            GatewayError: There was no response, or a write was repeated and then rejected.
        """
        try:
            async with asyncio.timeout(self.timeout) as scope:
                deadline = scope.when() or math.inf
                return await self.send(method, path, payload, limits=self._limits, deadline=deadline, headers=headers)
        except TimeoutError:
            error = GatewayUnavailable(f"{method} {path}: no response within {self.timeout:g} s")
            raise self._placed(error, f"{method} {path}") from None

    async def send(
        self,
        method: str,
        path: str,
        payload: bytes | None = None,
        *,
        limits: Limits,
        deadline: float = math.inf,
        largest: int = LARGEST_ANSWER,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> AdminResponse:
        """Send a request within some limits; repeat it if the admin key that was rejected has been replaced.

        Raises:
            GatewayError: There was no response, or a write was repeated and then rejected.
        """
        sent_with = self._headers
        extensions = {"timeout": limits, "deadline": deadline, "largest": largest}
        response = await self._send(method, path, payload, headers, extensions)
        if response.status_code in (401, 403):
            self.key.refresh()  # another request may have done so since this one was sent
            self._headers = self._new_headers()
            if self._headers != sent_with:
                response = await self._send(method, path, payload, headers, extensions)
        if "cut_off" in extensions:
            self._check_repeated(response, method, path)
            return response._replace(is_resent=True)
        return response

    async def error(
        self, response: AdminResponse, method: str, path: str, record: Record | None = None
    ) -> GatewayError:
        """Return the error for a response that is not the expected one."""
        if response.status_code in REDIRECTS:
            return self._redirected(response, method, path)
        what = f"{method} {path}"
        make = strange if method != "GET" and is_strange(response) else error_of
        body, size = (record.body, len(record.payload)) if record else (None, 0)
        make_it = partial(make, response, what, self.fields, body, self.key.secret)
        return self._placed(await self.aside(size, make_it), what)

    async def error_of_read(self, response: AdminResponse, path: str) -> GatewayError:
        """Return the error for an error response to a GET of records; a 404 means that the address is wrong."""
        if response.status_code < 300:
            error = strange(response, f"GET {path}", self.fields, None, self.key.secret)
            return self._placed(error, f"GET {path}")
        return misplaced(response, self.url, self.fields) or await self.error(response, "GET", path)

    async def aside(self, size: int, work: Callable[[], T]) -> T:
        """Process a record of `size` bytes: in a thread, one at a time, if it would block the event loop for long."""
        if size <= _SMALL:
            return work()
        async with self._thread:
            return await in_daemon(work, name="admin-large")

    async def _send(
        self, method: str, path: str, payload: bytes | None, headers: Mapping[str, str], extensions: dict[str, Any]
    ) -> AdminResponse:
        """Send a request to the first address that accepts a connection."""
        request = (method, path, payload, headers, extensions)
        try:
            for _ in self._urls[1:]:
                used = self.url
                try:
                    return await self._send_to_one(*request)
                except _UNREACHABLE:
                    if self.url == used:  # another request may have changed it since this one was sent
                        self.url = self._urls[(self._urls.index(used) + 1) % len(self._urls)]
            return await self._send_to_one(*request)
        except (httpx.RequestError, httpx.InvalidURL) as error:
            # A reference cycle between frames and error would otherwise stay until the garbage collector runs.
            error.__traceback__ = None
            raise self._no_response(error, f"{method} {path}", extensions) from error

    async def _send_to_one(self, *request: Any) -> AdminResponse:
        """Send a request, and repeat it if it was cut off."""
        try:
            return await self._attempt(*request)
        except _CUT_OFF:
            return await self._repeat(*request)

    @retry(
        # A GET, PUT or DELETE that was cut off is repeated; all three are idempotent.
        retry=retry_if_exception_type(_CUT_OFF),
        stop=stop_after_attempt(RESENDS),
        wait=wait_random(0, 0.05),
        reraise=True,
    )
    async def _repeat(self, *request: Any) -> AdminResponse:
        return await self._attempt(*request)

    async def _attempt(
        self, method: str, path: str, payload: bytes | None, headers: Mapping[str, str], extensions: dict[str, Any]
    ) -> AdminResponse:
        loop, status = asyncio.get_running_loop(), None
        began = loop.time()
        try:
            every = {**self._headers, **headers} if headers else self._headers
            # With a stream, httpx adds no headers, which would take longer than to send the request: aiohttp adds them.
            body = httpx.ByteStream(payload or b"")
            request = httpx.Request(method, f"{self.url}/{path}", headers=every, stream=body, extensions=extensions)
            response = await self.transport.handle_async_request(request)
            status = response.status_code
            is_cut = response.extensions.get("is_cut", False)
            return AdminResponse(status, response.headers, await _content(response.stream), is_cut)
        except _CUT_OFF:
            extensions["cut_off"] = True
            raise
        finally:
            self._on_request(method, path, status, loop.time() - began)

    def _no_response(self, error: Exception, what: str, extensions: Mapping[str, Any]) -> GatewayError:
        """Return the error for a request without a response."""
        sent, text = (
            "cut_off" in extensions or not isinstance(error, _NOT_SENT),
            scrub(str(error), None, self.key.secret),
        )
        if isinstance(error, httpx.ReadTimeout):
            # The wording of a request that ends by its own limit.
            text = f"no response within {extensions['timeout']['read'] or self.timeout:g} s"
        else:
            what = f"{what}: {type(error).__name__}"
        return self._placed(GatewayUnavailable(f"{what}: {text or 'no response'}", sent=sent), what)

    def _check_repeated(self, response: AdminResponse, method: str, path: str) -> None:
        """Raise if a write was repeated and then rejected: its first copy may have been carried out nevertheless."""
        if method == "GET" or response.status_code < 300 or (method == "DELETE" and is_gone(response)):
            return
        if response.status_code in REDIRECTS:
            raise self._redirected(response, method, path, sent=True)
        raise refused_again(response, f"{method} {path}", self.fields)

    def _placed(self, error: GatewayError, what: str) -> GatewayError:
        """Set the cause of an error that concerns the whole cluster: the address instead of the request."""
        if isinstance(error, GatewayUnavailable):
            url = urlsplit(self.url)
            place = f"{url.hostname}:{url.port or (443 if url.scheme == 'https' else 80)}"
            text = str(error).removeprefix(f"{what}: ").removeprefix(f"cannot connect to {place}: ")
            error.cause = f"{place}: {text}"
        return error

    def _redirected(self, response: AdminResponse, method: str, path: str, *, sent: bool = False) -> GatewayError:
        return redirected(response, method, path, self.url, self.fields, self.key.secret, sent=sent)

    def _new_headers(self) -> httpx.Headers:
        # Responses are not decompressed, and without this header a proxy may compress them.
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity", "User-Agent": self._user_agent}
        if self.key.secret:
            headers["X-API-KEY"] = self.key.secret
        return httpx.Headers(headers)


async def _content(stream: httpx.SyncByteStream | httpx.AsyncByteStream) -> bytes:
    """Return the body of a response as it was sent: httpx would decompress it, to any size."""
    assert isinstance(stream, httpx.AsyncByteStream)
    return b"".join([part async for part in stream])
