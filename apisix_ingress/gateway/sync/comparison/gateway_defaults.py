"""Defaults that a gateway adds to records before it stores them, derived from its published schemas.

APISIX up to 3.13 stores a record with the defaults of its schema and plugins added, later versions store it as sent.
This module finds out which records differ only by defaults. It requests schemas only if records differ.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import replace

import orjson
import structlog

from apisix_ingress.errors import GatewayError
from apisix_ingress.gateway.backend import ObservedRecord
from apisix_ingress.model.admin_address import version_of
from apisix_ingress.model.formats.schema_defaults import with_defaults
from apisix_ingress.model.json import FrozenJson, JsonObject, mapping_in
from apisix_ingress.model.keys import RecordKey, RecordKind
from apisix_ingress.model.records import Record, comparable
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.tasks import in_turns

log = structlog.get_logger()

Read = Callable[[str], Awaitable[bytes]]
"""Path below the Admin API → body of the response; raises GatewayError."""

Expected = Callable[[RecordKey], Iterable[Record]]
"""Key → the records that may have been written under it."""

KEPT = 3600.0
"""Seconds for which a response is cached, also an error."""

PATIENCE = 10.0
"""Seconds that all requests for schemas together may take, since writes wait for them."""

_AS_SENT = (3, 14)
"""The first version that stores records as sent."""

_SCHEMAS: Mapping[RecordKind, str] = {
    "ssls": "schema/ssl",
    "upstreams": "schema/upstream",
    "plugin_configs": "schema/plugin_config",
    "consumer_groups": "schema/consumer_group",
    "consumers": "schema/consumer",
    "protos": "schema/proto",
    "global_rules": "schema/global_rule",
    "routes": "schema/route",
    "stream_routes": "schema/stream_route",
}

_GENERATED = {"jwt-auth": "secret"}
"""Plugin → the field for which a gateway generates a value if a consumer has none."""

_HTTP, _STREAM = (f"plugins?all=true&subsystem={name}" for name in ("http", "stream"))


class Defaults:
    """The defaults of one gateway cluster.

    Args:
        cluster: Its name in the settings.
        read: Reads a path of its Admin API.
        clock: Measures the age of responses.
    """

    def __init__(self, cluster: str, read: Read, *, clock: Clock) -> None:
        self._read = read
        self._clock = clock
        self._version = ""
        self._responses: dict[str, tuple[float, JsonObject]] = {}
        """Path → when it was read, and the response; empty for an error."""
        self._unknown_plugins: set[str] = set()
        """Plugins that the responses do not contain."""
        self._seen: dict[RecordKey, tuple[bytes, bytes]] = {}
        """Record → hash of the stored body, and the digest of the record that it was stored from."""
        self._log = log.bind(cluster=cluster)

    async def without_defaults(
        self, found: Mapping[RecordKey, ObservedRecord], expected: Expected, version: str
    ) -> dict[RecordKey, ObservedRecord]:
        """Return records without the defaults: records that differ only by defaults get the expected digest.

        Args:
            found: The records in the gateway.
            expected: The records that may have been written under each key.
            version: The `Server` header of the gateway.
        """
        result = dict(found)
        if not adds_defaults(version):
            return result
        self._follow(version)
        differing = [key async for key in in_turns(found) if _differs(found[key], expected(key))]
        async for key in in_turns(differing):
            result[key] = self._from_cache(key, found[key])
        unexplained = [key async for key in in_turns(differing) if _differs(result[key], expected(key))]
        await self.load_schemas(record for key in unexplained for record in expected(key))
        async for key in in_turns(unexplained):
            result[key] = self._explained(key, found[key], expected(key)) or result[key]
        for gone in self._seen.keys() - found.keys():
            del self._seen[gone]
        return result

    async def load_schemas(self, records: Iterable[Record]) -> None:
        """Read the missing schemas of some records; stop if the gateway does not respond."""
        paths: dict[str, None] = {}
        async for record in in_turns(records):
            paths.update(dict.fromkeys(self._missing_paths(record)))
        try:
            async with asyncio.timeout(PATIENCE):
                for path in paths:
                    await self._load(path)
        except (GatewayError, TimeoutError) as error:
            self._log.info("defaults.unknown", error=str(error) or "no response in time")

    def filled(self, record: Record, kept: bytes) -> bytes:
        """Return the digest that a record has in the gateway, as far as its defaults are known.

        Args:
            record: The record as sent.
            kept: The digest of the stored record, which contains generated values.
        """
        try:
            return comparable(record.key.kind, _completed(self._filled(record), kept))
        except (TypeError, RecursionError):
            return record.digest

    def _follow(self, version: str) -> None:
        """Clear the cache if the gateway has another version now."""
        if version != self._version:
            self._version = version
            self._responses.clear()
            self._unknown_plugins.clear()

    def _from_cache(self, key: RecordKey, found: ObservedRecord) -> ObservedRecord:
        seen, meant = self._seen.get(key, (b"", b""))
        return replace(found, digest=meant) if seen and seen == _hash(found.digest) else found

    def _explained(self, key: RecordKey, found: ObservedRecord, records: Iterable[Record]) -> ObservedRecord | None:
        """Return an observed record with the digest of the record that it was stored from, if it is one of these."""
        for record in records:
            if self.filled(record, found.digest) == found.digest:
                self._seen[key] = _hash(found.digest), record.digest
                return replace(found, digest=record.digest)
        return None

    # Schemas.

    def _missing_paths(self, record: Record) -> Iterator[str]:
        now = self._clock.monotonic()
        for path in _paths(record):
            read_at, response = self._responses.get(path, (None, {}))
            plugins = set(_plugins(record)) if path in (_HTTP, _STREAM) else set()
            unknown = plugins - response.keys() - self._unknown_plugins
            if read_at is None or now - read_at > KEPT or (response and unknown):
                yield path
            if response:
                # Read them once more, in case the plugin has been enabled since, but not again and again.
                self._unknown_plugins |= unknown

    async def _load(self, path: str) -> None:
        """Read a path and cache the response.

        Raises:
            GatewayError: There was no response.
        """
        try:
            response = orjson.loads(await self._read(path))
        except orjson.JSONDecodeError:
            response = None
        except GatewayError as error:
            if error.status is None:
                raise
            self._log.info("defaults.unavailable", path=path, error=str(error))
            response = None
        self._responses[path] = self._clock.monotonic(), response if isinstance(response, dict) else {}

    # Adding defaults.

    def _filled(self, record: Record) -> FrozenJson:
        kind, body = record.key.kind, record.body
        if kind == "plugin_metadata":
            filled: FrozenJson = with_defaults(self._plugin(_HTTP, record.key.id).get("metadata_schema"), body)
            return filled
        whole = with_defaults(self._response(_SCHEMAS[kind]), body)
        plugins = whole.get("plugins")
        if not isinstance(plugins, dict):
            return mapping_in(whole)
        path = _STREAM if kind == "stream_routes" else _HTTP
        own = "consumer_schema" if kind == "consumers" else "schema"
        schemas = {name: self._plugin(path, name) for name in plugins}
        chosen = {name: each.get(own, each.get("schema")) for name, each in schemas.items()}
        return {**whole, "plugins": {name: with_defaults(chosen[name], config) for name, config in plugins.items()}}

    def _response(self, path: str) -> JsonObject:
        return self._responses.get(path, (0.0, {}))[1]

    def _plugin(self, path: str, name: str) -> FrozenJson:
        return mapping_in(self._response(path).get(name))


def adds_defaults(version: str) -> bool:
    """Return whether a gateway with this `Server` header may add defaults; one that hides its version may."""
    numbers = version_of(version)
    return numbers is None or numbers < _AS_SENT


def _completed(body: FrozenJson, kept: bytes) -> FrozenJson:
    """Return a body with the values that the gateway generated: it would generate others if it was written again."""
    plugins = mapping_in(body.get("plugins"))
    open_ = {name for name, field in _GENERATED.items() if name in plugins and field not in mapping_in(plugins[name])}
    if "username" not in body or not open_ or not kept:
        return body
    there = mapping_in(mapping_in(orjson.loads(kept)).get("plugins"))
    made = {name: {_GENERATED[name]: mapping_in(there.get(name)).get(_GENERATED[name])} for name in open_}
    known = {name: {**plugins[name], **made[name]} for name in open_ if all(made[name].values())}
    return {**body, "plugins": {**plugins, **known}}


def _differs(found: ObservedRecord, records: Iterable[Record]) -> bool:
    """Return whether a record differs from all records that may have been written, if there are any."""
    digests = [record.digest for record in records]
    return bool(digests) and found.digest not in digests


def _paths(record: Record) -> Iterator[str]:
    """Yield the paths of a record's schemas."""
    kind = record.key.kind
    if kind in _SCHEMAS:
        yield _SCHEMAS[kind]
    if any(_plugins(record)):
        yield _STREAM if kind == "stream_routes" else _HTTP


def _plugins(record: Record) -> Iterable[str]:
    return (record.key.id,) if record.key.kind == "plugin_metadata" else mapping_in(record.body.get("plugins"))


def _hash(digest: bytes) -> bytes:
    return hashlib.sha256(digest).digest()
