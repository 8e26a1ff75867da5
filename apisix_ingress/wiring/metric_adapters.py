"""Observers that turn reports of reflectors, clients, providers and sync engines into metrics. They only observe."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from apisix_ingress.gateway.sync.observer import Change, RecordState, SyncObserver
from apisix_ingress.kube.informer.watch_events import ReflectorObserver
from apisix_ingress.kube.status.interface import StatusObserver
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.observability.metrics import Metrics
from apisix_ingress.runtime.clock import Clock

AdminOperation = Literal["list", "create", "update", "delete"]
ADMIN_RESOURCES = {
    "routes": "route",
    "stream_routes": "streamRoute",
    "upstreams": "upstream",
    "ssls": "ssl",
    "consumer_groups": "consumerGroup",
    "consumers": "consumer",
    "protos": "proto",
    "secrets": "secret",
    "plugin_configs": "pluginConfig",
    "global_rules": "globalRule",
    "plugin_metadata": "pluginMetadata",
}
"""Record kind → label `resource` of 1.8."""

RECONCILE_RESOURCES = {kind: row.reconcile_label or row.label for kind, row in RESOURCES.items() if row.provider}
"""Kind → label `resource` of 1.8, for translated kinds."""

EVENT_RESOURCES = {kind: row.label for kind, row in RESOURCES.items()}
"""Kind → label `resource` for changes; kinds without a counter in 1.8 are named in the same style."""

ChangeName = Literal["add", "update", "delete"]


def _result(is_success: bool) -> str:
    return "success" if is_success else "failure"


class ReflectorMetrics(ReflectorObserver):
    """Counts what reflectors see."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def listed(self, kind: str, objects: int, seconds: float) -> None:
        """Count a complete list."""
        self._metrics.lists.at(kind).observe(seconds)

    def changed(self, kind: str, operation: ChangeName) -> None:
        """Count a change that reached the store."""
        self._metrics.events.at(operation, EVENT_RESOURCES.get(kind, kind)).inc()

    def undecodable(self, kind: str) -> None:
        """Count an object version that cannot be read."""
        self._metrics.watch_failures.at(kind, "undecodable").inc()

    def failed(self, kind: str, reason: str) -> None:
        """Count a failed list or watch."""
        self._metrics.watch_failures.at(kind, reason).inc()

    def held(self, kind: str, objects: int) -> None:
        """Set how many deletes are held back."""
        self._metrics.deletes_held.at(kind).set(objects)


class StatusMetrics(StatusObserver):
    """Counts writes of statuses, and Events that are dropped."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def status_written(self, kind: str, outcome: str) -> None:
        """Count a write by its result."""
        self._metrics.status_writes.at(kind, outcome).inc()

    def event_dropped(self) -> None:
        """Count a dropped Event."""
        self._metrics.events_dropped.at().inc()


class AdminMetrics:
    """Counts requests to the Admin API under the names of 1.8 (v1-behaviour.md §9)."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def __call__(self, method: str, path: str, status: int | None, seconds: float) -> None:
        """Count one request; `path` is relative to the Admin API's URL."""
        kind = path.partition("?")[0].partition("/")[0]
        operation: AdminOperation = "list" if method == "GET" else "delete" if method == "DELETE" else "update"
        if method == "PUT" and status == 201:
            operation = "create"
        resource = ADMIN_RESOURCES.get(kind, kind)
        self._metrics.record_request(resource=resource, operation=operation, status=status, seconds=seconds)


class ReconcileMetrics:
    """Counts translated objects under the names of 1.8."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def __call__(self, kind: str, well: bool) -> None:
        """Count one object of a kind."""
        self._metrics.sync_operations.at(RECONCILE_RESOURCES.get(kind, kind), _result(well)).inc()


class SyncMetrics(SyncObserver):
    """Counts the work of a sync engine."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def written(self, cluster: str, key: RecordKey, change: Change, name: str, status: str) -> None:
        """Count a write by its result."""
        self._metrics.writes.at(cluster, key.kind, "delete" if change == "deleted" else "put", status).inc()

    def compared(self, cluster: str, ok: bool) -> None:
        """Count a comparison with the gateway; a successful one shows that the cluster is healthy."""
        self._metrics.cache_syncs.at(_result(ok)).inc()
        if ok:
            self._metrics.health.at(cluster).inc()

    def drift(self, cluster: str, records: int) -> None:
        """Count records that an audit found changed."""
        self._metrics.drift.at(cluster).inc(records)

    def held(self, cluster: str, records: int) -> None:
        """Set whether a sweep is held back."""
        self._metrics.mass_delete_held.at(cluster).set(records > 0)


class SyncLag(SyncObserver):
    """Measures the time from a change being seen until a cluster has confirmed each resulting record.

    A change is seen when its key becomes ready in a provider's queue. Changes before the takeover of a term
    are ignored, since the takeover compares everything.
    """

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._pending: dict[str, dict[RecordKey, float]] = {}

    def marked(self, cluster: str, keys: Collection[RecordKey], since: float) -> None:
        """Record when the change behind a record was seen; the first one if there are several."""
        pending = self._pending.setdefault(cluster, {})
        for key in keys:
            pending.setdefault(key, since)

    def outcome(self, cluster: str, key: RecordKey, state: RecordState) -> None:
        """Record the state of a record; a rejected one waits for an edit, which is a separate change."""
        if state.kind not in ("applied", "rejected"):
            return
        seen_at = self._pending.get(cluster, {}).pop(key, None)
        if seen_at is not None and state.kind == "applied":
            self._metrics.sync_lag.at(cluster).observe(self._clock.monotonic() - seen_at)

    def oldest(self, cluster: str) -> float:
        """Return the age in seconds of the oldest change that a cluster has not confirmed; 0 if there is none."""
        pending = self._pending.get(cluster)
        return self._clock.monotonic() - min(pending.values()) if pending else 0.0

    def forget(self) -> None:
        """Drop unconfirmed changes at the end of a term: the next one compares everything."""
        self._pending.clear()
