"""Metrics that are computed when they are scraped."""

from __future__ import annotations

from apisix_ingress.gateway.sync.cluster_sync import ClusterSync
from apisix_ingress.observability.certificate_expiry import expiries
from apisix_ingress.observability.metrics import Metrics
from apisix_ingress.runtime.loop_lag import LoopLagWatch
from apisix_ingress.wiring.controller_state import ControllerState
from apisix_ingress.wiring.metric_adapters import SyncLag
from providers.core.registry import Registry


class ScrapedMetrics:
    """Sets gauges from the state of the controller.

    Args:
        metrics: The gauges; calls `update` before each exposition.
        state: The controller.
        registry: The queues of the providers.
        lag: The age of unconfirmed changes.
        loop_lag: The delays of the event loop.
    """

    def __init__(
        self, metrics: Metrics, state: ControllerState, registry: Registry, *, lag: SyncLag, loop_lag: LoopLagWatch
    ) -> None:
        self._metrics = metrics
        self._state = state
        self._registry = registry
        self._lag = lag
        self._loop_lag = loop_lag
        metrics.on_scrape(self.update)

    def update(self) -> None:
        """Set the gauges."""
        metrics, state, now = self._metrics, self._state, self._state.clock.monotonic()
        metrics.set_leader(state.leads)
        metrics.set_event_loop_lag(self._loop_lag.longest())
        metrics.set_certificates(expiries(state.world.desired))
        for kind, provider in self._registry.providers.items():
            metrics.set_queue_age(kind, provider.queue.oldest_age(now))
        outages = state.outages
        metrics.set_outages({(name, each.reason): each.since.timestamp() for name, each in outages.items()})
        stopped = outages if state.leads else state.refused
        for sync in state.clusters.syncs:
            metrics.set_breaker_open(sync.name, sync.name in stopped)
            self._update_cluster(sync)

    def _update_cluster(self, sync: ClusterSync) -> None:
        self._metrics.set_pending(sync.name, age=self._lag.oldest(sync.name), backlog=sync.backlog)
        for kind, counts in sync.counts().items():
            self._metrics.set_records(
                sync.name, kind, desired=counts.desired, applied=counts.applied, quarantined=counts.rejected
            )
