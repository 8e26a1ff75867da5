"""Adoption: at the start of a term, before its first write, ids and hosts are assigned as in the gateways.

Objects whose ids or hosts change are translated again first. `state` decides which name gets which id, and `providers`
which namespace holds a host.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from typing import Protocol

import structlog

from apisix_ingress.gateway.backend import ObservedRecord
from apisix_ingress.gateway.sync.plan import Wanted
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.names import NGINX
from apisix_ingress.model.record_owner import namespace_of_name
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.tasks import in_turns
from apisix_ingress.state.ids.adopted_ids import AdoptedIds, Fits
from apisix_ingress.state.ids.id_table import IdTable

log = structlog.get_logger()


Incumbents = Callable[[dict[str, set[str]], set[str], Mapping[RecordKey, tuple[str, ...]]], Iterator[bool]]
"""Lets namespaces hold the hosts that their records have in gateways; yields for each host whether its holder changed.

Arguments: host → namespaces whose records have it; the hosts that other clusters reported in this term, which are added
to; and the records without a name, with their hosts.
"""

STEPS = 500
"""Number of records after which other tasks get a turn: about 2 ms."""


PATIENCE = 1.0
"""Seconds for which the first write to a cluster waits, at the start of a term, until the others have been read."""

PAUSE = 0.02
"""Seconds between two checks whether they have been read."""


def fitting(ids: IdTable, wanted: Wanted, cluster: str, held: Mapping[RecordKey, ObservedRecord]) -> Fits:
    """Return a function that compares the desired record of a name with the existing one, ignoring its id."""

    def fits(key: RecordKey, name: str) -> bool:
        record = wanted.get(RecordKey(key.kind, ids.known_id(key.kind, name)), cluster)
        return record is not None and replace(record, body={**record.body, "id": key.id}).digest == held[key].digest

    return fits


class Holder(Protocol):
    """The part of a gateway cluster that adoption reads."""

    @property
    def name(self) -> str:
        """Its name in the settings."""

    @property
    def reachable(self) -> bool:
        """Whether it is not known to be down or to reject the admin key."""

    def names(self, key: RecordKey) -> tuple[str, ...]:
        """Return the names under which an owned record exists, or may exist; an unknown name is empty."""


class IdAdoption:
    """Makes one table of ids follow all clusters.

    Args:
        ids: The table.
        wanted: The desired records.
        translated: Waits until everything has been translated with the current ids and holders of hosts.
        clock: Measures how long one cluster waits for the others.
        incumbents: Lets namespaces hold hosts; None: hosts have no holders.
        versions: Stores the version that a cluster reports; returns whether translations may depend on the difference.
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
        self._reported_hosts: set[str] = set()
        self._hosts_changed = 0
        self._clusters: list[Holder] = []
        self._read: set[str] = set()
        self._proven: set[RecordKey] = set()
        ids.follow(self._names)

    def add(self, cluster: Holder) -> None:
        """Add a cluster."""
        self._clusters.append(cluster)

    def renew(self) -> None:
        """Forget the previous term: another replica may have led since then."""
        self._proven.clear()
        self._read.clear()
        self._reported_hosts.clear()

    def report_version(self, cluster: str, version: str) -> None:
        """Store the version that a cluster reports. What depends on it is translated before the first write to it."""
        self._has_new_version |= self._versions(cluster, version)

    async def adopt(self, cluster: str, held: Mapping[RecordKey, ObservedRecord]) -> None:
        """Give names the ids that they have in a cluster; return once the desired records have them.

        Other clusters are considered if they respond soon, because a name has one id everywhere.

        Args:
            cluster: The name of the cluster.
            held: Every record there that is owned, or may be.
        """
        ids_before, hosts_before = self._ids.changes, self._hosts_changed
        fits = fitting(self._ids, self._wanted, cluster, held)
        names = {key: found.name for key, found in held.items()}
        adoption = AdoptedIds(self._ids, names, written=self._names, proven=self._proven, fits=fits)
        async for _ in in_turns(adoption.steps(), every=STEPS):
            pass
        await self._adopt_hosts(held)
        self._read.add(cluster)
        await self._wait_for_others()
        ids, hosts = self._ids.changes - ids_before, self._hosts_changed - hosts_before
        if ids:
            log.info("ids.adopted", cluster=cluster, changes=ids)
        if hosts:
            log.info("hosts.adopted", cluster=cluster, changes=hosts)
        versions, self._has_new_version = self._has_new_version, False
        if ids or hosts or versions:
            await self._translated()

    async def _wait_for_others(self) -> None:
        """Wait for a short time until every reachable cluster has been read in this term."""
        until = self._clock.monotonic() + PATIENCE
        while any(each.reachable and each.name not in self._read for each in self._clusters):
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
            elif record.hosts:
                namespaces = _namespaces(key, record, held)
                for host in record.hosts if namespaces else ():
                    found.setdefault(host, set()).update(namespaces)
        async for is_lost in in_turns(self._incumbents(found, self._reported_hosts, nameless), every=STEPS):
            self._hosts_changed += is_lost

    def _names(self, key: RecordKey) -> tuple[str, ...]:
        return tuple(name for cluster in self._clusters for name in cluster.names(key))


def _namespaces(key: RecordKey, record: ObservedRecord, held: Mapping[RecordKey, ObservedRecord]) -> frozenset[str]:
    """Return the namespace in the name of a record, or those of its backends: a host of ingress-nginx has no other."""
    namespace = namespace_of_name(key.kind, record.name)
    if namespace and namespace != NGINX:
        return frozenset({namespace})
    backends = (held[ref].name for ref in record.refs if ref.kind == "upstreams" and ref in held)
    return frozenset(filter(None, (namespace_of_name("upstreams", name) for name in backends)))
