"""Reads before the first write of a record: another client may have created one with its id since the last list.

The Admin API has no conditional write. A record that appears between this read and the write, some milliseconds later,
is overwritten nevertheless.
"""

from __future__ import annotations

from collections import defaultdict

from apisix_ingress.gateway.backend import Backend
from apisix_ingress.gateway.sync.driver import Detail, RecordDriver
from apisix_ingress.gateway.sync.records.slot import FREE_SECONDS, RecordSlot
from apisix_ingress.gateway.sync.records.transitions import Event
from apisix_ingress.model.keys import RecordKind
from apisix_ingress.model.records import UNLABELLED
from apisix_ingress.runtime.tasks import in_turns

FRESH = 5.0
"""Seconds for which a list proves that ids are free while many records are to be written, as in a first sync."""


class PreWriteChecks:
    """When ids without an owned record were last seen to be free."""

    def __init__(self, driver: RecordDriver, backend: Backend) -> None:
        self._backend = backend
        self._driver = driver
        self._table = driver.table
        self._clock = driver.config.clock
        self._listed: defaultdict[RecordKind, float] = defaultdict(lambda: -FRESH)
        self._waiting: dict[RecordKind, list[RecordSlot]] = {}
        self._slow: set[RecordKind] = set()

    def listed(self, at: float) -> None:
        """Record the start time of a list of all kinds."""
        self._listed = defaultdict(lambda: at)

    def is_due(self, slot: RecordSlot) -> bool:
        """Return whether to read the id before a write: nothing is known of it, and the last read was a while ago.

        While many records are to be written, a list stays valid for longer, because reading each id would cost more
        than the list. A namespace with few of them does not wait for the list that another one causes. Kinds without
        labels are not read: nothing would show who created the record.
        """
        key = slot.key
        if key.kind in UNLABELLED or slot.is_foreign or slot.observed is not None:
            return False
        seen = max(self._listed[key.kind], slot.free_at)
        return seen < self._clock.monotonic() - (FRESH if self._driver.order.is_in_bulk(key) else FREE_SECONDS)

    async def run(self, slot: RecordSlot) -> bool:
        """Read the record with an id, or list its whole kind if many records are to be written.

        Returns:
            Whether the read is done; if not, the key is queued again when the list is there, so that no worker waits.

        Raises:
            GatewayError: The read failed.
        """
        key = slot.key
        if self._driver.order.is_in_bulk(key) and key.kind not in self._slow:
            return await self._list(slot)
        now = self._clock.monotonic()
        found = await self._backend.get(key)
        if found is None:
            slot = self._table.timed[key] = self._table.slot(key)
            slot.free_at = now
        else:
            self._driver.post(self._table.slot(key), Event.FOUND if found.ours else Event.FOREIGN, Detail(found=found))
        return True

    async def _list(self, slot: RecordSlot) -> bool:
        kind = slot.key.kind
        if (waiting := self._waiting.get(kind)) is not None:
            waiting.append(slot)
            return False
        waiting = self._waiting[kind] = []
        try:
            now = self._clock.monotonic()
            listing = await self._backend.list_managed((), (kind,))
            for key in listing.foreign:
                foreign = self._table.get(key)
                # A record that is known to be owned has only lost its labels.
                if foreign.observed is None and foreign.flight is None:
                    self._driver.post(self._table.slot(key), Event.FOREIGN)
            self._listed[kind] = now
            if self._clock.monotonic() - now > FRESH / 2:
                self._slow.add(kind)  # from now on, ids are read one at a time
        finally:
            del self._waiting[kind]
            async for each in in_turns(waiting):  # thousands, if the list became too old before the first write
                self._driver.enqueue(each)
        return True
