"""Ids of names and holders of hosts follow what the gateways hold: at the start of a term, before its first write.

What depends on an id or a holder that changes by it is translated anew first. Which name gets which id is decided in
`state`, and which namespace holds a host in `providers`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from typing import Protocol

import structlog

from apisix_ingress.gateway.backend import ObservedRecord
from apisix_ingress.gateway.sync.plan import Wanted
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.record_owner import namespace_of_name
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.tasks import in_turns
from apisix_ingress.state.ids.adopted_ids import AdoptedIds, Fits
from apisix_ingress.state.ids.id_table import IdTable

log = structlog.get_logger()


Incumbents = Callable[[dict[str, set[str]], set[str], Mapping[RecordKey, tuple[str, ...]]], Iterator[bool]]
"""Lets namespaces hold the hosts that gateways have for them; yields for each host whether it changed hands.

Takes host → namespaces whose records have it, the hosts that another cluster told of in this term, which grow, and the
records that tell no name, with their hosts.
"""

STEPS = 500
"""So many records are looked at before other tasks get their turn: about 2 ms."""


PATIENCE = 1.0
"""Seconds for which the first write to a cluster waits at the start of a term for the others to be read."""

PAUSE = 0.02
"""Seconds between two looks whether they were."""


def fitting(ids: IdTable, wanted: Wanted, cluster: str, held: Mapping[RecordKey, ObservedRecord]) -> Fits:
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


class IdAdoption:
    """What all clusters hold, for one table of ids.

    Args:
        ids: The table.
        wanted: The desired records.
        translated: Returns once everything was translated with the ids and holders as they are.
        clock: Measures how long one cluster waits for the others.
        incumbents: Lets namespaces hold hosts; None: hosts are not held.
        versions: Stores the version that a cluster reports; says whether translations may depend on the difference.
    """

    def __init__(
        self,
        ids: IdTable,
        wanted: Wanted,
        translated: Callable[[], Awaitable[None]],
        *,
        clock: Clock,
        incumbents: Incumbents | None = None,
        versions: Callable[[str, str], bool] = lambda cluster, version: False,
    ) -> None:
        self._ids = ids
        self._wanted = wanted
        self._translated = translated
        self._clock = clock
        self._incumbents = incumbents
        self._versions = versions
        self._has_new_version = False
        self._told_hosts: set[str] = set()
        self._hosts_changed = 0
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
        self._told_hosts.clear()

    def noticed(self, cluster: str, version: str) -> None:
        """Store the version that a cluster reports. What depends on it is translated before the first write to it."""
        self._has_new_version |= self._versions(cluster, version)

    async def adopt(self, cluster: str, held: Mapping[RecordKey, ObservedRecord]) -> None:
        """Make the ids of names those that a cluster has for them; return once the desired records have them.

        What the other clusters hold counts as well, if they answer soon: a name has one id everywhere.

        Args:
            cluster: Its name.
            held: Every record there that is ours, or may be.
        """
        ids_before, hosts_before = self._ids.changes, self._hosts_changed
        fits = fitting(self._ids, self._wanted, cluster, held)
        names = {key: found.name for key, found in held.items()}
        adoption = AdoptedIds(self._ids, names, written=self._names, proven=self._proven, fits=fits)
        async for _ in in_turns(adoption.steps(), every=STEPS):
            pass
        await self._adopt_hosts(held)
        self._heard.add(cluster)
        await self._hear_others()
        ids, hosts = self._ids.changes - ids_before, self._hosts_changed - hosts_before
        if ids:
            log.info("ids.adopted", cluster=cluster, changes=ids)
        if hosts:
            log.info("hosts.adopted", cluster=cluster, changes=hosts)
        versions, self._has_new_version = self._has_new_version, False
        if ids or hosts or versions:
            await self._translated()

    async def _hear_others(self) -> None:
        """Wait until every cluster that answers was read in this term, for a short time."""
        until = self._clock.monotonic() + PATIENCE
        while any(each.reachable and each.name not in self._heard for each in self._clusters):
            if self._clock.monotonic() >= until:
                return
            await self._clock.sleep(PAUSE)

    async def _adopt_hosts(self, held: Mapping[RecordKey, ObservedRecord]) -> None:
        """Let namespaces hold the hosts that their records have in a cluster."""
        if self._incumbents is None:
            return
        found: dict[str, set[str]] = {}
        nameless: dict[RecordKey, tuple[str, ...]] = {}
        async for key, record in in_turns(held.items(), every=STEPS):
            if not record.name and record.hosts:
                nameless[key] = record.hosts
            elif record.hosts and (namespace := namespace_of_name(key.kind, record.name)):
                for host in record.hosts:
                    found.setdefault(host, set()).add(namespace)
        async for is_lost in in_turns(self._incumbents(found, self._told_hosts, nameless), every=STEPS):
            self._hosts_changed += is_lost

    def _names(self, key: RecordKey) -> tuple[str, ...]:
        return tuple(name for cluster in self._clusters for name in cluster.names(key))
