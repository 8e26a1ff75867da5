"""The client of the API server: raw JSON in and out; every failure is an exception of `errors`.

One method per verb, each with a timeout in seconds. The client retries only once, with re-read credentials, after
a 401. The class of an error says who retries other failures.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Self

import aiohttp
import orjson
import structlog

from apisix_ingress.errors import (
    KubeConflict,
    KubeError,
    KubeTimeout,
    KubeUnavailable,
    KubeUnreachable,
)
from apisix_ingress.kube.client.api_errors import error_of, explain
from apisix_ingress.kube.client.credentials import find_credentials
from apisix_ingress.kube.client.discovery import Discovery
from apisix_ingress.kube.client.json_depth import cut
from apisix_ingress.kube.client.line_splitter import LineSplitter
from apisix_ingress.kube.client.requests import Request, Transport, read
from apisix_ingress.model.json import JsonObject
from apisix_ingress.runtime.clock import Clock, MonotonicClock

log = structlog.get_logger()

CUT_OFF = (aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError, ConnectionResetError)
"""Errors of an exchange that was cut off. The next request shows whether the API server is down."""

REQUEST_SECONDS = 10.0
LIST_SECONDS = 60.0
CONNECT_SECONDS = 10.0
LARGEST_EVENT = 64 * 2**20
"""Bytes of an event of a watch: an object, the text of which is escaped."""

NO_VERSIONS = ("", "0")
"""resourceVersions that mean "any version": a watch that starts at one of them misses deletes."""

_MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}
_JSON_PATCH = {"Content-Type": "application/json-patch+json"}
_TEST_FAILED = 422


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list.

    Attributes:
        version: resourceVersion of the list, opaque.
        more: Continue token of the next page; empty on the last page.
    """

    items: Sequence[JsonObject]
    version: str
    more: str


