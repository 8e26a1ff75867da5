"""Sends requests to the API server and keeps the credentials fresh.

A watch reuses the connection of its list. `api` interprets responses.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, TypedDict
from urllib.parse import quote, urlencode

import aiohttp
import orjson
import structlog

from apisix_ingress import __version__
from apisix_ingress.errors import ConfigError
from apisix_ingress.kube.client.credentials import Access, Credentials
from apisix_ingress.kube.client.rest_config import RestConfig, open_session
from apisix_ingress.model.secrets.redaction import register_secret
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.http_responses import finish, read_body

log = structlog.get_logger()

LOOK_SECONDS = 1.0
"""How often the files are checked for a change."""
REREAD_SECONDS = 60.0
"""How often the files are read even if they look unchanged."""
RETRY_SECONDS = 5.0
"""Delay before a failed read is repeated."""
LARGEST = 512 * 2**20
"""Bytes of a response: a page of objects of 1 MB each."""
_HEADERS = {
    "Accept": "application/json",
    # Compression costs the API server more than a local network gains.
    "Accept-Encoding": "identity",
    "User-Agent": f"apisix-ingress/{__version__}",
}
_JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class Request:
    """One request; `timeout` covers the whole exchange."""

    method: str
    path: str
    timeout: aiohttp.ClientTimeout
    query: Sequence[tuple[str, str]] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: object = None


class Reply(NamedTuple):
    """A response whose body was read."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class TooLarge(aiohttp.ClientError):
    """A response is larger than `LARGEST`."""


async def read(response: aiohttp.ClientResponse) -> bytes:
    """Return the body of a response.

    Raises:
        TooLarge: It is too large to be a page of objects.
        aiohttp.ClientError, TimeoutError: It did not arrive completely.
    """
    body, is_cut = await read_body(response, LARGEST)
    if is_cut:
        raise TooLarge(f"the response is larger than {LARGEST // 2**20} MiB")
    return body


class _Options(TypedDict, total=False):
    """Options of aiohttp that all requests share."""

    server_hostname: str


class _Client:
    """The session for one server and TLS identity. A retired client closes when its last exchange ends."""

    def __init__(self, config: RestConfig) -> None:
        self._config = config
        self._session = open_session(config)
        self._options = _options(config)
        self._active = 0
        self._retired = False

    async def open(self, access: Access, request: Request) -> aiohttp.ClientResponse:
        """Send a request and return its response, whose body was not read yet."""
        data = None if request.body is None else orjson.dumps(request.body)
        return await self._session.request(
            request.method,
            _url(access, request),
            headers=_headers(access, request),
            data=data,
            timeout=request.timeout,
            allow_redirects=False,
            **self._options,
        )

    async def fetch(self, access: Access, request: Request) -> Reply:
        """Send a request and read its response."""
        response = await self.open(access, request)
        try:
            return Reply(response.status, response.headers, await read(response))
        finally:
            finish(response)

    def is_for(self, access: Access) -> bool:
        """Return whether `access` has the same server and TLS identity."""
        return self._config == access.config

    def enter(self) -> None:
        """Count the start of an exchange."""
        self._active += 1

    async def leave(self) -> None:
        """Count the end of an exchange."""
        self._active -= 1
        if self._retired and not self._active:
            await self.close()

    async def retire(self) -> None:
        """Close as soon as no exchange is active."""
        self._retired = True
        if not self._active:
            await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()


def _options(config: RestConfig) -> _Options:
    return {"server_hostname": config.server_name} if config.server_name else {}


