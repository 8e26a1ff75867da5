"""The client of a gateway cluster's Admin API, version 3: requests, replies and errors.

The sync engine decides when to write, and when to retry after a failure.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection, Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TypeVar
from urllib.parse import quote, urlsplit

import httpx

from apisix_ingress.errors import GatewayError, GatewayRejected, GatewayUnavailable
from apisix_ingress.gateway.adminapi.admin_key import SETTINGS, Fields
from apisix_ingress.gateway.adminapi.admin_key import AdminKey as AdminKey
from apisix_ingress.gateway.adminapi.error_text import scrub
from apisix_ingress.gateway.adminapi.list_parser import begins_list
from apisix_ingress.gateway.adminapi.redirects import STATUSES as REDIRECTS
from apisix_ingress.gateway.adminapi.redirects import redirected
from apisix_ingress.gateway.adminapi.responses import (
    bodies_of,
    error_of,
    found_of,
    is_disabled,
    is_done,
    is_gone,
    is_strange,
    misplaced,
    record_of,
    records_of,
    refused_again,
    strange,
)
from apisix_ingress.gateway.adminapi.retry import CUT_OFF, has_failed, relisting, resending
from apisix_ingress.gateway.adminapi.tls import TlsContext
from apisix_ingress.gateway.adminapi.transport import (
    LARGEST_ANSWER,
    AiohttpTransport,
    HttpTransport,
    Limits,
    Reply,
    Request,
)
from apisix_ingress.gateway.backend import ClusterListing, ObservedRecord
from apisix_ingress.model.formats.size import written_size
from apisix_ingress.model.json import JsonObject, canonical
from apisix_ingress.model.keys import RECORD_KINDS, RecordKey, RecordKind
from apisix_ingress.model.names import is_owned
from apisix_ingress.model.records import UNLABELLED, Record
from apisix_ingress.runtime.tasks import in_daemon

# Connections for lists and a probe in addition to the writes, so that no request waits for a connection.
_SPARE_CONNECTIONS = len(RECORD_KINDS) + 1
# Seconds. A list of all routes may be large and take the gateway a while.
_LIST_TIMEOUT = 60.0
LARGEST_LIST = 256 * 2**20
"""The default limit for the size of a list in bytes."""

# A larger record is processed in a thread, since that takes longer than a few milliseconds. Bytes.
_SMALL = 16 * 1024
_UNKNOWN = ObservedRecord(b"")
_NO_RECORDS = b'{"list":[]}'
# Seconds without a byte of a list after which the gateway is considered frozen.
_LIST_SILENCE = 10.0
# The share of a request's timeout that establishing a connection may take.
_CONNECT_SHARE = 0.4
_NOT_SENT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.UnsupportedProtocol,
    httpx.LocalProtocolError,
)


T = TypeVar("T")

RequestHook = Callable[[str, str, int | None, float], None]


class AdminClient:
    """The Admin API of one cluster.

    Args:
        url: The URL of the Admin API, without a trailing slash.
        key: The admin key.
        controller: The name of this controller, which the labels of its records contain.
        timeout: Seconds for one write, including repeated requests.
        concurrency: The maximum number of concurrent writes.
        tls: Provides the TLS context of https requests.
        transport: Sends the requests; None: over the network.
        user_agent: The User-Agent of requests, for the gateway's access log.
        on_request: Called after each request with method, path, HTTP status (None: no answer) and seconds.
        fields: The names of the settings of address and key, for messages.
        largest_list: The maximum size of a list in bytes; a larger list is an error.
    """

    def __init__(
        self,
        url: str,
        key: AdminKey,
        *,
        controller: str,
        timeout: float,
        concurrency: int = 1,
        tls: TlsContext | None = None,
        transport: HttpTransport | None = None,
        user_agent: str = "apisix-ingress",
        on_request: RequestHook = lambda method, path, status, seconds: None,
        fields: Fields = SETTINGS,
        largest_list: int = LARGEST_LIST,
    ) -> None:
        self._largest_list = largest_list
        self._thread = asyncio.Semaphore(1)
        self._on_request = on_request
        self._fields = fields
        self._url = url
        self._key = key
        self._controller = controller
        self._timeout = timeout
        self._user_agent = user_agent
        self._transport = transport or AiohttpTransport(connections=concurrency + _SPARE_CONNECTIONS, tls=tls)
        connect = timeout * _CONNECT_SHARE
        # No read timeout: the timeout of the whole request limits a write.
        self._connect_timeout = connect
        self._list_limits = Limits(connect=connect, read=_LIST_SILENCE, write=_LIST_SILENCE, pool=connect)
        self._headers = self._new_headers()
        self._version = ""
        self.date = ""
        """The `Date` header of the last list."""

    def elsewhere(self, url: str, key: AdminKey, fields: Fields) -> AdminClient:
        """Return a client for another address that shares the transport; closing either closes both."""
        other = copy(self)
        other._url, other._key, other._fields = url, key, fields
        other._headers, other._version = other._new_headers(), ""
        return other

    @property
    def timeout(self) -> float:
        """The maximum duration of a write in seconds."""
        return self._timeout

    async def put(self, record: Record) -> bool:
        """Create or replace a record; return whether the request had to be repeated."""
        path = _path(record.key)
        reply = await self._bounded("PUT", path, record.payload)
        if not is_done(reply):
            raise await self._error(reply, "PUT", path, record)
        return reply.resent

    async def delete(self, key: RecordKey) -> bool:
        """Delete a record, missing or not; return whether the request had to be repeated."""
        path = _path(key)
        reply = await self._bounded("DELETE", path)
        if not (is_done(reply) or is_gone(reply)):
            raise await self._error(reply, "DELETE", path)
        return reply.resent

    async def look(self, key: RecordKey) -> ObservedRecord | None:
        """Return a record as the gateway has it, owned or not; None if it does not exist."""
        path = _path(key)
        reply = await self._bounded("GET", path)
        if is_gone(reply) or is_disabled(reply):
            return None
        if reply.status_code >= 300:
            raise misplaced(reply, self._url, self._fields) or await self._error(reply, "GET", path)
        found = await self._aside(len(reply.content), partial(record_of, key.kind, reply.content, self._controller))
        if found is None:
            raise self._placed(strange(reply, f"GET {path}", self._fields, None, self._key.secret), f"GET {path}")
        return found

    async def probe(self) -> None:
        """List the smallest page of routes, which requires a valid key and a working etcd behind the gateway."""
        reply = await self._bounded("GET", "routes?page=1&page_size=10")
        if await self._is_emptied(reply):
            return
        if reply.status_code >= 300:
            raise misplaced(reply, self._url, self._fields) or await self._error(reply, "GET", "routes")
        if not (reply.is_cut and begins_list(reply.content)):
            next(bodies_of("routes", reply.content, self._fields), None)  # raises if it is not a list

    async def read(self, path: str) -> bytes:
        """Return the response for a path that is not a record, such as `plugins/list`.

        Raises:
            GatewayError: There was no response, or an error.
        """
        reply = await self._bounded("GET", path)
        if reply.status_code >= 300:
            raise await self._error(reply, "GET", path)
        if reply.is_cut:
            raise GatewayUnavailable(f"GET {path}: the answer is larger than {LARGEST_ANSWER // 2**20} MiB", sent=False)
        return reply.content

    async def bodies(self, kind: str) -> dict[str, JsonObject] | None:
        """Return every record of a kind by id, owned or not, or None if the gateway does not serve the kind.

        The kind may be one that this program never writes, such as `services`.

        Raises:
            GatewayError: There was no response, or an error.
        """
        reply = await self._list(kind)
        found = () if reply is None else bodies_of(kind, reply.content, self._fields)
        return None if reply is None else dict(filter(None, found))

    async def label(self, key: RecordKey, labels: Mapping[str, str]) -> None:
        """Add labels to a record; its other fields, including fields that the gateway never returns, stay unchanged.

        Raises:
            GatewayError: The request failed; gateways reject it for kinds without PATCH.
        """
        path = _path(key)
        reply = await self._bounded("PATCH", path, canonical({"labels": dict(labels)}))
        if not is_done(reply):
            raise await self._error(reply, "PATCH", path)

    @property
    def version(self) -> str:
        """The `Server` header of the last list; empty if there was none."""
        return self._version

    def credentials_changed(self) -> bool:
        """Return whether the file of the admin key has changed since it was read."""
        return self._key.changed()

    async def list_managed(
        self, ledger: Collection[RecordKey], kinds: Collection[RecordKind] = RECORD_KINDS
    ) -> ClusterListing:
        """Read every record of some kinds, one list per kind."""
        owned: dict[RecordKey, ObservedRecord] = {}
        unclaimed: dict[RecordKey, ObservedRecord] = {}
        foreign: set[RecordKey] = set()
        disabled: set[RecordKind] = set()
        for kind in kinds:
            reply = await self._list_with_retry(kind)
            if reply is None:
                disabled.add(kind)
            else:
                others = await self._sort(kind, reply.content, ledger, owned)
                if kind in UNLABELLED:
                    unclaimed |= others
                else:
                    foreign |= others.keys()
        if len(disabled) == len(RECORD_KINDS):
            raise GatewayRejected(404, f"{self._url} serves no kind of record: check {self._fields.url}")
        return ClusterListing(owned, frozenset(foreign), unclaimed, frozenset(disabled), self._version)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._transport.aclose()

    async def _list_with_retry(self, kind: str) -> Reply | None:
        """Return the list of a kind as `_list` does; repeat the request if the gateway replied with an error."""
        try:
            return await self._list(kind)
        except GatewayUnavailable as error:
            if not has_failed(error):
                raise
        reply: Reply | None = await relisting()(self._list, kind)
        return reply

    async def _list(self, kind: str) -> Reply | None:
        """Return the list of a kind, or None if the gateway does not serve the kind."""
        try:
            async with asyncio.timeout(_LIST_TIMEOUT):
                reply = await self._call("GET", kind, limits=self._list_limits, most=self._largest_list)
        except TimeoutError:
            raise GatewayUnavailable(f"GET {kind}: no complete list within {_LIST_TIMEOUT:g} s") from None
        if reply.is_cut and reply.status_code < 300:
            size, field = written_size(self._largest_list), self._fields.largest_list
            why = f"the list is larger than {size}: increase {field} if the gateway is meant to have so many records"
            raise GatewayUnavailable(f"GET {kind}: {why}", sent=False)
        self._version = reply.headers.get("Server", "")
        self.date = reply.headers.get("Date", "")
        if reply.status_code < 300:
            return reply
        if is_disabled(reply):
            return None
        if await self._is_emptied(reply):
            return replace(reply, content=_NO_RECORDS)
        raise misplaced(reply, self._url, self._fields) or await self._error(reply, "GET", kind)

    async def _is_emptied(self, reply: Reply) -> bool:
        """Return whether a list is missing because etcd behind the gateway was emptied, with the prefix of every kind.

        A URL below the Admin API is answered in the same way, but has no list of plugins.
        """
        return is_gone(reply) and (await self._bounded("GET", "plugins/list")).status_code < 300

    async def _sort(
        self, kind: RecordKind, content: bytes, ledger: Collection[RecordKey], owned: dict[RecordKey, ObservedRecord]
    ) -> dict[RecordKey, ObservedRecord]:
        """Add the owned records to `owned` and return the others; only those of kinds without labels are parsed."""
        others: dict[RecordKey, ObservedRecord] = {}
        for record in records_of(kind, content, self._fields):
            if record is None:
                await asyncio.sleep(0)
                continue
            key, body, size, revision = record
            is_ours = key in ledger or is_owned(body.get("labels"), self._controller)
            if is_ours or kind in UNLABELLED:
                (owned if is_ours else others)[key] = await self._aside(size, partial(found_of, kind, body, revision))
            else:
                others[key] = _UNKNOWN
        return others

    async def _bounded(self, method: str, path: str, payload: bytes | None = None) -> Reply:
        try:
            async with asyncio.timeout(self._timeout) as scope:
                connect, deadline = self._connect_timeout, scope.when() or math.inf
                limits = Limits(connect=connect, write=self._timeout, pool=connect, deadline=deadline)
                return await self._call(method, path, payload, limits=limits)
        except TimeoutError:
            error = GatewayUnavailable(f"{method} {path}: no answer within {self._timeout:g} s")
            raise self._placed(error, f"{method} {path}") from None

    async def _call(
        self, method: str, path: str, payload: bytes | None = None, *, limits: Limits, most: int = LARGEST_ANSWER
    ) -> Reply:
        """Send a request; repeat it with the new admin key if the key that was refused has been replaced."""
        sent_with = self._headers
        reply = await self._send(method, path, payload, limits, most)
        if reply.status_code in (401, 403):
            self._key.refresh()  # another request may have done so since this one was sent
            self._headers = self._new_headers()
            if self._headers != sent_with:
                reply = await self._send(method, path, payload, limits, most)
        return reply

    async def _send(self, method: str, path: str, payload: bytes | None, limits: Limits, most: int) -> Reply:
        call = Request(method, f"{self._url}/{path}", self._headers_of(payload), payload, limits, most)

        async def attempt() -> Reply:
            began, status = loop.time(), None
            try:
                reply = await self._transport.send(call)
                status = reply.status_code
                return reply
            finally:
                self._on_request(method, path, status, loop.time() - began)

        loop = asyncio.get_running_loop()
        resent = False
        try:
            try:
                return await attempt()
            except CUT_OFF:
                resent = True
                return await self._send_again(method, path, attempt)
        except httpx.RequestError as error:
            # A reference cycle between frames and error would otherwise stay until the garbage collector runs.
            error.__traceback__ = None
            sent = resent or not isinstance(error, _NOT_SENT)
            what, words = f"{method} {path}: {type(error).__name__}", scrub(str(error), None, self._key.secret)
            if isinstance(error, httpx.ReadTimeout | httpx.WriteTimeout):
                # The wording of a request that ends by its own limit.
                seconds = limits.read if isinstance(error, httpx.ReadTimeout) else limits.write
                what, words = f"{method} {path}", f"no answer within {seconds or self._timeout:g} s"
            raise self._placed(GatewayUnavailable(f"{what}: {words or 'no answer'}", sent=sent), what) from error

    async def _send_again(self, method: str, path: str, attempt: Callable[[], Awaitable[Reply]]) -> Reply:
        # Constructing the policy takes longer than a write, so it is used only in this rare case.
        reply: Reply = await resending()(attempt)
        if method == "GET" or reply.status_code < 300 or (method == "DELETE" and is_gone(reply)):
            return replace(reply, resent=True)
        if reply.status_code in REDIRECTS:
            raise self._redirected(reply, method, path, sent=True)
        raise refused_again(reply, f"{method} {path}", self._fields)

    async def _error(self, reply: Reply, method: str, path: str, record: Record | None = None) -> GatewayError:
        if reply.status_code in REDIRECTS:
            return self._redirected(reply, method, path)
        what = f"{method} {path}"
        make = strange if method != "GET" and is_strange(reply) else error_of
        body, size = (record.body, len(record.payload)) if record else (None, 0)
        make_it = partial(make, reply, what, self._fields, body, self._key.secret)
        return self._placed(await self._aside(size, make_it), what)

    async def _aside(self, size: int, work: Callable[[], T]) -> T:
        """Process a record of `size` bytes: in a thread, one at a time, if it would block the event loop for long."""
        if size <= _SMALL:
            return work()
        async with self._thread:
            return await in_daemon(work, name="admin-large")

    def _placed(self, error: GatewayError, what: str) -> GatewayError:
        """Set the cause of an error that concerns the whole cluster: the address instead of the request."""
        if isinstance(error, GatewayUnavailable):
            url = urlsplit(self._url)
            place = f"{url.hostname}:{url.port or (443 if url.scheme == 'https' else 80)}"
            words = str(error).removeprefix(f"{what}: ").removeprefix(f"cannot connect to {place}: ")
            error.cause = f"{place}: {words}"
        return error

    def _redirected(self, reply: Reply, method: str, path: str, *, sent: bool = False) -> GatewayError:
        return redirected(reply, method, path, self._url, self._fields, self._key.secret, sent=sent)

    def _headers_of(self, payload: bytes | None) -> tuple[tuple[str, str], ...]:
        return self._headers if payload is None else (*self._headers, ("Content-Length", str(len(payload))))

    def _new_headers(self) -> tuple[tuple[str, str], ...]:
        # Replies are not decompressed, and without this header a proxy may compress them.
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity", "User-Agent": self._user_agent}
        if self._key.secret:
            headers["X-API-KEY"] = self._key.secret
        return tuple(headers.items())


def _path(key: RecordKey) -> str:
    return f"{key.kind}/{quote(key.id, safe='')}"
