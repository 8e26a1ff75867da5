"""Defaults that a gateway fills into records before it keeps them, told by the schemas that it publishes.

APISIX up to 3.13 keeps a record with the defaults of its schema and its plugins filled in, later ones as it was sent.
Here is told which records differ by that alone. Nothing is asked while all records are as wanted.
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
"""Path below the Admin API → body of the answer; raises GatewayError."""

Expected = Callable[[RecordKey], Iterable[Record]]
"""A record's key → what it may be meant to be."""

KEPT = 3600.0
"""Seconds that an answer counts, a refusal as well."""

PATIENCE = 10.0
"""Seconds that all questions together may take: what differs waits for them."""

_AS_SENT = (3, 14)
"""The first version that keeps records as they were sent."""

_SCHEMAS: Mapping[RecordKind, str] = {
    "ssls": "schema/ssl",
    "upstreams": "schema/upstream",
    "plugin_configs": "schema/plugin_config",
    "consumers": "schema/consumer",
    "global_rules": "schema/global_rule",
    "routes": "schema/route",
    "stream_routes": "schema/stream_route",
}

_MADE_UP = {"jwt-auth": "secret"}
"""Plugin → the field for which a gateway makes up a value where a consumer has none."""

_HTTP, _STREAM = (f"plugins?all=true&subsystem={name}" for name in ("http", "stream"))


class Defaults:
    """What one gateway cluster fills in.

    Args:
        cluster: Its name in the settings.
        read: Asks its Admin API.
        clock: Measures how old an answer is.
    """

    def __init__(self, cluster: str, read: Read, *, clock: Clock) -> None:
        self._read = read
        self._clock = clock
        self._version = ""
        self._answers: dict[str, tuple[float, JsonObject]] = {}
        """Path → when it was asked, and what was said; a refusal says nothing."""
        self._strangers: set[str] = set()
        """Plugins that the answers do not have."""
        self._seen: dict[RecordKey, tuple[bytes, bytes]] = {}
        """Record → what it was found to be, hashed, and the digest of what was meant by that."""
        self._log = log.bind(cluster=cluster)

    async def left_out(
        self, found: Mapping[RecordKey, ObservedRecord], expected: Expected, version: str
    ) -> dict[RecordKey, ObservedRecord]:
        """Return records as if nothing had been filled in: such that differ by defaults alone are as expected.

        Args:
            found: What the gateway holds.
            expected: What each may be meant to be.
            version: What the gateway calls itself.
        """
        result = dict(found)
        if not fills_in(version):
            return result
        self._follow(version)
        differing = [key async for key in in_turns(found) if _differs(found[key], expected(key))]
        async for key in in_turns(differing):
            result[key] = self._as_before(key, found[key])
        doubtful = [key async for key in in_turns(differing) if _differs(result[key], expected(key))]
        await self.learn(record for key in doubtful for record in expected(key))
        async for key in in_turns(doubtful):
            result[key] = self._meant(key, found[key], expected(key)) or result[key]
        for gone in self._seen.keys() - found.keys():
            del self._seen[gone]
        return result

    async def learn(self, records: Iterable[Record]) -> None:
        """Ask what concerns some records and is not known; a gateway that does not answer is left alone for now."""
        paths: dict[str, None] = {}
        async for record in in_turns(records):
            paths.update(dict.fromkeys(self._open_questions(record)))
        try:
            async with asyncio.timeout(PATIENCE):
                for path in paths:
                    await self._ask(path)
        except (GatewayError, TimeoutError) as error:
            self._log.info("defaults.unknown", error=str(error) or "no answer in time")

    def filled(self, record: Record, kept: bytes) -> bytes:
        """Return the digest that a record has at the gateway, as far as its defaults are known.

        Args:
            record: As it is sent.
            kept: The digest of what the gateway has: what it made up is taken from there.
        """
        try:
            return comparable(record.key.kind, _completed(self._filled(record), kept))
        except (TypeError, RecursionError):
            return record.digest

    def _follow(self, version: str) -> None:
        """Forget everything once it is another version that answers."""
        if version != self._version:
            self._version = version
            self._answers.clear()
            self._strangers.clear()

    def _as_before(self, key: RecordKey, found: ObservedRecord) -> ObservedRecord:
        seen, meant = self._seen.get(key, (b"", b""))
        return replace(found, digest=meant) if seen and seen == _hash(found.digest) else found

    def _meant(self, key: RecordKey, found: ObservedRecord, records: Iterable[Record]) -> ObservedRecord | None:
        """Return what was found as the record that it was made from, if it is one of these."""
        for record in records:
            if self.filled(record, found.digest) == found.digest:
                self._seen[key] = _hash(found.digest), record.digest
                return replace(found, digest=record.digest)
        return None

    # Questions.

    def _open_questions(self, record: Record) -> Iterator[str]:
        now = self._clock.monotonic()
        for path in _paths(record):
            asked_at, answer = self._answers.get(path, (None, {}))
            strangers = set(_plugins(record)) - answer.keys() - self._strangers if path in (_HTTP, _STREAM) else set()
            if asked_at is None or now - asked_at > KEPT or (answer and strangers):
                yield path
            if answer:
                # Once more may show one that was switched on since; not again and again.
                self._strangers |= strangers

    async def _ask(self, path: str) -> None:
        """Note the answer to a question.

        Raises:
            GatewayError: There is none.
        """
        try:
            answer = orjson.loads(await self._read(path))
        except orjson.JSONDecodeError:
            answer = None
        except GatewayError as error:
            if error.status is None:
                raise
            self._log.info("defaults.refused", path=path, error=str(error))
            answer = None
        self._answers[path] = self._clock.monotonic(), answer if isinstance(answer, dict) else {}

    # Filling in.

    def _filled(self, record: Record) -> FrozenJson:
        kind, body = record.key.kind, record.body
        if kind == "plugin_metadata":
            filled: FrozenJson = with_defaults(self._plugin(_HTTP, record.key.id).get("metadata_schema"), body)
            return filled
        whole = with_defaults(self._answer(_SCHEMAS[kind]), body)
        plugins = whole.get("plugins")
        if not isinstance(plugins, dict):
            return mapping_in(whole)
        path = _STREAM if kind == "stream_routes" else _HTTP
        own = "consumer_schema" if kind == "consumers" else "schema"
        schemas = {name: self._plugin(path, name) for name in plugins}
        chosen = {name: each.get(own, each.get("schema")) for name, each in schemas.items()}
        return {**whole, "plugins": {name: with_defaults(chosen[name], config) for name, config in plugins.items()}}

    def _answer(self, path: str) -> JsonObject:
        return self._answers.get(path, (0.0, {}))[1]

    def _plugin(self, path: str, name: str) -> FrozenJson:
        return mapping_in(self._answer(path).get(name))


