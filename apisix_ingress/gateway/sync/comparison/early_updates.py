"""Updates at a start before everything has been translated: endpoints that changed while no controller was running.

Reading and translating thousands of objects takes seconds, in which gateways would send requests to Pods that are gone.
So as soon as the gateway and the endpoints have been listed, upstreams get their current nodes. The rest of a body
stays as the gateway has it. A controller that had kept running would have written the same, if these endpoints were all
that changed; docs/decisions/0027-early-endpoints.md has the conditions and why they suffice.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

import orjson
import structlog

from apisix_ingress.gateway.backend import ClusterListing, ObservedRecord
from apisix_ingress.gateway.sync.config import CurrentNodes
from apisix_ingress.gateway.sync.plan import UNUSUAL_SHARE
from apisix_ingress.gateway.sync.record_writer import RecordWriter
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.names import is_id_of, service_port_of
from apisix_ingress.model.records import Record
from apisix_ingress.runtime.tasks import first_of, in_turns
from apisix_ingress.runtime.term import Term

log = structlog.get_logger()

STEPS = 200
"""Number of upstreams after which other tasks get a turn: about 2 ms."""


class Update(NamedTuple):
    """A record with its current nodes, and how the gateway has it."""

    record: Record
    found: ObservedRecord


class EarlyUpdates:
    """The early updates of one session.

    Args:
        writer: Writes them.
        nodes: Returns the current nodes of upstreams.
    """

    def __init__(self, writer: RecordWriter, nodes: CurrentNodes) -> None:
        self._writer = writer
        self._driver = writer.driver
        self._nodes = nodes
        self._log = log.bind(cluster=writer.driver.cluster)

    async def run(self, listing: ClusterListing, ready: asyncio.Event, term: Term) -> None:
        """Update what differs, unless everything is translated before; then start no more writes.

        Args:
            listing: What the cluster has.
            ready: Set once everything has been translated.
            term: The right to write.

        Raises:
            LeadershipLost: A write was due when the lease may have expired.
        """
        upstreams = _upstreams(listing.owned)
        if not upstreams or not await self._are_known_before(ready):
            return
        try:
            updates = await self._found(upstreams)
        except Exception as error:
            self._log.error("endpoints.crashed", exc_info=error)
            return
        # From an API server of another cluster, nearly all Services have other endpoints.
        if len(updates) > UNUSUAL_SHARE * len(upstreams):
            self._log.info("endpoints.deferred", upstreams=len(upstreams), changed=len(updates))
            return
        if not updates:
            return
        used = {ref for found in listing.owned.values() for ref in found.refs}
        left = [update for update in updates if update.record.key in used]
        async with asyncio.TaskGroup() as group:
            queue = iter(left)
            for _ in range(min(self._driver.config.concurrency, len(left))):
                group.create_task(self._write(queue, ready, term))
        self._log.info("endpoints.updated", upstreams=len(left))

    async def _are_known_before(self, ready: asyncio.Event) -> bool:
        """Wait until the nodes are known or everything has been translated; return False if they are not needed."""
        listed = asyncio.ensure_future(self._nodes.wait_until_listed())
        await first_of(listed, ready.wait())
        return not ready.is_set() and listed.result()

    async def _found(self, upstreams: Mapping[RecordKey, ObservedRecord]) -> list[Update]:
        counts = Counter(_service(found.name) for found in upstreams.values())
        updates = []
        async for key, found in in_turns(upstreams.items(), every=STEPS):
            update = self._updated(key, found, counts[_service(found.name)])
            if update is not None:
                updates.append(update)
        return updates

    def _updated(self, key: RecordKey, found: ObservedRecord, upstreams: int) -> Update | None:
        """Return an upstream with its current nodes; None if it has them, or may only be written as a whole."""
        body = orjson.loads(found.digest) if found.digest else {}
        nodes = body.get("nodes")
        if not isinstance(nodes, list) or (current := self._nodes.changed(found.name, nodes, upstreams)) is None:
            return None
        # A gateway returns no client key, and no difference between an empty list and an empty object.
        if "tls" in body or body.get("id") != key.id or _has_gaps(body):
            return None
        return Update(Record(key, found.name, {**body, "nodes": list(current)}), found)

    async def _write(self, left: Iterator[Update], ready: asyncio.Event, term: Term) -> None:
        for update in left:
            if ready.is_set() or not self._driver.breaker.allows_writes:
                return
            with self._writer.crash_handler(update.record.key):
                await self._writer.update_early(update.record, update.found, term)


def _upstreams(owned: Mapping[RecordKey, ObservedRecord]) -> dict[RecordKey, ObservedRecord]:
    return {
        key: found
        for key, found in owned.items()
        if key.kind == "upstreams" and found.ours and is_id_of(key.id, found.name) and service_port_of(found.name)
    }


def _service(name: str) -> str:
    return name.rpartition("_")[0]


def _has_gaps(value: Any) -> bool:
    """Return whether a body has an empty list or object anywhere."""
    if isinstance(value, dict | list):
        inner: Collection[Any] = value.values() if isinstance(value, dict) else value
        return not value or any(map(_has_gaps, inner))
    return False
