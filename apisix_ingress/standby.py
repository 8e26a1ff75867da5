"""What a replica that follows knows of the gateways: whether they take its admin key. Nothing here writes.

A key that is refused would be found out only when this replica has to lead. A gateway that is away says nothing about
a follower: that is the leader's to find out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import structlog

from apisix_ingress.errors import GatewayError, GatewayUnauthorized
from apisix_ingress.runtime.clock import Clock

log = structlog.get_logger()

INTERVAL = 60.0
"""Seconds between two questions: some set-ups lock a client out that tries too often."""

QUESTION = "routes?page=1&page_size=10"
"""The smallest page that takes the key."""

Ask = Callable[[str], Awaitable[object]]


class Standby:
    """Tries the admin key of each cluster from time to time, while another replica leads.

    Args:
        asks: Cluster → how its Admin API is read.
        leads: Says whether this replica does.
        clock: Measures the time between two questions.
        changed: Told which cluster began or ceased to refuse the key.
    """

    def __init__(
        self, asks: Mapping[str, Ask], leads: Callable[[], bool], *, clock: Clock, changed: Callable[[str, bool], None]
    ) -> None:
        self._asks = asks
        self._leads = leads
        self._clock = clock
        self._changed = changed
        self._refused: dict[str, str] = {}

    @property
    def refused(self) -> dict[str, str]:
        """Cluster → the words by which it refused the key; empty for a replica that leads: it writes, and sees."""
        return {} if self._leads() else dict(self._refused)

    async def run(self, ready: asyncio.Event) -> None:
        """Ask, once there is something to lead with, until cancelled."""
        await ready.wait()
        while True:
            if self._leads():
                self._refused.clear()
            else:
                for cluster in self._asks:
                    await self._try(cluster)
            await self._clock.sleep(INTERVAL)

    async def _try(self, cluster: str) -> None:
        try:
            await self._asks[cluster](QUESTION)
        except GatewayUnauthorized as error:
            if self._refused.get(cluster) != str(error):
                self._refused[cluster] = str(error)
                log.error("standby.unauthorized", cluster=cluster, error=str(error))
                self._changed(cluster, True)
        except GatewayError:
            return
        else:
            if self._refused.pop(cluster, None):
                log.info("standby.authorized", cluster=cluster)
                self._changed(cluster, False)
