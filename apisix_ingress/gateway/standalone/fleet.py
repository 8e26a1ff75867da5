"""The gateways of one group: all get the same document, and gateways that lose it or are new get it again."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any

import structlog

from apisix_ingress.errors import GatewayError, GatewayUnauthorized, GatewayUnavailable
from apisix_ingress.gateway.backend import DependencyPending, Fence
from apisix_ingress.gateway.standalone.document import Document, digest_of, parsed
from apisix_ingress.gateway.standalone.endpoint import REFUSED, Endpoint, NoMemory, Outdated
from apisix_ingress.model.records import EXCLUSIVE
from apisix_ingress.runtime.clock import Clock

log = structlog.get_logger()

CHECK_SECONDS = 1.0
"""Pause between two checks of a gateway: one that restarted is noticed after this and the time of a request at most."""

FULL_SECONDS = 60.0
"""Seconds for which no document is sent that is as large as one that a gateway had no memory for.

Such a gateway forgets the document before, too, until it is sent again.
"""

Resolve = Callable[[], Awaitable[Sequence[str]]]
"""Returns the URLs of all gateways of a group; raises GatewayUnavailable."""


class Fleet:
    """The gateways of one group.

    Args:
        name: The name of the cluster, for the log.
        connect: Returns the endpoint at a URL.
        resolve: Finds the gateways.
        seconds: The maximum duration of one request.
        clock: The clock.
    """

    def __init__(
        self, name: str, connect: Callable[[str], Endpoint], resolve: Resolve, *, seconds: float, clock: Clock
    ) -> None:
        self.endpoints: dict[str, Endpoint] = {}
        """URL → gateway."""
        self.document: Document | None = None
        """What every gateway should have; None: unknown."""
        self._connect = connect
        self._resolve = resolve
        self._seconds = seconds
        self._clock = clock
        self._content, self._digest = b"", ""
        self._changes = 0
        self._full: tuple[int, float, NoMemory] | None = None
        self._kept: set[str] = set()
        self._log = log.bind(cluster=name)

    async def refresh(self) -> None:
        """Find out which gateways exist; the last ones that were found stay if that fails.

        Raises:
            GatewayUnavailable: None is known.
        """
        try:
            urls = await self._resolve()
        except GatewayUnavailable as error:
            if not self.endpoints:
                raise
            self._log.warning("standalone.unresolved", error=str(error))
        else:
            self.endpoints = {url: self.endpoints.get(url) or self._connect(url) for url in urls}

    @property
    def is_outdated(self) -> bool:
        """Whether another client has written a newer document."""
        return any(isinstance(each.error, Outdated) for each in self.endpoints.values())

    def require_contact(self) -> None:
        """Raise the last error of a gateway unless one has responded to the last request."""
        _raise_unless_one(each.error for each in self.endpoints.values())

    async def probe(self) -> None:
        """Check whether a gateway responds and accepts the key.

        Raises:
            GatewayError: None does.
        """
        await self.refresh()
        await self._ask(Endpoint.check, self.endpoints.values())
        self.require_contact()

    async def read(self) -> list[bytes]:
        """Return the documents of all gateways that respond.

        Raises:
            GatewayError: None does.
        """
        await self.refresh()
        results = await self._ask(Endpoint.read, self.endpoints.values())
        self.require_contact()
        return [result for result in results if isinstance(result, bytes)]

    def intend(self, document: Document | None) -> None:
        """Set what every gateway should have; `keep` gives it to them."""
        self._intend(document, document.encode() if document else b"")

    def _intend(self, document: Document | None, content: bytes) -> None:
        self.document, self._content = document, content
        self._digest = digest_of(self._content)
        self._changes += 1

    async def push(self, document: Document, term: Fence) -> None:
        """Give a document to every gateway that responded last; the others get it when they respond again.

        Raises:
            GatewayRejected, DependencyPending: A gateway rejects a record; every gateway keeps the document before, or
                gets it again.
            NoMemory: A gateway has no memory for it, or had none for a smaller one; else as above.
            Outdated: A gateway has a newer document; the others may have accepted this one.
            GatewayError: No gateway has certainly accepted it; they get it when they respond again.
        """
        before = self.document or Document()
        content = document.encode()
        self._require_memory(len(content))
        known = [each for each in self.endpoints.values() if not isinstance(each.error, GatewayUnauthorized)]
        asked = [each for each in known if each.error is None] or known
        if not asked:
            self.require_contact()
        self._intend(document, content)
        await self._ask(partial(self._write, term=term), asked)
        errors = [each.error for each in asked]
        refusals = [error for error in errors if isinstance(error, REFUSED)]
        for error in errors:
            if isinstance(error, NoMemory):
                self._full = len(content), self._clock.monotonic(), error
        for each in asked:
            each.error = None if isinstance(each.error, REFUSED) else each.error  # it responds
        if refusals:
            self.intend(before if len(refusals) == len(errors) else before.retracting(document))
        outdated = [error for error in errors if isinstance(error, Outdated)]
        if refusals or outdated or all(errors):
            raise next(error for error in (*refusals, *outdated, *errors) if error)

    def _require_memory(self, size: int) -> None:
        """Raise the last error of this kind if a gateway had no memory for a document of this size."""
        if self._full is not None:
            smallest, since, error = self._full
            if size >= smallest and self._clock.monotonic() - since < FULL_SECONDS:
                raise error

    async def keep(self, term: Fence) -> None:
        """Check every gateway each second, and give the document to gateways without it. Never returns."""
        async with asyncio.TaskGroup() as group:
            while True:
                for url in self.endpoints.keys() - self._kept:
                    group.create_task(self._keep(url, term), name=f"standalone-{url}")
                await self._clock.sleep(CHECK_SECONDS)
                with contextlib.suppress(GatewayUnavailable):  # the next list reports it
                    await self.refresh()

    async def _keep(self, url: str, term: Fence) -> None:
        self._kept.add(url)
        try:
            while (endpoint := self.endpoints.get(url)) is not None:
                changes = self._changes
                await self._ask(Endpoint.check, [endpoint])
                if endpoint.error is None and self._is_behind(endpoint):
                    await self._ask(partial(self._write, term=term, unless_after=changes), [endpoint])
                if isinstance(endpoint.error, DependencyPending):
                    await self._ask(partial(self._make_room, term=term), [endpoint])
                await self._clock.sleep(CHECK_SECONDS)
        finally:
            self._kept.discard(url)

    def _is_behind(self, endpoint: Endpoint) -> bool:
        """Return whether a gateway needs the document. An empty one would only declare the gateway ready."""
        if self.document is None or self.document.is_empty:
            return False
        return endpoint.digest != self._digest or (endpoint.is_ambiguous and bool(self.document.items["stream_routes"]))

    async def _write(self, endpoint: Endpoint, term: Fence, *, unless_after: int | None = None) -> None:
        async with endpoint.turn:
            if unless_after in (None, self._changes):
                term.check(self._seconds)
                await endpoint.write(self._content, self._digest)

    async def _make_room(self, endpoint: Endpoint, term: Fence) -> None:
        """Remove records whose exclusive keys other records of a gateway have: it was cut off while they moved."""
        held, document = parsed(await endpoint.read()), self.document or Document()
        content = document.without_rivals(held).encode()
        async with endpoint.turn:
            term.check(self._seconds)
            await endpoint.write(content, digest_of(content))
        self.intend((self.document or Document()).again(EXCLUSIVE))

    async def _ask(
        self, request: Callable[[Endpoint], Coroutine[Any, Any, object]], endpoints: Iterable[Endpoint]
    ) -> list[object]:
        """Send a request to some gateways at once; keep and return their errors."""
        asked = list(endpoints)
        results = await asyncio.gather(*map(request, asked), return_exceptions=True)
        for endpoint, result in zip(asked, results, strict=True):
            if isinstance(result, BaseException) and not isinstance(result, GatewayError):
                raise result
            error = result if isinstance(result, GatewayError) else None
            if error is not None and endpoint.error is None:
                self._log.warning("standalone.failed", url=endpoint.url, error=str(error))
            elif error is None and endpoint.error is not None:
                self._log.info("standalone.recovered", url=endpoint.url)
            endpoint.error = error
        return list(results)


def _raise_unless_one(errors: Iterable[GatewayError | None]) -> None:
    """Raise the first error if there are only errors.

    Raises:
        GatewayError: The first one.
    """
    found = list(errors)
    if not found:
        raise GatewayUnavailable("no gateway was found", sent=False)
    if (first := found[0]) is not None and all(found):
        raise first
