"""Prometheus metrics: every name, label and type in one place.

The metric names of 1.8 are kept. No label takes a value of which users can create many (object, record,
namespace, host, route), except for certificates, of which only the first to expire are shown. Gauges that are only
computed when they are scraped are set by hooks (`on_scrape`).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, Literal, TypeVar

from prometheus_client.exposition import generate_latest
from prometheus_client.metrics import Counter, Gauge, Histogram, MetricWrapperBase, Summary, disable_created_metrics
from prometheus_client.registry import CollectorRegistry

from apisix_ingress.observability.queue_metrics import QueueMetrics

NAMESPACE = "apisix_ingress_controller"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Operation = Literal["get", "list", "create", "update", "delete", "getSchema", "getList"]

M = TypeVar("M", bound=MetricWrapperBase)

_CONSTANT_LABELS = ("controller_pod", "controller_namespace")
_WRITES = frozenset({"create", "update", "delete"})
_QUICK_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_LAG_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_NANOSECONDS = 1e9
_REQUESTS = "apisix_requests"


class Series(Generic[M]):
    """The series of a metric.

    It keeps them, because the lookup of the client takes a lock and formats every label.

    Args:
        metric: The metric.
        constants: The values of its first labels.
    """

    def __init__(self, metric: M, constants: tuple[str, ...]) -> None:
        self._metric = metric
        self._constants = constants
        self._series: dict[tuple[str, ...], M] = {}

    def at(self, *values: str) -> M:
        """Return the series with these values of the other labels."""
        series = self._series.get(values)
        if series is None:
            series = self._series[values] = self._metric.labels(*self._constants, *values)
        return series

    def clear(self) -> None:
        """Remove every series."""
        self._series.clear()
        self._metric.clear()


class Metrics:
    """All metrics of one process, in a registry of their own.

    Args:
        pod: name of this Pod, the label ``controller_pod`` of every metric.
        namespace: its namespace, the label ``controller_namespace``.
        names_secrets: whether metrics may show the names of Secrets.
    """

    def __init__(self, *, pod: str, namespace: str, names_secrets: bool = True) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the client leaves it without annotations
        self._constants = (pod, namespace)
        self._names_secrets = names_secrets
        self._registry = CollectorRegistry()
        self._scrape_hooks: list[Callable[[], None]] = []
        self._define_legacy()
        self._define_queues()
        self._define_sync()
        self._define_webhook()
        self._define_objects()

    def _define_legacy(self) -> None:
        """The metrics of 1.8 (v1-behaviour.md §9), whose counters of requests and responses lack the suffix ``_total``.

        The client adds it to every counter, so these are gauges; 1.8 declares the first one as a counter: see `render`.
        """
        self._requests = self._make(Gauge, _REQUESTS, "Requests to the Admin API.", ["resource", "op"])
        self._status_codes = self._make(
            Gauge,
            "apisix_status_codes",
            "Responses of the Admin API by status code; 0: no response.",
            ["resource", "status_code"],
        )
        self._latencies = self._make(
            Summary, "apisix_request_latencies", "Duration of requests to the Admin API in nanoseconds.", ["operation"]
        )
        self.is_leader = self._make(Gauge, "is_leader", "Whether this replica is the leader (1) or not (0).")
        self.health = self._make(
            Counter, "check_cluster_health", "Successful health checks of a gateway cluster.", ["name"]
        )
        self.sync_operations = self._make(
            Counter, "sync_operation", "Reconciled objects by result.", ["resource", "result"]
        )
        self.cache_syncs = self._make(Counter, "cache_sync", "Takeovers and audits by result.", ["result"])
        self.events = self._make(
            Counter, "events", "Changes of objects received from the API server.", ["operation", "resource"]
        )

    def _define_queues(self) -> None:
        self._queue_depth = self._make(Gauge, "queue_depth", "Keys in the queue.", ["queue"])
        self.queue_age = self._make(
            Gauge, "queue_oldest_age_seconds", "Age of the oldest key in the queue in seconds.", ["queue"]
        )
        self._queue_adds = self._make(Counter, "queue_adds", "Keys added to the queue.", ["queue"])
        self._queue_retries = self._make(Counter, "queue_retries", "Keys queued again after a failure.", ["queue"])
        self._queue_wait = self._seconds(
            "queue_wait_seconds", "Time in seconds that a key waits in the queue.", "queue"
        )
        self._queue_work = self._seconds("queue_work_seconds", "Time in seconds that processing a key takes.", "queue")

    def _define_sync(self) -> None:
        per_kind = ["cluster", "kind"]
        self.sync_lag = self._seconds(
            "sync_lag_seconds",
            "Time in seconds from a change being seen until a cluster confirms its records.",
            "cluster",
            _LAG_BUCKETS,
        )
        self.pending_age = self._make(
            Gauge,
            "sync_pending_age_seconds",
            "Age in seconds of the oldest change that a cluster has not confirmed.",
            ["cluster"],
        )
        self.backlog = self._make(Gauge, "sync_backlog", "Records queued for sync.", ["cluster"])
        self.desired = self._make(Gauge, "records_desired", "Records that should exist in the cluster.", per_kind)
        self.applied = self._make(Gauge, "records_applied", "Records that are in the cluster as desired.", per_kind)
        self.quarantined = self._make(Gauge, "records_quarantined", "Records that the gateway rejected.", per_kind)
        self.drift = self._make(
            Counter, "drift_repaired", "Records that audits found changed, missing or added, and repaired.", ["cluster"]
        )
        self.mass_delete_held = self._make(
            Gauge,
            "mass_delete_held",
            "Whether the deletion of unusually many records is held back (1) or not (0).",
            ["cluster"],
        )
        self.breaker_open = self._make(
            Gauge,
            "breaker_open",
            "Whether writes to a cluster are paused, or it rejects the admin key of a follower (1), or not (0).",
            ["cluster"],
        )
        self._outage = self._make(
            Gauge,
            "outage_start_timestamp_seconds",
            "Start of the current outage of a cluster in Unix time; there is no series without an outage.",
            ["cluster", "reason"],
        )
        self.writes = self._make(
            Counter,
            "record_writes",
            "Writes of records by outcome: ok, or the name of the error.",
            ["cluster", "kind", "operation", "outcome"],
        )
        self._requests_took = self._seconds(
            "admin_request_seconds", "Duration of requests to the Admin API in seconds.", "operation"
        )

    def _define_objects(self) -> None:
        self.watch_failures = self._make(
            Counter, "watch_failures", "Lists and watches that failed.", ["kind", "reason"]
        )
        self.deletes_held = self._make(
            Gauge, "deletes_held", "Deletes of objects that are held back until a second list confirms them.", ["kind"]
        )
        self.lists = self._seconds("list_seconds", "Duration of a complete list in seconds.", "kind")
        self.watch_age = self._make(
            Gauge, "watch_age_seconds", "Seconds since the API server last sent anything about a kind.", ["kind"]
        )
        self.status_writes = self._make(
            Counter,
            "status_writes",
            "Writes of the status of objects by outcome: ok, or the name of the error.",
            ["kind", "outcome"],
        )
        self.events_dropped = self._make(Counter, "kube_events_dropped", "Kubernetes Events that could not be sent.")
        self.events_dropped.at()  # exposed from the start: a rate needs a zero to begin with
        self._expiry = self._make(
            Gauge,
            "certificate_expiry_timestamp_seconds",
            "Expiry of a certificate in use in Unix time, for the Secrets that expire first.",
            ["secret_namespace", "secret_name"],
        )
        self.event_loop_lag = self._make(
            Gauge,
            "event_loop_lag_seconds",
            "Longest time in seconds that the event loop kept a task waiting in the last minute.",
        )

    def _define_webhook(self) -> None:
        self.reviews = self._make(Counter, "webhook_requests", "Admission requests by result.", ["kind", "result"])
        self.review_seconds = self._seconds(
            "webhook_request_seconds", "Duration of an admission request in seconds.", "result"
        )
        self.schema_age = self._make(
            Gauge,
            "webhook_schema_age_seconds",
            "Seconds since a cluster last returned its plugin schemas.",
            ["cluster"],
        )

    def _make(self, kind: type[M], name: str, text: str, labels: Sequence[str] = ()) -> Series[M]:
        metric = kind(name, text, [*_CONSTANT_LABELS, *labels], namespace=NAMESPACE, registry=self._registry)
        return Series(metric, self._constants)

    def _seconds(
        self, name: str, text: str, label: str, buckets: Sequence[float] = _QUICK_BUCKETS
    ) -> Series[Histogram]:
        labels = [*_CONSTANT_LABELS, label]
        metric = Histogram(name, text, labels, namespace=NAMESPACE, registry=self._registry, buckets=buckets)
        return Series(metric, self._constants)

    def record_request(self, *, resource: str, operation: Operation, status: int | None, seconds: float) -> None:
        """Count a request to the Admin API: its kind of record, HTTP status (None: no response) and seconds."""
        op = "write" if operation in _WRITES else "read"
        self._requests.at(resource, op).inc()
        self._status_codes.at(resource, str(status or 0)).inc()
        self._latencies.at(operation).observe(seconds * _NANOSECONDS)
        self._requests_took.at(operation).observe(seconds)

    def set_outages(self, outages: Mapping[tuple[str, str], float]) -> None:
        """Set when the outages of these clusters (name, reason) began, in Unix time, and remove all others."""
        self._outage.clear()
        for (cluster, reason), since in outages.items():
            self._outage.at(cluster, reason).set(since)

    def set_certificates(self, expiries: Mapping[tuple[str, str], float]) -> None:
        """Set when the certificates of these Secrets (namespace, name) expire, and remove all others.

        If names of Secrets must not be shown, only the first to expire in each namespace is shown, without a name.
        """
        self._expiry.clear()
        for (namespace, name), expiry in sorted(expiries.items(), key=lambda each: -each[1]):
            self._expiry.at(namespace, name if self._names_secrets else "").set(expiry)

    def queue(self, name: str) -> QueueMetrics:
        """Return the observer for the queue `name`."""
        found = QueueMetrics(
            self._queue_depth.at(name),
            self._queue_adds.at(name),
            self._queue_retries.at(name),
            self._queue_wait.at(name),
            self._queue_work.at(name),
        )
        self.on_scrape(found.settle)
        return found

    def on_scrape(self, hook: Callable[[], None]) -> None:
        """Call `hook` before each exposition, to set gauges that are only computed then."""
        self._scrape_hooks.append(hook)

    def render(self) -> bytes:
        """Return the text exposition, of type `CONTENT_TYPE`."""
        for hook in self._scrape_hooks:
            hook()
        name = f"{NAMESPACE}_{_REQUESTS}"
        # Like the exposition of Go clients, and of 1.8: scripts compare counters with integers.
        text = generate_latest(self._registry).replace(b".0\n", b"\n")
        return text.replace(f"# TYPE {name} gauge".encode(), f"# TYPE {name} counter".encode())
