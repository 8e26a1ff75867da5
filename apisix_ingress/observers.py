"""What reflectors and sync engines tell, as metrics and as wake-ups of whoever writes status. No decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from apisix_ingress.gateway.states import Operation, RecordState
from apisix_ingress.gateway.sync import ClusterSync
from apisix_ingress.metrics import Metrics
from apisix_ingress.model.keys import ObjectKey, RecordKey, RecordKind
from providers.conditions import Conditions

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
"""Kind → label `resource` of the 1.8 line."""

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
        self._metrics.record_event(operation, kind)

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


class SyncMetrics:
    """Shows what a sync engine does, and wakes the status of objects whose records changed their state.

    Args:
        metrics: Where figures go.
        conditions: Knows which objects a record matters to.
        wake: Called with each of them.
    """

    def __init__(self, metrics: Metrics, conditions: Conditions, wake: Wake) -> None:
        self._metrics = metrics
        self._conditions = conditions
        self._wake = wake
        self._last: dict[tuple[str, RecordKey], RecordState] = {}

    def outcome(self, cluster: str, key: RecordKey, state: RecordState) -> None:
        """Wake the owners and who waited for it; claimants only when the state is another one than before."""
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

    def drift(self, cluster: str, records: int) -> None:
        """Count what an audit found otherwise than expected."""
        self._metrics.record_drift(cluster, records)

    def held(self, cluster: str, records: int) -> None:
        """Show whether a sweep is held back."""
        self._metrics.set_mass_delete_held(cluster, records > 0)

    def breaker(self, cluster: str, is_open: bool) -> None:
        """Show whether writing is paused."""
        self._metrics.set_breaker_open(cluster, is_open)


class Fanout:
    """Carries the results of translations to every cluster and to the status of the object."""

    def __init__(self, syncs: Sequence[ClusterSync], wake: Wake) -> None:
        self._syncs = syncs
        self._wake = wake

    def mark_dirty(self, keys: Iterable[RecordKey], *, urgent: bool) -> None:
        """Tell every cluster."""
        marked = tuple(keys)
        for sync in self._syncs:
            sync.mark_dirty(marked, urgent=urgent)

    def reported(self, owner: ObjectKey) -> None:
        """Wake the status of the object."""
        self._wake(owner)
