"""One request to the API server over the `kubernetes` package's connections, with credentials that stay fresh.

Only here is that package's client touched, and only for the session that it makes of TLS, proxy and pool: no typed
model, no retry, no watch of its own, and nothing of its layers above the session, whose copies of headers and bodies
took a fifth of a status write. There is no bound to its connections, so that watches never starve requests; a watch
goes on over the connection that its list has opened, which saves the making of one. What an answer means is known to
`api`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import orjson
import structlog
from kubernetes.aio.client.rest import RESTClientObject

from apisix_ingress import __version__
from apisix_ingress.errors import ConfigError
from apisix_ingress.kube.client.credentials import Access, Credentials
from apisix_ingress.model.secrets.redaction import register_secret
from apisix_ingress.runtime.clock import Clock

log = structlog.get_logger()

LOOK_SECONDS = 1.0
"""How often files are looked at for a change."""
REREAD_SECONDS = 60.0
"""How often they are read although they look unchanged."""
RETRY_SECONDS = 5.0
"""How soon a read that failed is tried again."""
_HEADERS = {
    "Accept": "application/json",
    # Compression costs the API server more than a local network gains.
    "Accept-Encoding": "identity",
    "User-Agent": f"apisix-ingress/{__version__}",
}
_JSON = {"Content-Type": "application/json"}


class _Client:
    """The REST client for one server and TLS identity; closed when the last exchange of a retired one ends."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._rest = _make_client(access)
        # The factory is there to be overridden, and what it made is closed with the client.
        self._session: aiohttp.ClientSession = self._rest.pool_manager or self._rest._create_pool_manager()
        self._rest.pool_manager = self._session
        self._options = _options(self._rest)
        self._active = 0
        self._retired = False

    async def request(
        self, method: str, url: str, *, headers: dict[str, str], body: object, timeout: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        """Send a request; the body goes as JSON."""
        data = None if body is None else orjson.dumps(body)
        return await self._session.request(
            method, url, headers=headers, data=data, timeout=timeout, allow_redirects=False, **self._options
        )

    def is_for(self, access: Access) -> bool:
        """Whether the same server and TLS identity are meant."""
        return self._access.tls == access.tls and _target(self._access) == _target(access)

    def enter(self) -> None:
        """Count an exchange."""
        self._active += 1

    async def leave(self) -> None:
        """End an exchange."""
        self._active -= 1
        if self._retired and not self._active:
            await self.close()

    async def retire(self) -> None:
        """Close as soon as nobody uses it any more."""
        self._retired = True
        if not self._active:
            await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._rest.close()


def _make_client(access: Access) -> Any:
    configuration = access.configuration
    configuration.connection_pool_maxsize = 0  # no bound
    # With trust_env aiohttp would read the environment and ~/.netrc for each request, in a thread.
    configuration.client_session_kwargs = {
        "cookie_jar": aiohttp.DummyCookieJar(),
        "trust_env": False,
        "proxy": environment_proxy(str(configuration.host)),
    }
    return RESTClientObject(configuration)


def _options(rest: Any) -> dict[str, Any]:
    """Return what each request needs beside its own: the server's name for TLS and the proxy, where they are given."""
    found = {
        "server_hostname": rest.configuration.tls_server_name,
        "proxy": rest.proxy,
        "proxy_headers": rest.proxy_headers,
    }
    return {name: value for name, value in found.items() if value}


def environment_proxy(url: str) -> str | None:
    """Return the proxy that the environment names for a URL; one that a kubeconfig names goes before it."""
    parts = urlsplit(url)
    return None if proxy_bypass(parts.netloc) else getproxies().get(parts.scheme)


def _target(access: Access) -> tuple[object, ...]:
    configuration = access.configuration
    return (configuration.host, configuration.verify_ssl, configuration.tls_server_name, configuration.proxy)


@dataclass(frozen=True, slots=True)
class Request:
    """One request; `timeout` bounds all of it."""

    method: str
    path: str
    timeout: aiohttp.ClientTimeout
    query: Sequence[tuple[str, str]] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: object = None


class Transport:
    """Sends requests with the credentials of the moment.

    Args:
        credentials: Where they come from; read by `open`.
        clock: Tells when to look at files again.
    """

    def __init__(self, credentials: Credentials, *, clock: Clock) -> None:
        self._credentials = credentials
        self._clock = clock
        self._access: Access | None = None
        self._client: _Client | None = None
        self._stamp: tuple[object, ...] = ()
        self._look_at = self._reread_at = 0.0
        self._complaint = ""
        # One read at a time: a plugin is not run once for every request that was refused.
        self._reading = asyncio.Lock()

    async def open(self) -> Access:
        """Read the credentials for the first time.

        Raises:
            ConfigError: they are missing or malformed.
        """
        access = await self._credentials.load()
        try:
            self._client = _Client(access)
        except OSError as error:
            raise ConfigError(f"API server {access.host}: its TLS files can't be used: {_reason(error)}") from None
        self._adopt(access)
        return access

    async def close(self) -> None:
        """Close all connections."""
        if self._client is not None:
            client, self._client = self._client, None
            await client.close()

    @property
    def access(self) -> Access:
        """The credentials of the moment."""
        if self._access is None:
            raise RuntimeError("the transport is not open")
        return self._access

    @asynccontextmanager
    async def exchange(self, request: Request) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request and hand out its answer, whatever the status; once more after a 401.

        Raises:
            aiohttp.ClientError, TimeoutError, OSError: there was no answer.
        """
        await self._refresh()
        used = self.access
        client = self._current()
        client.enter()
        try:
            response = await _send(client, used, request)
            if response.status == 401 and await self._read_again(used) and self._client is client:
                response.close()
                response = await _send(client, self.access, request)
            try:
                yield response
            finally:
                _finish(response)
        finally:
            await client.leave()

    def _current(self) -> _Client:
        if self._client is None:
            raise RuntimeError("the transport is not open")
        return self._client

    async def _refresh(self) -> None:
        """Read the credentials again if a file changed, the token is about to expire, or a minute has passed."""
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
        """Read the credentials unless somebody did since `used`; return whether newer ones are there now."""
        async with self._reading:
            if self.access is not used:
                return True
            try:
                access = await self._credentials.load()
                replaced = self._switch(access)
            except (ConfigError, OSError) as error:
                self._complain(_reason(error))
                self._look_at = self._clock.monotonic() + RETRY_SECONDS
                return False
            # Nothing is awaited since the client was replaced: no request goes to the old server with the new TLS.
            self._adopt(access)
            if replaced is not None:
                await replaced.retire()
            return True

    def _switch(self, access: Access) -> _Client | None:
        """Make a client for other credentials if they need one; return the one that it replaces."""
        client = self._client
        if client is None or client.is_for(access):
            return None
        self._client = _Client(access)
        log.info("credentials.replaced", server=access.host)
        return client

    def _adopt(self, access: Access) -> None:
        self._access = access
        self._stamp = access.stamp()
        now = self._clock.monotonic()
        self._look_at, self._reread_at = now + LOOK_SECONDS, now + REREAD_SECONDS
        self._complaint = ""
        register_secret(access.authorization.rpartition(" ")[2])

    def _complain(self, reason: str) -> None:
        if reason != self._complaint:
            self._complaint = reason
            log.warning("credentials.unreadable", reason=reason, remedy="those read before stay in use")


async def _send(client: _Client, access: Access, request: Request) -> aiohttp.ClientResponse:
    headers = {**_HEADERS, **(_JSON if request.body is not None else {}), **request.headers}
    if access.authorization:
        headers["Authorization"] = access.authorization
    query = f"?{urlencode(request.query, quote_via=quote)}" if request.query else ""
    return await client.request(
        request.method,
        f"{access.configuration.host}{request.path}{query}",
        headers=headers,
        body=request.body,
        timeout=request.timeout,
    )


def _finish(response: aiohttp.ClientResponse) -> None:
    """Give the connection back if the body was read to its end, else cut it.

    A TLS connection that is closed waits for the other side's goodbye, up to 30 s; a watch that we leave needs none.
    """
    if response.content.at_eof():
        response.release()
        return
    if response.connection is not None and response.connection.transport is not None:
        response.connection.transport.abort()
    response.close()


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
