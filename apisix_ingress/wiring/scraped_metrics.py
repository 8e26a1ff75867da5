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
        metrics.is_leader.at().set(state.leads)
        metrics.event_loop_lag.at().set(self._loop_lag.longest())
        metrics.set_certificates(expiries(state.world.desired))
        for kind, provider in self._registry.providers.items():
            metrics.queue_age.at(kind).set(provider.queue.oldest_age(now))
        outages = state.outages
        metrics.set_outages({(name, each.reason): each.since.timestamp() for name, each in outages.items()})
        stopped = outages if state.leads else state.refused
        for sync in state.clusters.syncs:
            metrics.breaker_open.at(sync.name).set(sync.name in stopped)
            self._update_cluster(sync)

    def _update_cluster(self, sync: ClusterSync) -> None:
        metrics = self._metrics
        metrics.pending_age.at(sync.name).set(self._lag.oldest(sync.name))
        metrics.backlog.at(sync.name).set(sync.backlog)
        for kind, counts in sync.counts().items():
            metrics.desired.at(sync.name, kind).set(counts.desired)
            metrics.applied.at(sync.name, kind).set(counts.applied)
            metrics.quarantined.at(sync.name, kind).set(counts.rejected)
