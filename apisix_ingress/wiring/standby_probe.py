"""Probes of a follower: do the gateways accept its admin key? Nothing here writes.

Otherwise a rejected key would only be noticed when this replica has to lead. A gateway that does not respond is
ignored: the leader reports that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Protocol

import structlog

from apisix_ingress.errors import GatewayError, GatewayUnauthorized
from apisix_ingress.gateway.sync.observer import SyncObserver
from apisix_ingress.runtime.clock import Clock

log = structlog.get_logger()

INTERVAL = 60.0
"""Seconds between two probes: some gateways lock out a client that fails too often."""


class Probed(Protocol):
    """The parts of a gateway cluster that probes use."""

    @property
    def name(self) -> str:
        """The name in the settings."""

    async def probe(self) -> None:
        """Send a request that needs the admin key."""


class Leading(Protocol):
    """The parts of an election that probes use."""

    @property
    def leading(self) -> bool:
        """Whether this replica leads."""


class StandbyProbe:
    """Tries the admin key of each cluster every minute while another replica leads.

    Args:
        clusters: The clusters.
        election: Whether this replica leads.
        clock: Measures the time between two requests.
        observer: Notified when a cluster starts or stops rejecting the key.
    """

    def __init__(self, clusters: Iterable[Probed], election: Leading, *, clock: Clock, observer: SyncObserver) -> None:
        self._clusters = {cluster.name: cluster for cluster in clusters}
        self._election = election
        self._clock = clock
        self._observer = observer
        self._refused: dict[str, str] = {}

    @property
    def refused(self) -> dict[str, str]:
        """Cluster → the error with which it rejected the key; empty for a leader, whose writes report it."""
        return {} if self._election.leading else dict(self._refused)

    async def run(self, ready: asyncio.Event) -> None:
        """Probe, once this replica is able to lead, until cancelled."""
        await ready.wait()
        while True:
            for cluster in self._clusters:
                if not self._election.leading:
                    await self._try(cluster)
            await self._clock.sleep(INTERVAL)

    def forget(self) -> None:
        """Drop the results when a term begins: after it, they may be long outdated."""
        for cluster in tuple(self._refused):
            del self._refused[cluster]
            self._observer.breaker(cluster, is_open=False)

    async def _try(self, cluster: str) -> None:
        problem = ""
        try:
            await self._clusters[cluster].probe()
        except GatewayUnauthorized as error:
            problem = str(error)
        except GatewayError:
            return
        # A term may have begun in the meantime.
        if not self._election.leading and problem != self._refused.get(cluster, ""):
            self._note(cluster, problem)

    def _note(self, cluster: str, problem: str) -> None:
        if problem:
            self._refused[cluster] = problem
            log.error("standby.unauthorized", cluster=cluster, error=problem)
        else:
            del self._refused[cluster]
            log.info("standby.authorized", cluster=cluster)
        self._observer.breaker(cluster, is_open=bool(problem))
