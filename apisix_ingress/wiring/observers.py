"""What reflectors and sync engines tell, as metrics and as wake-ups of whoever writes status. No decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from apisix_ingress.gateway.sync.cluster_sync import ClusterSync
from apisix_ingress.gateway.sync.observer import Operation, RecordState
from apisix_ingress.model.keys import ObjectKey, RecordKey, RecordKind
from apisix_ingress.model.records import Former
from apisix_ingress.observability.metrics import Metrics
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.queue.workqueue import QueueObserver
from providers.core.conditions import Conditions

Wake = Callable[[ObjectKey], None]
"""Has the status of an object looked at."""

AdminOperation = Literal["list", "create", "update", "delete"]
ADMIN_RESOURCES = {
    "routes": "route",
    "stream_routes": "streamRoute",
    "upstreams": "upstream",
    "ssls": "ssl",
    "consumers": "consumer",
    "plugin_configs": "pluginConfig",
    "global_rules": "globalRule",
    "plugin_metadata": "pluginMetadata",
}
"""Record kind → label `resource` of the 1.8 line."""

RECONCILE_RESOURCES = {
    "ApisixRoute": "route",
    "ApisixUpstream": "upstream",
    "ApisixTls": "TLS",
    "ApisixConsumer": "consumer",
    "ApisixClusterConfig": "clusterConfig",
    "ApisixPluginConfig": "PluginConfig",
    "ApisixGlobalRule": "GlobalRule",
    "Ingress": "ingress",
    "Service": "endpoints",
    "ConfigMap": "configMap",
}
"""Kind → label `resource` of the 1.8 line, for what is translated."""

EVENT_RESOURCES = RECONCILE_RESOURCES | {
    "Service": "service",
    "Endpoints": "endpoints",
    "EndpointSlice": "endpointSlice",
    "Secret": "secret",
    "Pod": "pod",
    "Namespace": "namespace",
    "IngressClass": "ingressClass",
    "ReferenceGrant": "referenceGrant",
}
"""Kind → label `resource` for changes; those that the 1.8 line does not count are named in its manner."""

ChangeName = Literal["add", "update", "delete"]


class ReflectorMetrics:
    """Counts what reflectors see."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def listed(self, kind: str, objects: int, seconds: float) -> None:
        """Count a complete list."""
        self._metrics.record_list(kind, seconds)

    def changed(self, kind: str, operation: ChangeName) -> None:
        """Count a change that reached the store."""
        self._metrics.record_event(operation, EVENT_RESOURCES.get(kind, kind))

    def undecodable(self, kind: str) -> None:
        """Count an object version that can't be read."""
        self._metrics.record_watch_failure(kind, "undecodable")

    def failed(self, kind: str, reason: str) -> None:
        """Count a list or watch that ended badly."""
        self._metrics.record_watch_failure(kind, reason)

    def held(self, kind: str, objects: int) -> None:
        """Show how many deletes are held back."""
        self._metrics.set_deletes_held(kind, objects)


