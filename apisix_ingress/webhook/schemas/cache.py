"""The cache of one gateway cluster's plugin schemas, filled in the background and never while an API server waits.

Schemas are valid until the cluster fails to respond: then nothing is known about it until it responds again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from urllib.parse import quote

import orjson
import structlog

from apisix_ingress.errors import GatewayError, GatewayRejected
from apisix_ingress.model.json import JsonObject
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.webhook.schemas.book import SchemaBook, Subsystem, compile_subsystem

log = structlog.get_logger()

Read = Callable[[str], Awaitable[bytes]]
"""Path below the Admin API → body of the response; raises GatewayError."""

REFRESH = 60.0
"""Seconds between two reads."""

SOONEST = 5.0
"""Seconds between two reads on request."""

RETRY = (1.0, 30.0)
"""Seconds until the retry after a first failure, and at most."""

_BULK = "plugins?all=true&subsystem="
_SUBSYSTEMS = ("http", "stream")


class SchemaCache:
    """The published plugin schemas of one cluster.

    Args:
        cluster: Its name.
        read: Reads from its Admin API.
        clock: Provides the time.
        rng: Spreads the requests of several replicas.
    """

    def __init__(self, cluster: str, read: Read, *, clock: Clock, rng: random.Random) -> None:
        self.cluster = cluster
        self._read = read
        self._clock = clock
        self._rng = rng
        self._book: SchemaBook | None = None
        self._read_at: float | None = None
        self._problem = ""
        self._failures = 0
        self._refresh_requested = False

    @property
    def book(self) -> SchemaBook | None:
        """The latest schemas of the cluster; None while it does not respond."""
        return self._book

    @property
    def age(self) -> float | None:
        """Seconds since the cluster responded; None if it never did."""
        return None if self._read_at is None else self._clock.monotonic() - self._read_at

    def request_refresh(self) -> None:
        """Read the schemas soon, since the cluster may have a new plugin; may be called from any thread."""
        self._refresh_requested = True

    async def run(self) -> None:
        """Keep the schemas up to date until cancelled."""
        while True:
            await self.refresh()
            await self._pause()

    async def refresh(self) -> None:
        """Read the schemas once; a failure is logged if it differs from the previous one."""
        try:
            self._book = await self._fetch()
        except GatewayError as error:
            self._unknown(str(error))
            return
        except Exception as error:
            # These are only warnings: a failure must not stop the controller.
            log.error("schemas.crashed", cluster=self.cluster, exc_info=error)
            self._unknown(f"reading them crashed with {type(error).__name__}")
            return
        if self._problem or self._read_at is None:
            log.info("schemas.read", cluster=self.cluster, plugins=len(self._book.http.plugins))
        self._read_at, self._problem, self._failures = self._clock.monotonic(), "", 0

    def _unknown(self, reason: str) -> None:
        self._book = None
        self._failures += 1
        if reason != self._problem:
            self._problem = reason
            log.warning("schemas.unknown", cluster=self.cluster, reason=reason)

    async def _pause(self) -> None:
        """Wait until the next read is due."""
        first, most = RETRY
        if self._failures:
            await self._clock.sleep(min(first * 2.0 ** min(self._failures - 1, 10), most) * self._rng.uniform(0.8, 1.2))
            return
        self._refresh_requested = False
        for _ in range(round(REFRESH / SOONEST)):
            await self._clock.sleep(SOONEST)
            if self._refresh_requested:
                return

    async def _fetch(self) -> SchemaBook:
        documents = [await self._subsystem(name) for name in _SUBSYSTEMS]
        # Compiling takes some 20 ms.
        http, stream = await asyncio.to_thread(_compile, documents)
        return SchemaBook(http, stream)

    async def _subsystem(self, name: str) -> JsonObject:
        """Return the plugins of a subsystem with their schemas; a subsystem that is disabled has none."""
        try:
            return _mapping(await self._read(f"{_BULK}{name}"))
        except GatewayRejected:
            if name == "stream":
                return {}
            return await self._one_by_one()

    async def _one_by_one(self) -> JsonObject:
        """Read the schemas of gateways that do not return them all at once."""
        names = _loads(await self._read("plugins/list"))
        found = [str(name) for name in names] if isinstance(names, list) else []
        return {name: await self._plugin(f"schema/plugins/{quote(name, safe='')}") for name in found}

    async def _plugin(self, path: str) -> JsonObject:
        schema = {"schema": _mapping(await self._read(path))}
        try:
            return {**schema, "consumer_schema": _mapping(await self._read(f"{path}?schema_type=consumer"))}
        except GatewayRejected:
            return schema  # it has none for consumers


def _compile(documents: list[JsonObject]) -> list[Subsystem]:
    return [compile_subsystem(document) for document in documents]


def _mapping(content: bytes) -> JsonObject:
    document = _loads(content)
    if not isinstance(document, dict):
        raise GatewayRejected(200, "the response is not a mapping of plugins")
    return document


def _loads(content: bytes) -> object:
    try:
        document: object = orjson.loads(content)
    except orjson.JSONDecodeError:
        raise GatewayRejected(200, "the response is not valid JSON") from None
    return document
