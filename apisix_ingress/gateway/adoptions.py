"""Ids of names follow what the gateways hold: at the start of a term, for every cluster, before its first write.

What depends on an id that changes by it is translated anew first. Which name gets which id is decided in `state`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Protocol

import structlog

from apisix_ingress.gateway.backend import Found
from apisix_ingress.gateway.plan import Wanted
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.tasks import in_turns
from apisix_ingress.state.adoption import Adoption, Fits
from apisix_ingress.state.ids import IdTable

log = structlog.get_logger()


STEPS = 500
"""So many records are looked at before other tasks get their turn: about 2 ms."""


PATIENCE = 1.0
"""Seconds for which the first write to a cluster waits at the start of a term for the others to be read."""

PAUSE = 0.02
"""Seconds between two looks whether they were."""


def fitting(ids: IdTable, wanted: Wanted, cluster: str, held: Mapping[RecordKey, Found]) -> Fits:
    """Return what says whether the record that a name wants in a cluster is, but for its id, the one that is there."""

    def fits(key: RecordKey, name: str) -> bool:
        record = wanted.get(RecordKey(key.kind, ids.known_id(key.kind, name)), cluster)
        return record is not None and replace(record, body={**record.body, "id": key.id}).digest == held[key].digest

    return fits


class Holder(Protocol):
    """A gateway cluster, as far as it is asked what it holds."""

    @property
    def name(self) -> str:
        """Its name in the settings."""

    @property
    def reachable(self) -> bool:
        """Whether it was not found to be down or to refuse the admin key."""

    def names(self, key: RecordKey) -> tuple[str, ...]:
        """Return the names under which a record of ours is there, or may be; one that nothing tells is empty."""


class Adoptions:
    """What all clusters hold, for one table of ids.

    Args:
        ids: The table.
        wanted: The desired records.
        translated: Returns once everything was translated with the ids as they are.
        clock: Measures how long one cluster waits for the others.
    """

    def __init__(
        self, ids: IdTable, wanted: Wanted, translated: Callable[[], Awaitable[None]], *, clock: Clock
    ) -> None:
        self._ids = ids
        self._wanted = wanted
        self._translated = translated
        self._clock = clock
        self._clusters: list[Holder] = []
        self._heard: set[str] = set()
        self._proven: set[RecordKey] = set()
        ids.follow(self._names)

    def add(self, cluster: Holder) -> None:
        """Ask one more cluster from now on."""
        self._clusters.append(cluster)

    def renew(self) -> None:
        """Forget what clusters said: a term begins, and others may have led since the last one."""
        self._proven.clear()
        self._heard.clear()

    async def adopt(self, cluster: str, held: Mapping[RecordKey, Found]) -> None:
        """Make the ids of names those that a cluster has for them; return once the desired records have them.

        What the other clusters hold counts as well, if they answer soon: a name has one id everywhere.

        Args:
            cluster: Its name.
            held: Every record there that is ours, or may be.
        """
        before = self._ids.changes
        fits = fitting(self._ids, self._wanted, cluster, held)
        names = {key: found.name for key, found in held.items()}
        adoption = Adoption(self._ids, names, written=self._names, proven=self._proven, fits=fits)
        async for _ in in_turns(adoption.steps(), every=STEPS):
            pass
        self._heard.add(cluster)
        await self._hear_others()
        if self._ids.changes != before:
            log.info("ids.adopted", cluster=cluster, changes=self._ids.changes - before)
            await self._translated()

    async def _hear_others(self) -> None:
        """Wait until every cluster that answers was read in this term, for a short time."""
        until = self._clock.monotonic() + PATIENCE
        while any(each.reachable and each.name not in self._heard for each in self._clusters):
            if self._clock.monotonic() >= until:
                return
            await self._clock.sleep(PAUSE)

    def _names(self, key: RecordKey) -> tuple[str, ...]:
        return tuple(name for cluster in self._clusters for name in cluster.names(key))