def fills_in(version: str) -> bool:
    """Say whether a gateway of some name may keep more of a record than it was sent; one that hides its version may."""
    numbers = version_of(version)
    return numbers is None or numbers < _AS_SENT


def _completed(body: FrozenJson, kept: bytes) -> FrozenJson:
    """Return a body with what the gateway made up for it; another value would be made up if it was written again."""
    plugins = mapping_in(body.get("plugins"))
    open_ = {name for name, field in _MADE_UP.items() if name in plugins and field not in mapping_in(plugins[name])}
    if "username" not in body or not open_ or not kept:
        return body
    there = mapping_in(mapping_in(orjson.loads(kept)).get("plugins"))
    made = {name: {_MADE_UP[name]: mapping_in(there.get(name)).get(_MADE_UP[name])} for name in open_}
    known = {name: {**plugins[name], **made[name]} for name in open_ if all(made[name].values())}
    return {**body, "plugins": {**plugins, **known}}


def _differs(found: ObservedRecord, records: Iterable[Record]) -> bool:
    """Say whether a record is none of those that it may be meant to be, if there are any."""
    digests = [record.digest for record in records]
    return bool(digests) and found.digest not in digests


def _paths(record: Record) -> Iterator[str]:
    """Yield where to ask about a record."""
    kind = record.key.kind
    if kind in _SCHEMAS:
        yield _SCHEMAS[kind]
    if any(_plugins(record)):
        yield _STREAM if kind == "stream_routes" else _HTTP


def _plugins(record: Record) -> Iterable[str]:
    return (record.key.id,) if record.key.kind == "plugin_metadata" else mapping_in(record.body.get("plugins"))


def _hash(digest: bytes) -> bytes:
    return hashlib.sha256(digest).digest()