class KubeApi:
    """A connection to one API server."""

    def __init__(self, transport: Transport, *, host: str, namespace: str, clock: Clock | None = None) -> None:
        self._transport = transport
        self.discovery = Discovery(self.get, host=host, clock=clock or MonotonicClock())
        self.host = host
        """Host and port, for messages."""
        self.namespace = namespace
        """The namespace of this Pod, or of the kubeconfig's current context."""
        self.outage = ""
        """Why no connection can be made, as text. Empty if the last attempt succeeded."""
        self._reachable = asyncio.Event()
        self._reachable.set()
        self.date = ""
        """The Date header of the API server's last response, watches excluded."""

    @classmethod
    async def connect(cls, kubeconfig: str = "", context: str = "", *, clock: Clock | None = None) -> Self:
        """Read the credentials; send no request yet.

        Args:
            kubeconfig: Path. If empty, the Pod's service account, $KUBECONFIG or ~/.kube/config, in this order.
            context: Context of the kubeconfig; empty: the current one.
            clock: Measures the age of credentials.

        Raises:
            ConfigError: The credentials are missing or malformed.
        """
        clock = clock or MonotonicClock()
        transport = Transport(find_credentials(kubeconfig, context, clock=clock, environ=os.environ), clock=clock)
        access = await transport.open()
        return cls(transport, host=access.host, namespace=access.namespace, clock=clock)

    async def close(self) -> None:
        """Close all connections."""
        await self.discovery.close()
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def end_of_outage(self) -> None:
        """Return as soon as the API server has responded to any request."""
        await self._reachable.wait()

    async def get(self, path: str, *, timeout: float = REQUEST_SECONDS) -> JsonObject:
        """Return the object, or any other JSON, at a path."""
        return await self._request("GET", path, timeout=timeout)

    async def create(self, path: str, body: JsonObject, *, timeout: float = REQUEST_SECONDS) -> JsonObject:
        """Create an object in a collection.

        Raises:
            KubeConflict: The object exists.
        """
        return await self._request("POST", path, body=body, timeout=timeout)

    async def update(self, path: str, body: JsonObject, *, timeout: float = REQUEST_SECONDS) -> JsonObject:
        """Replace an object.

        Raises:
            KubeConflict: The body's `metadata.resourceVersion` is not the current one.
        """
        return await self._request("PUT", path, body=body, timeout=timeout)

    async def patch(
        self, path: str, body: object, *, manager: str = "", timeout: float = REQUEST_SECONDS
    ) -> JsonObject:
        """Merge-patch an object.

        Args:
            path: The object.
            body: The patch.
            manager: Field manager; if empty, the API server uses the name of this program.
            timeout: Seconds.

        Raises:
            KubeConflict: The patch has a resourceVersion that is not the current one.
        """
        query = [("fieldManager", manager)] if manager else []
        return await self._request("PATCH", path, query=query, body=body, headers=_MERGE_PATCH, timeout=timeout)

    async def edit(
        self, path: str, operations: Sequence[JsonObject], *, timeout: float = REQUEST_SECONDS
    ) -> JsonObject:
        """JSON-patch an object (RFC 6902), all or nothing.

        Raises:
            KubeConflict: A `test` operation failed; the status is 422.
        """
        try:
            return await self._request("PATCH", path, body=list(operations), headers=_JSON_PATCH, timeout=timeout)
        except KubeError as error:
            if error.status != _TEST_FAILED:
                raise
            raise KubeConflict(str(error), status=error.status) from None

    async def page(
        self,
        path: str,
        *,
        limit: int,
        more: str = "",
        fields: str = "",
        labels: str = "",
        timeout: float = LIST_SECONDS,
    ) -> Page:
        """Return one page of a list, only of the objects that match the field selector and the label selector.

        The request has no resourceVersion: the first page is a consistent read from etcd, and the other pages belong
        to the same version.

        Raises:
            KubeGone: The continue token expired; start the list again.
            KubeUnavailable: Among others, the response is not a list with a resourceVersion.
        """
        query = [("limit", str(limit)), *([("continue", more)] if more else ()), *_selecting(fields, labels)]
        answer = await self._request("GET", path, query=query, timeout=timeout)
        meta, items = answer.get("metadata"), answer.get("items", ())
        version = meta.get("resourceVersion") if isinstance(meta, dict) else None
        if not isinstance(version, str) or version in NO_VERSIONS or "items" not in answer:
            raise KubeUnavailable(f"{self._at('GET', path)}: the response is not a list")
        if not isinstance(items, list | None):
            raise KubeUnavailable(f"{self._at('GET', path)}: the items of the response are not a list")
        return Page(items or (), version, str(meta.get("continue") or "") if meta else "")

    def watch(
        self, path: str, *, version: str, seconds: int, margin: float, fields: str = "", labels: str = ""
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Watch a collection from a resourceVersion on and return the lines of the response as they arrive.

        Args:
            path: Of the collection.
            version: Where to begin.
            seconds: The API server ends the watch after this time.
            margin: The client gives up the watch after `seconds` plus this without a byte.
            fields: Field selector; empty for all objects.
            labels: Label selector; empty for all objects.
        """
        return self._watch(path, version, seconds, margin, _selecting(fields, labels))

    @asynccontextmanager
    async def _watch(
        self, path: str, version: str, seconds: int, margin: float, selectors: Sequence[tuple[str, str]]
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        query = [
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", version),
            ("timeoutSeconds", str(seconds)),
            *selectors,
        ]
        timeout = aiohttp.ClientTimeout(sock_read=seconds + margin, sock_connect=CONNECT_SECONDS)
        where = self._at("WATCH", path)
        exchange = self._transport.exchange(Request("GET", path, timeout, query))
        with self._mapped(where):
            response = await exchange.__aenter__()
        self._reached()
        try:
            with self._mapped(where):
                await self._raise_for(response, where)
            async with aclosing(self._lines(response, where)) as lines:
                yield lines
        finally:
            await exchange.__aexit__(None, None, None)

    async def _lines(self, response: aiohttp.ClientResponse, where: str) -> AsyncGenerator[bytes, None]:
        splitter = LineSplitter()
        with self._mapped(where):
            async for chunk in response.content.iter_any():
                for line in splitter.feed(chunk):
                    yield line
                if splitter.pending > LARGEST_EVENT:
                    raise KubeUnavailable(f"{where}: an event is larger than {LARGEST_EVENT // 2**20} MiB")
        if splitter.pending:
            raise KubeUnavailable(f"{where}: the stream ended in the middle of an event")

    async def _request(
        self,
        method: str,
        path: str,
        *,
        query: Sequence[tuple[str, str]] = (),
        headers: Mapping[str, str] | None = None,
        body: object = None,
        timeout: float,
    ) -> JsonObject:
        where = self._at(method, path)
        bound = aiohttp.ClientTimeout(total=timeout, sock_connect=min(timeout, CONNECT_SECONDS))
        request = Request(method, path, bound, query, headers or {}, body)
        with self._mapped(where):
            reply = await self._transport.fetch(request)
        self._reached()
        self.date = reply.headers.get("Date", "")
        if reply.status >= 300:
            raise error_of(reply.status, reply.body, where, reply.headers.get("Retry-After"))
        return await self._parse(reply.body, where)

    async def _parse(self, content: bytes, where: str) -> JsonObject:
        try:
            answer = await _loads(content)
        except orjson.JSONDecodeError:
            raise KubeUnavailable(f"{where}: the response is not valid JSON") from None
        if not isinstance(answer, dict) or not isinstance(answer.get("metadata") or {}, dict):
            raise KubeUnavailable(f"{where}: the response is not a Kubernetes API object")
        return answer

    async def _raise_for(self, response: aiohttp.ClientResponse, where: str) -> None:
        if response.status >= 300:
            raise error_of(response.status, await read(response), where, response.headers.get("Retry-After"))

    @contextmanager
    def _mapped(self, where: str) -> Iterator[None]:
        """Turn errors of the transport into KubeUnavailable; their messages never contain headers."""
        try:
            yield
        except (aiohttp.ClientError, OSError) as error:
            # An aiohttp stream references its error, and the frames of the error's traceback reference the stream.
            # This cycle would stay in memory until the garbage collector runs, which is rare.
            error.__traceback__ = None
            raise self._translated(error, where) from None

    def _translated(self, error: Exception, where: str) -> KubeUnavailable:
        if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
            self._lost(explain(error))
            return KubeUnreachable(f"{where}: {explain(error)}")
        if isinstance(error, CUT_OFF):
            return KubeUnreachable(f"{where}: {explain(error)}")
        kind = KubeTimeout if isinstance(error, TimeoutError) else KubeUnavailable
        return kind(f"{where}: {explain(error)}")

    def _lost(self, why: str) -> None:
        """Log an outage once, no matter how many requests fail."""
        if not self.outage:
            remedy = "check that the API server runs and that the kubeconfig has its address"
            log.error("apiserver.unreachable", server=self.host, problem=why, remedy=remedy)
        self.outage = why
        self._reachable.clear()

    def _reached(self) -> None:
        if self.outage:
            log.info("apiserver.reachable", server=self.host)
            self.outage = ""
            self._reachable.set()

    def _at(self, method: str, path: str) -> str:
        return f"API server {self.host}: {method} {path}"


async def _loads(content: bytes) -> Any:
    """Parse JSON. If it is nested too deeply for the parser, cut off the levels that are too deep.

    Raises:
        orjson.JSONDecodeError: It is not valid JSON.
    """
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        # Cutting is rare but may take long, so it must not block the event loop.
        return orjson.loads(await asyncio.to_thread(cut, content))


def _selecting(fields: str, labels: str) -> list[tuple[str, str]]:
    return [(name, text) for name, text in (("fieldSelector", fields), ("labelSelector", labels)) if text]
