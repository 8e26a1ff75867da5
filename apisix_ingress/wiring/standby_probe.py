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

Ask = Callable[[], Awaitable[object]]


class StandbyProbe:
    """Tries the admin key of each cluster from time to time, while another replica leads.

    Args:
        asks: Cluster → asks it something that takes the key.
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
            for cluster in self._asks:
                if not self._leads():
                    await self._try(cluster)
            await self._clock.sleep(INTERVAL)

    def forget(self) -> None:
        """Drop what is known, as a term begins: after it that may be long out of date."""
        for cluster in tuple(self._refused):
            del self._refused[cluster]
            self._changed(cluster, False)

    async def _try(self, cluster: str) -> None:
        words = ""
        try:
            await self._asks[cluster]()
        except GatewayUnauthorized as error:
            words = str(error)
        except GatewayError:
            return
        # A term may have begun meanwhile.
        if not self._leads() and words != self._refused.get(cluster, ""):
            self._note(cluster, words)

    def _note(self, cluster: str, words: str) -> None:
        if words:
            self._refused[cluster] = words
            log.error("standby.unauthorized", cluster=cluster, error=words)
        else:
            del self._refused[cluster]
            log.info("standby.authorized", cluster=cluster)
        self._changed(cluster, bool(words))
