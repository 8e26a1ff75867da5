"""Looks before the first write of a record: somebody else may have made one under its id since the last list.

The Admin API has no conditional write. What appears between a look and the write that follows it, some milliseconds
later, is overwritten all the same. Nothing is written here.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict

from apisix_ingress.gateway.backend import Backend
from apisix_ingress.gateway.sync.records.observed import ObservedState
from apisix_ingress.model.keys import RecordKey, RecordKind
from apisix_ingress.model.records import UNLABELLED
from apisix_ingress.runtime.clock import Clock

FRESH = 5.0
"""Seconds for which a list says which ids are free while many records are to be written, as in a first sync."""

SEEN = 1.0
"""Seconds for which any list or look says that an id is free: the first writes of a term follow its list at once."""


class PreWriteChecks:
    """What was seen of ids that this process has no record under.

    Args:
        backend: The gateway cluster.
        holdings: What is known of it; what is found is noted there.
    """

    def __init__(self, backend: Backend, holdings: ObservedState, clock: Clock) -> None:
        self._backend = backend
        self._holdings = holdings
        self._clock = clock
        self._listed: defaultdict[RecordKind, float] = defaultdict(lambda: -FRESH)
        self._looked: dict[RecordKey, float] = {}
        self._locks: defaultdict[RecordKind, asyncio.Lock] = defaultdict(asyncio.Lock)

    def listed(self, at: float) -> None:
        """Note that a list of everything was begun at a time."""
        self._listed = defaultdict(lambda: at)

    def is_due(self, key: RecordKey, *, many: bool) -> bool:
        """Say whether a look has to go before a write: nothing is known there, and the last look was a while ago.

        A list counts for longer while many records are to be written: a look at each would cost more than the list. Of
        kinds without labels nothing says whose a record is.
        """
        if key.kind in UNLABELLED or key in self._holdings.foreign or self._holdings.get(key) is not None:
            return False
        seen = max(self._listed[key.kind], self._looked.get(key, -FRESH))
        return seen < self._clock.monotonic() - (FRESH if many else SEEN)

    async def look(self, key: RecordKey, *, many: bool) -> None:
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
            self._looked[key] = now
        elif found.ours:
            self._holdings.observe(key, found)
        else:
            self._holdings.foreign.add(key)

    def prune(self, now: float) -> None:
        """Forget looks that say nothing any more."""
        self._looked = {key: at for key, at in self._looked.items() if at >= now - SEEN}

    async def _list(self, kind: RecordKind) -> None:
        async with self._locks[kind]:
            now = self._clock.monotonic()
            if self._listed[kind] >= now - FRESH:
                return
            listing = await self._backend.list_managed((), (kind,))
            # What is known to be ours has lost its labels, at most.
            self._holdings.foreign.update(key for key in listing.foreign if self._holdings.get(key) is None)
            self._listed[kind] = now