class Transport:
    """Sends requests with the current credentials.

    Args:
        credentials: Source of the credentials; `open` reads it for the first time.
        clock: Schedules checks of the files.
    """

    def __init__(self, credentials: Credentials, *, clock: Clock) -> None:
        self._credentials = credentials
        self._clock = clock
        self._access: Access | None = None
        self._client: _Client | None = None
        self._stamp: tuple[object, ...] = ()
        self._look_at = self._reread_at = 0.0
        self._logged_reason = ""
        # One read at a time, so that a credential plugin does not run once per rejected request.
        self._reading = asyncio.Lock()

    async def open(self) -> Access:
        """Read the credentials for the first time.

        Raises:
            ConfigError: The credentials are missing or malformed.
        """
        access = await self._credentials.load()
        try:
            self._client = _Client(access.config)
        except OSError as error:
            raise ConfigError(f"API server {access.host}: cannot use the TLS files: {_reason(error)}") from None
        self._adopt(access)
        return access

    async def close(self) -> None:
        """Close all connections."""
        if self._client is not None:
            client, self._client = self._client, None
            await client.close()

    @property
    def access(self) -> Access:
        """The current credentials."""
        if self._access is None:
            raise RuntimeError("the transport is not open")
        return self._access

    @asynccontextmanager
    async def exchange(self, request: Request) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request and yield its response, whatever the status. Retry once after a 401.

        Raises:
            aiohttp.ClientError, TimeoutError, OSError: There was no response.
        """
        await self._refresh()
        used = self.access
        client = self._current()
        client.enter()
        try:
            response = await client.open(used, request)
            if response.status == 401 and await self._read_again(used) and self._client is client:
                response.close()
                response = await client.open(self.access, request)
            try:
                yield response
            finally:
                finish(response)
        finally:
            await client.leave()

    async def fetch(self, request: Request) -> Reply:
        """Send a request and read its response, whatever the status. Retry once after a 401.

        Raises:
            aiohttp.ClientError, TimeoutError, OSError: There was no complete response.
        """
        await self._refresh()
        used = self.access
        client = self._current()
        client.enter()
        try:
            reply = await client.fetch(used, request)
            if reply.status == 401 and await self._read_again(used) and self._client is client:
                reply = await client.fetch(self.access, request)
            return reply
        finally:
            await client.leave()

    def _current(self) -> _Client:
        if self._client is None:
            raise RuntimeError("the transport is not open")
        return self._client

    async def _refresh(self) -> None:
        """Read the credentials again if a file changed, the token expires soon, or a minute has passed."""
        now = self._clock.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + LOOK_SECONDS
        access = self.access
        expired = access.expires_at is not None and now >= access.expires_at
        aged = now >= self._reread_at and not access.costly
        if expired or aged or access.stamp() != self._stamp:
            await self._read_again(access)

    async def _read_again(self, used: Access) -> bool:
        """Read the credentials unless they were replaced since `used`; return whether there are newer ones now."""
        async with self._reading:
            if self.access is not used:
                return True
            try:
                access = await self._credentials.load()
                replaced = self._switch(access)
            except (ConfigError, OSError) as error:
                self._report_failure(_reason(error))
                self._look_at = self._clock.monotonic() + RETRY_SECONDS
                return False
            # There is no await between `_switch` and here, so client and credentials always belong together.
            self._adopt(access)
            if replaced is not None:
                await replaced.retire()
            return True

    def _switch(self, access: Access) -> _Client | None:
        """Replace the client if the new credentials need another one; return the former client."""
        client = self._client
        if client is None or client.is_for(access):
            return None
        self._client = _Client(access.config)
        log.info("credentials.replaced", server=access.host)
        return client

    def _adopt(self, access: Access) -> None:
        self._access = access
        self._stamp = access.stamp()
        now = self._clock.monotonic()
        self._look_at, self._reread_at = now + LOOK_SECONDS, now + REREAD_SECONDS
        self._logged_reason = ""
        register_secret(access.authorization.rpartition(" ")[2])

    def _report_failure(self, reason: str) -> None:
        if reason != self._logged_reason:
            self._logged_reason = reason
            log.warning("credentials.unreadable", reason=reason, remedy="the previous credentials stay in use")


def _url(access: Access, request: Request) -> str:
    return f"{access.config.host}{request.path}{_quoted(tuple(request.query)) if request.query else ''}"


@lru_cache(maxsize=64)
def _quoted(query: tuple[tuple[str, str], ...]) -> str:
    return f"?{urlencode(query, quote_via=quote)}"


def _headers(access: Access, request: Request) -> dict[str, str]:
    headers = {**_HEADERS, **(_JSON if request.body is not None else {}), **request.headers}
    if access.authorization:
        headers["Authorization"] = access.authorization
    return headers


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
