"""Reads before the first write of a record: somebody else may have made one under its id since the last list.

The Admin API has no conditional write. What appears between such a read and the write that follows it, some
milliseconds later, is overwritten all the same.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict

from apisix_ingress.gateway.backend import Backend
from apisix_ingress.gateway.sync.driver import Detail, RecordDriver
from apisix_ingress.gateway.sync.records.slot import FREE_SECONDS, RecordSlot
from apisix_ingress.gateway.sync.records.transitions import Event
from apisix_ingress.model.keys import RecordKey, RecordKind
from apisix_ingress.model.records import UNLABELLED

FRESH = 5.0
"""Seconds for which a list says which ids are free while many records are to be written, as in a first sync."""


class PreWriteChecks:
    """What was seen of ids that this process has no record under."""

    def __init__(self, driver: RecordDriver, backend: Backend) -> None:
        self._backend = backend
        self._driver = driver
        self._table = driver.table
        self._clock = driver.config.clock
        self._listed: defaultdict[RecordKind, float] = defaultdict(lambda: -FRESH)
        self._locks: defaultdict[RecordKind, asyncio.Lock] = defaultdict(asyncio.Lock)

    def listed(self, at: float) -> None:
        """Note that a list of everything was begun at a time."""
        self._listed = defaultdict(lambda: at)

    def is_due(self, slot: RecordSlot, *, many: bool) -> bool:
        """Say whether the id has to be read before a write: nothing is known, and the last read was a while ago.

        A list counts for longer while many records are to be written: a read of each would cost more than the list. Of
        kinds without labels nothing says whose a record is.
        """
        key = slot.key
        if key.kind in UNLABELLED or slot.is_foreign or slot.observed is not None:
            return False
        seen = max(self._listed[key.kind], slot.free_at)
        return seen < self._clock.monotonic() - (FRESH if many else FREE_SECONDS)

    async def run(self, key: RecordKey, *, many: bool) -> None:
        """Read what is there under an id; with many to be written, all records of its kind at once.

        Raises:
            GatewayError: It can't be read.
        """
        if many:
            await self._list(key.kind)
            return
        now = self._clock.monotonic()
        found = await self._backend.look(key)
        if found is None:
            slot = self._table.timed[key] = self._table.slot(key)
            slot.free_at = now
        else:
            self._driver.post(key, Event.FOUND if found.ours else Event.FOREIGN, Detail(found=found))

    async def _list(self, kind: RecordKind) -> None:
        async with self._locks[kind]:
            now = self._clock.monotonic()
            if self._listed[kind] >= now - FRESH:
                return
            listing = await self._backend.list_managed((), (kind,))
            for key in listing.foreign:
                slot = self._table.get(key)
                # What is known to be ours has lost its labels, at most.
                if slot.observed is None and slot.flight is None:
                    self._driver.post(key, Event.FOREIGN)
            self._listed[kind] = now
