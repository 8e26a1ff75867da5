"""The client of a gateway cluster's Admin API, version 3: writes, reads and lists of records.

`request_sender` sends the requests. The sync engine decides when to write, and when to retry after a failure.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from http import HTTPStatus
from typing import Self
from urllib.parse import quote

import httpx
from tenacity import retry, retry_if_exception, stop_after_attempt, wait_random

from apisix_ingress.errors import GatewayRejected, GatewayUnavailable
from apisix_ingress.gateway.adminapi.admin_key import SETTINGS, Fields
from apisix_ingress.gateway.adminapi.admin_key import AdminKey as AdminKey
from apisix_ingress.gateway.adminapi.error_text import scrub
from apisix_ingress.gateway.adminapi.list_parser import begins_list
from apisix_ingress.gateway.adminapi.request_sender import CONNECT_SHARE, RequestHook, RequestSender
from apisix_ingress.gateway.adminapi.responses import (
    AdminResponse,
    bodies_of,
    found_of,
    is_disabled,
    is_done,
    is_gone,
    record_of,
    records_of,
    rejections_in,
)
from apisix_ingress.gateway.adminapi.tls import TlsContext
from apisix_ingress.gateway.adminapi.transport import LARGEST_ANSWER, AiohttpTransport
from apisix_ingress.gateway.backend import ClusterListing, Fence, ObservedRecord
from apisix_ingress.model.formats.size import written_size
from apisix_ingress.model.json import FrozenJson, JsonObject, canonical
from apisix_ingress.model.keys import RECORD_KINDS, RecordKey, RecordKind
from apisix_ingress.model.names import is_owned
from apisix_ingress.model.records import UNLABELLED, WITHOUT_ID, Record

# Connections for lists and a probe in addition to the writes, so that no request waits for a connection.
_SPARE_CONNECTIONS = len(RECORD_KINDS) + 1
# Seconds. A list of all routes may be large and take the gateway a while.
LIST_TIMEOUT = 60.0
LARGEST_LIST = 256 * 2**20
"""The default limit for the size of a list in bytes."""

RELISTS, RELIST_PAUSE = 3, 0.3
"""Attempts to read a list, and the maximum pause between them in seconds. Other kinds are not listed again."""

VALIDATE = "configs/validate"
"""Checks a document of records without writing it (APISIX admin/init.lua)."""

# Bytes of records per document; the gateway accepts 1.5 MiB.
_VALIDATED_AT_ONCE = 2**20

_UNKNOWN = ObservedRecord(b"")
_NO_RECORDS = b'{"list":[]}'
# Seconds without a byte of a list after which the gateway is considered frozen.
_LIST_SILENCE = 10.0


def _has_failed(error: BaseException) -> bool:
    """Return whether a gateway replied with an error that may be temporary."""
    return isinstance(error, GatewayUnavailable) and (error.status or 0) >= 500 and error.retry_after is None


class AdminClient:
    """The Admin API of one cluster.

    Args:
        url: The URL of the Admin API, without a trailing slash.
        key: The admin key.
        more_urls: URLs of the Admin API of other gateways of the cluster, for when no connection to one is possible.
        controller: The name of this controller, which the labels of its records contain.
        timeout: Seconds for one write, including repeated requests.
        concurrency: The maximum number of concurrent writes.
        tls: Provides the TLS context of https requests.
        transport: Sends the requests; None: over the network.
        user_agent: The User-Agent of requests, for the gateway's access log.
        on_request: Called after each request with method, path, HTTP status (None: no response) and seconds.
        fields: The names of the settings of address and key, for messages.
        largest_list: The maximum size of a list in bytes; a larger list is an error.
    """

    def __init__(
        self,
        url: str,
        key: AdminKey,
        *,
        more_urls: Sequence[str] = (),
        controller: str,
        timeout: float,
        concurrency: int = 1,
        tls: TlsContext | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        user_agent: str = "apisix-ingress",
        on_request: RequestHook = lambda method, path, status, seconds: None,
        fields: Fields = SETTINGS,
        largest_list: int = LARGEST_LIST,
    ) -> None:
        transport = transport or AiohttpTransport(connections=concurrency + _SPARE_CONNECTIONS, tls=tls)
        self.requests = RequestSender(
            (url, *more_urls),
            key,
            timeout=timeout,
            transport=transport,
            user_agent=user_agent,
            on_request=on_request,
            fields=fields,
        )
        self.controller = controller
        self.largest_list = largest_list
        connect = timeout * CONNECT_SHARE
        self.list_limits = httpx.Timeout(_LIST_SILENCE, connect=connect, pool=connect).as_dict()
        self._version = ""
        self.date = ""
        """The `Date` header of the last list."""

    def elsewhere(self, url: str, key: AdminKey, fields: Fields) -> Self:
        """Return a client for another address that shares the transport; closing either closes both."""
        other = copy(self)
        other.requests = self.requests.elsewhere(url, key, fields)
        other._version = ""
        return other

    @property
    def timeout(self) -> float:
        """The maximum duration of a write in seconds."""
        return self.requests.timeout

    async def attend(self, term: Fence) -> None:
        """Do nothing: etcd keeps the gateways equal."""

    async def put(self, record: Record) -> bool:
        """Create or replace a record; return whether the request had to be repeated."""
        path = _path(record.key)
        response = await self.requests.request("PUT", path, record.payload)
        if not is_done(response):
            raise await self.requests.error(response, "PUT", path, record)
        return response.is_resent

    async def delete(self, key: RecordKey) -> bool:
        """Delete a record, missing or not; return whether the request had to be repeated."""
        path = _path(key)
        response = await self.requests.request("DELETE", path)
        if not (is_done(response) or is_gone(response)):
            raise await self.requests.error(response, "DELETE", path)
        return response.is_resent

    async def get(self, key: RecordKey) -> ObservedRecord | None:
        """Return a record as the gateway has it, owned or not; None if it does not exist."""
        path = _path(key)
        response = await self.requests.request("GET", path)
        if is_gone(response) or is_disabled(response):
            return None
        if response.status_code >= 300:
            raise await self.requests.error_of_read(response, path)
        parse = partial(record_of, key.kind, response.content, self.controller)
        found = await self.requests.aside(len(response.content), parse)
        if found is None:
            raise await self.requests.error_of_read(response, path)
        return found

    async def filled(self) -> None:
        """Return: a write ends when the gateways have the record."""

    async def probe(self) -> None:
        """List the smallest page of routes, which requires a valid key and a working etcd behind the gateway."""
        response = await self.requests.request("GET", "routes?page=1&page_size=10")
        if await self._is_emptied(response):
            return
        if response.status_code >= 300:
            raise await self.requests.error_of_read(response, "routes")
        if not (response.is_cut and begins_list(response.content)):
            next(bodies_of("routes", response.content, self.requests.fields), None)  # raises if it is not a list

    async def read(self, path: str) -> bytes:
        """Return the response for a path that is not a record, such as `plugins/list`.

        Raises:
            GatewayError: There was no response, or an error.
        """
        response = await self.requests.request("GET", path)
        if response.status_code >= 300:
            raise await self.requests.error(response, "GET", path)
        if response.is_cut:
            raise GatewayUnavailable(f"GET {path}: the answer is larger than {LARGEST_ANSWER // 2**20} MiB", sent=False)
        return response.content

    async def validate(self, records: Sequence[Record]) -> dict[RecordKey, str]:
        """Return the records that the gateway would reject, each with its error; nothing is written.

        References between records are not checked. A gateway without this request (APISIX before 3.17) rejects nothing.

        Raises:
            GatewayError: There was no response, or another error.
        """
        found: dict[RecordKey, str] = {}
        for part in _documents(records):
            found |= await self._validate(part)
        return found

    async def _validate(self, records: Sequence[Record]) -> dict[RecordKey, str]:
        by_kind: dict[str, list[Record]] = {}
        for record in records:
            by_kind.setdefault(record.key.kind, []).append(record)
        document = {kind: [_validated(record) for record in kept] for kind, kept in by_kind.items()}
        response = await self.requests.request("POST", VALIDATE, canonical(document))
        if is_done(response) or response.status_code == HTTPStatus.NOT_FOUND:
            return {}
        if (errors := rejections_in(response)) is None:
            raise await self.requests.error(response, "POST", VALIDATE)
        rejected = [(by_kind[kind][index], text) for kind, index, text in errors if index < len(by_kind.get(kind, ()))]
        return {record.key: scrub(text, record.body) for record, text in rejected}

    async def bodies(self, kind: str) -> dict[str, JsonObject] | None:
        """Return every record of a kind by id, owned or not, or None if the gateway does not serve the kind.

        The kind may be one that this program never writes, such as `services`.

        Raises:
            GatewayError: There was no response, or an error.
        """
        content = await self._list(kind)
        return None if content is None else dict(filter(None, bodies_of(kind, content, self.requests.fields)))

    async def label(self, key: RecordKey, labels: Mapping[str, str]) -> None:
        """Add labels to a record; its other fields, including fields that the gateway never returns, stay unchanged.

        Raises:
            GatewayError: The request failed; gateways reject it for kinds without PATCH.
        """
        path = _path(key)
        response = await self.requests.request("PATCH", path, canonical({"labels": dict(labels)}))
        if not is_done(response):
            raise await self.requests.error(response, "PATCH", path)

    @property
    def version(self) -> str:
        """The `Server` header of the last list; empty if there was none."""
        return self._version

    def credentials_changed(self) -> bool:
        """Return whether the file of the admin key has changed since it was read."""
        return self.requests.key.changed()

    async def list_managed(
        self, ledger: Collection[RecordKey], kinds: Collection[RecordKind] = RECORD_KINDS
    ) -> ClusterListing:
        """Read every record of some kinds, one list per kind."""
        owned: dict[RecordKey, ObservedRecord] = {}
        unclaimed: dict[RecordKey, ObservedRecord] = {}
        foreign: set[RecordKey] = set()
        disabled: set[RecordKind] = set()
        for kind in kinds:
            content = await self._list_with_retry(kind)
            if content is None:
                disabled.add(kind)
            else:
                others = await self._sort(kind, content, ledger, owned)
                if kind in UNLABELLED:
                    unclaimed |= others
                else:
                    foreign |= others.keys()
        if len(disabled) == len(RECORD_KINDS):
            where, setting = self.requests.url, self.requests.fields.url
            raise GatewayRejected(404, f"{where} serves no kind of record: check {setting}")
        return ClusterListing(owned, frozenset(foreign), unclaimed, frozenset(disabled), self._version)

    async def aclose(self) -> None:
        """Close every connection."""
        await self.requests.transport.aclose()

    @retry(
        retry=retry_if_exception(_has_failed),
        stop=stop_after_attempt(RELISTS),
        wait=wait_random(0, RELIST_PAUSE),
        reraise=True,
    )
    async def _list_with_retry(self, kind: str) -> bytes | None:
        """Return the list of a kind as `_list` does; repeat the request if the gateway responded with an error."""
        return await self._list(kind)

    async def _list(self, kind: str) -> bytes | None:
        """Return the list of a kind, or None if the gateway does not serve the kind."""
        try:
            async with asyncio.timeout(LIST_TIMEOUT):
                limits, largest = self.list_limits, self.largest_list
                response = await self.requests.send("GET", kind, limits=limits, largest=largest)
        except TimeoutError:
            raise GatewayUnavailable(f"GET {kind}: no complete list within {LIST_TIMEOUT:g} s") from None
        if response.is_cut and response.status_code < 300:
            size, field = written_size(self.largest_list), self.requests.fields.largest_list
            why = f"the list is larger than {size}: increase {field} if the gateway is meant to have this many records"
            raise GatewayUnavailable(f"GET {kind}: {why}", sent=False)
        self._version = response.headers.get("Server", "")
        self.date = response.headers.get("Date", "")
        if response.status_code < 300:
            return response.content
        if is_disabled(response):
            return None
        if await self._is_emptied(response):
            return _NO_RECORDS
        raise await self.requests.error_of_read(response, kind)

    async def _is_emptied(self, response: AdminResponse) -> bool:
        """Return whether a list is missing because etcd behind the gateway was emptied, with the prefix of every kind.

        A URL below the Admin API is answered in the same way, but has no list of plugins.
        """
        return is_gone(response) and (await self.requests.request("GET", "plugins/list")).status_code < 300

    async def _sort(
        self, kind: RecordKind, content: bytes, ledger: Collection[RecordKey], owned: dict[RecordKey, ObservedRecord]
    ) -> dict[RecordKey, ObservedRecord]:
        """Add the owned records to `owned` and return the others; only those of kinds without labels are parsed."""
        others: dict[RecordKey, ObservedRecord] = {}
        for record in records_of(kind, content, self.requests.fields):
            if record is None:
                await asyncio.sleep(0)
                continue
            key, body, size, revision = record
            is_ours = key in ledger or is_owned(body.get("labels"), self.controller)
            if is_ours or kind in UNLABELLED:
                parse = partial(found_of, kind, body, revision)
                (owned if is_ours else others)[key] = await self.requests.aside(size, parse)
            else:
                others[key] = _UNKNOWN
        return others


def _documents(records: Sequence[Record]) -> Iterator[list[Record]]:
    """Yield the records in parts that the gateway accepts in one request."""
    part: list[Record] = []
    size = 0
    for record in records:
        if part and size + record.size > _VALIDATED_AT_ONCE:
            yield part
            part, size = [], 0
        part.append(record)
        size += record.size
    if part:
        yield part


def _validated(record: Record) -> FrozenJson:
    """Return the body for a document of records, in which every record is identified by its body."""
    return {"id": record.key.id, **record.body} if record.key.kind in WITHOUT_ID else record.body


def _path(key: RecordKey) -> str:
    # The id of a secret manager is a path: its kind and its name.
    return f"{key.kind}/{quote(key.id, safe='/' if key.kind == 'secrets' else '')}"