class AdminMetrics:
    """Counts requests to the Admin API by the names of the 1.8 line (v1-behaviour.md §9)."""

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
    """Counts translated objects by the names of the 1.8 line."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def __call__(self, kind: str, well: bool) -> None:
        """Count one object of a kind."""
        self._metrics.record_reconcile(RECONCILE_RESOURCES.get(kind, kind), success=well)


class SyncLag:
    """Measures from the moment a change is seen until a cluster has confirmed each record that follows from it.

    A store tells of a change at once, so it is seen when its key becomes ready in a provider's queue. The key is handed
    out, translated and its records are marked in one step without an await: the hand-out just before tells the time.
    Changes that come before a term has taken over are left out, since that compares everything.
    """

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._seen_at = clock.monotonic()
        self._pending: dict[str, dict[RecordKey, float]] = {}

    def queue(self, kind: str) -> QueueObserver:
        """Return the observer of the queue of the provider of a kind."""
        return self._metrics.queue(kind, self._started)

    def marked(self, cluster: str, keys: Iterable[RecordKey]) -> None:
        """Note that records are wanted differently because of the change that was handed out last."""
        pending = self._pending.setdefault(cluster, {})
        for key in keys:
            pending.setdefault(key, self._seen_at)

    def told(self, cluster: str, key: RecordKey, state: RecordState) -> None:
        """Note the state of a record; one that was rejected waits for an edit, which is a change of its own."""
        if state.kind not in ("applied", "rejected"):
            return
        seen_at = self._pending.get(cluster, {}).pop(key, None)
        if seen_at is not None and state.kind == "applied":
            self._metrics.record_sync_lag(cluster, self._clock.monotonic() - seen_at)

    def oldest(self, cluster: str) -> float:
        """Return the seconds since the oldest change that a cluster has not confirmed was seen; 0: there is none."""
        pending = self._pending.get(cluster)
        return self._clock.monotonic() - min(pending.values()) if pending else 0.0

    def forget(self) -> None:
        """Drop what was under way when a term ended: the next one compares everything."""
        self._pending.clear()

    def _started(self, waited: float) -> None:
        self._seen_at = self._clock.monotonic() - waited


class SyncMetrics:
    """Shows what a sync engine does, and wakes the status of objects whose records changed their state.

    Args:
        metrics: Where figures go.
        conditions: Knows which objects a record matters to.
        wake: Called with each of them.
        lag: Told which records are settled.
    """

    def __init__(self, metrics: Metrics, conditions: Conditions, wake: Wake, lag: SyncLag) -> None:
        self._metrics = metrics
        self._lag = lag
        self._conditions = conditions
        self._wake = wake
        self._last: dict[tuple[str, RecordKey], RecordState] = {}

    def outcome(self, cluster: str, key: RecordKey, state: RecordState) -> None:
        """Wake the owners and who waited for it; claimants only when the state is another one than before."""
        self._lag.told(cluster, key, state)
        waiting = self._conditions.take_waiting(key)
        owners = self._conditions.owners(key)
        if not owners:
            self._last.pop((cluster, key), None)
            return
        changed = self._last.get((cluster, key)) != state
        self._last[cluster, key] = state
        woken = self._conditions.interested(key) if changed else owners
        for owner in dict.fromkeys((*woken, *waiting)):
            self._wake(owner)

    def written(self, cluster: str, kind: RecordKind, op: Operation, seconds: float, status: str) -> None:
        """Count a write by how it ended."""
        self._metrics.record_write(cluster, kind, op, status)

    def compared(self, cluster: str, ok: bool) -> None:
        """Count a comparison with the gateway; one that could be made shows that the cluster is well."""
        self._metrics.record_cache_sync(success=ok)
        if ok:
            self._metrics.record_cluster_healthy(cluster)
        self._wake_config(cluster)

    def drift(self, cluster: str, records: int) -> None:
        """Count what an audit found otherwise than expected."""
        self._metrics.record_drift(cluster, records)

    def held(self, cluster: str, records: int) -> None:
        """Show whether a sweep is held back."""
        self._metrics.set_mass_delete_held(cluster, records > 0)

    def breaker(self, cluster: str, is_open: bool) -> None:
        """Wake the object that may say where the cluster is; whether writing is paused is looked up at each scrape."""
        self._wake_config(cluster)

    def _wake_config(self, cluster: str) -> None:
        """Wake the object that may say where the cluster is."""
        self._wake(ObjectKey("ApisixClusterConfig", "", cluster))


class Fanout:
    """Carries the results of translations to every cluster and to the status of the object."""

    def __init__(self, syncs: Sequence[ClusterSync], wake: Wake, lag: SyncLag) -> None:
        self._syncs = syncs
        self._wake = wake
        self._lag = lag

    def mark_dirty(self, keys: Iterable[RecordKey], *, urgent: bool, former: Former) -> None:
        """Tell every cluster."""
        marked = tuple(keys)
        for sync in self._syncs:
            if sync.taken_over:
                self._lag.marked(sync.name, marked)
            sync.mark_dirty(marked, urgent=urgent, former=former)

    def reported(self, owner: ObjectKey) -> None:
        """Wake the status of the object."""
        self._wake(owner)
