"""Names, labels and values as a scrape sees them, and as `docs/metrics.md` lists them."""

import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from apisix_ingress.observability.metrics import NAMESPACE, Metrics
from apisix_ingress.runtime.queue.rate_limiters import FastSlow
from apisix_ingress.runtime.queue.workqueue import WorkQueue
from tests.fakes.clock import FakeClock
from tests.samples import sample

# A label outside this list needs a reason why its values are few.
BOUNDED_LABELS = {
    *("controller_pod", "controller_namespace", "resource", "op", "status_code", "operation", "name"),
    *("result", "queue", "cluster", "kind", "le", "reason", "outcome"),
    # Only of the secrets that expire first: see `expiry.SHOWN`.
    *("secret_namespace", "secret_name"),
}
DOCUMENT = Path(__file__).parents[4] / "docs" / "metrics.md"


def make_metrics() -> Metrics:
    return Metrics(pod="pod-a", namespace="ingress")


def touch_all(metrics: Metrics) -> None:
    """Call every recording method once."""
    metrics.record_request(resource="route", operation="update", status=201, seconds=0.02)
    metrics.health.at("default").inc()
    metrics.sync_lag.at("default").observe(1.5)
    metrics.pending_age.at("default").set(2.5)
    metrics.backlog.at("default").set(7)
    metrics.writes.at("default", "routes", "put", "ok").inc()
    metrics.lists.at("Ingress").observe(0.3)
    metrics.watch_failures.at("Ingress", "gone").inc()
    metrics.deletes_held.at("Ingress").set(30)
    metrics.status_writes.at("Ingress", "KubeConflict").inc()
    metrics.events_dropped.at().inc()
    metrics.set_certificates({("default", "web"): 1893456000})
    metrics.event_loop_lag.at().set(0.25)
    metrics.desired.at("default", "routes").set(3)
    metrics.applied.at("default", "routes").set(2)
    metrics.quarantined.at("default", "routes").set(1)
    metrics.drift.at("default").inc(2)
    metrics.mass_delete_held.at("default").set(True)
    metrics.breaker_open.at("default").set(False)
    metrics.set_outages({("default", "unreachable"): 1893456000})
    metrics.is_leader.at().set(True)
    metrics.sync_operations.at("route", "success").inc()
    metrics.sync_operations.at("route", "failure").inc()
    metrics.cache_syncs.at("success").inc()
    metrics.events.at("add", "Ingress").inc()
    metrics.watch_age.at("Ingress").set(12)
    metrics.queue_age.at("ingress").set(3)
    queue = metrics.queue("ingress")
    queue.depth(4)
    queue.added()
    metrics.reviews.at("ApisixRoute", "denied").inc()
    metrics.review_seconds.at("denied").observe(0.4)
    metrics.schema_age.at("default").set(9)
    queue.retried()
    queue.started(0.1)
    queue.finished(0.2)


def test_each_method_sets_its_series() -> None:
    metrics = make_metrics()
    touch_all(metrics)
    per_kind = {"cluster": "default", "kind": "routes"}
    want: list[tuple[str, dict[str, str], float]] = [
        ("apisix_requests", {"resource": "route", "op": "write"}, 1),
        ("apisix_status_codes", {"resource": "route", "status_code": "201"}, 1),
        ("apisix_request_latencies_sum", {"operation": "update"}, 20_000_000),
        ("admin_request_seconds_sum", {"operation": "update"}, 0.02),
        ("check_cluster_health_total", {"name": "default"}, 1),
        ("sync_lag_seconds_sum", {"cluster": "default"}, 1.5),
        ("sync_pending_age_seconds", {"cluster": "default"}, 2.5),
        ("sync_backlog", {"cluster": "default"}, 7),
        ("record_writes_total", {**per_kind, "operation": "put", "outcome": "ok"}, 1),
        ("list_seconds_sum", {"kind": "Ingress"}, 0.3),
        ("watch_failures_total", {"kind": "Ingress", "reason": "gone"}, 1),
        ("deletes_held", {"kind": "Ingress"}, 30),
        ("status_writes_total", {"kind": "Ingress", "outcome": "KubeConflict"}, 1),
        ("kube_events_dropped_total", {}, 1),
        ("certificate_expiry_timestamp_seconds", {"secret_namespace": "default", "secret_name": "web"}, 1893456000),
        ("event_loop_lag_seconds", {}, 0.25),
        ("records_desired", per_kind, 3),
        ("records_applied", per_kind, 2),
        ("records_quarantined", per_kind, 1),
        ("drift_repaired_total", {"cluster": "default"}, 2),
        ("mass_delete_held", {"cluster": "default"}, 1),
        ("breaker_open", {"cluster": "default"}, 0),
        ("is_leader", {}, 1),
        ("sync_operation_total", {"resource": "route", "result": "success"}, 1),
        ("sync_operation_total", {"resource": "route", "result": "failure"}, 1),
        ("cache_sync_total", {"result": "success"}, 1),
        ("events_total", {"operation": "add", "resource": "Ingress"}, 1),
        ("watch_age_seconds", {"kind": "Ingress"}, 12),
        ("queue_oldest_age_seconds", {"queue": "ingress"}, 3),
        ("queue_depth", {"queue": "ingress"}, 4),
        ("queue_adds_total", {"queue": "ingress"}, 1),
        ("queue_retries_total", {"queue": "ingress"}, 1),
        ("queue_wait_seconds_sum", {"queue": "ingress"}, 0.1),
        ("queue_work_seconds_sum", {"queue": "ingress"}, 0.2),
        ("webhook_requests_total", {"kind": "ApisixRoute", "result": "denied"}, 1),
        ("webhook_request_seconds_sum", {"result": "denied"}, 0.4),
        ("webhook_schema_age_seconds", {"cluster": "default"}, 9),
    ]
    got = [(name, labels, sample(metrics, name, labels)) for name, labels, _ in want]
    assert got == want
    assert sample(metrics, "queue_depth", {"queue": "other"}) is None


def test_reads_and_lost_replies_are_counted_apart() -> None:
    metrics = make_metrics()
    metrics.record_request(resource="route", operation="list", status=200, seconds=0.1)
    metrics.record_request(resource="route", operation="delete", status=None, seconds=5)
    assert sample(metrics, "apisix_requests", {"resource": "route", "op": "read"}) == 1
    assert sample(metrics, "apisix_requests", {"resource": "route", "op": "write"}) == 1
    assert sample(metrics, "apisix_status_codes", {"resource": "route", "status_code": "0"}) == 1


def test_the_exposition_has_the_names_of_1_8_with_constant_labels() -> None:
    metrics = make_metrics()
    touch_all(metrics)
    constants = 'controller_namespace="ingress",controller_pod="pod-a"'
    lines = metrics.render().decode().splitlines()
    assert f'{NAMESPACE}_apisix_requests{{{constants},op="write",resource="route"}} 1' in lines
    assert f"{NAMESPACE}_is_leader{{{constants}}} 1" in lines
    types = dict(line.split()[2:] for line in lines if line.startswith("# TYPE"))
    want = {
        "is_leader": "gauge",
        "apisix_status_codes": "gauge",
        "apisix_request_latencies": "summary",
        "apisix_requests": "counter",
        "check_cluster_health_total": "counter",
        "sync_operation_total": "counter",
        "cache_sync_total": "counter",
        "events_total": "counter",
    }
    assert {name: types.get(f"{NAMESPACE}_{name}") for name in want} == want


def test_without_secret_names_a_namespace_shows_its_first_expiry() -> None:
    metrics = Metrics(pod="pod-a", namespace="ingress", names_secrets=False)
    metrics.set_certificates({("a", "late"): 3, ("a", "soon"): 1, ("a", "later"): 9, ("b", "one"): 2})
    text = metrics.render().decode()
    assert "soon" not in text
    name = "certificate_expiry_timestamp_seconds"
    got = [sample(metrics, name, {"secret_name": "", "secret_namespace": each}) for each in "ab"]
    assert got == [1, 2]


def test_deleted_certificates_are_no_longer_shown() -> None:
    metrics = make_metrics()
    metrics.set_certificates({("default", "old"): 1})
    metrics.set_certificates({("default", "new"): 2})
    labels = {"secret_namespace": "default"}
    name = "certificate_expiry_timestamp_seconds"
    got = [sample(metrics, name, {**labels, "secret_name": secret}) for secret in ("old", "new")]
    assert got == [None, 2]


def rows(metrics: Metrics) -> list[str]:
    """Return the rows of the table of all metrics, sorted by name: name, type, labels of its own, meaning."""
    text = metrics.render().decode()
    texts = dict(re.findall(r"^# HELP (\S+) (.*)$", text, re.MULTILINE))
    found = []
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE):
        series = re.search(rf"^{name}(?:_bucket|_sum)?{{(.*)}}", text, re.MULTILINE)
        assert series, f"{name} has no series: touch it in touch_all"
        labels = re.findall(r'(\w+)="', series[1])
        own = ", ".join(f"`{each}`" for each in labels if not each.startswith("controller_") and each != "le")
        found.append(f"| `{name.removeprefix(NAMESPACE + '_')}` | {kind} | {own or '-'} | {texts[name]} |")
    return sorted(found)


def test_the_document_lists_exactly_what_is_exposed() -> None:
    metrics = make_metrics()
    touch_all(metrics)
    listed = [line for line in DOCUMENT.read_text().splitlines() if line.startswith("| `") and line.count(" | ") == 3]
    assert sorted(listed) == rows(metrics)


def test_every_label_has_few_values_by_its_nature() -> None:
    metrics = make_metrics()
    touch_all(metrics)
    families = list(text_string_to_metric_families(metrics.render().decode()))
    labels = {label for family in families for sample in family.samples for label in sample.labels}
    assert labels == BOUNDED_LABELS
    assert all(family.name.startswith(f"{NAMESPACE}_") for family in families)


def test_two_controllers_in_one_interpreter_share_no_state() -> None:
    one, other = make_metrics(), make_metrics()
    one.is_leader.at().set(True)
    assert (sample(one, "is_leader"), sample(other, "is_leader")) == (1, None)


def test_hooks_run_before_each_scrape() -> None:
    metrics, clock = make_metrics(), FakeClock()
    queue = WorkQueue[str](clock=clock, limiter=FastSlow[str](1, 5, 3), observer=metrics.queue("ingress"))
    metrics.on_scrape(lambda: metrics.queue_age.at("ingress").set(queue.oldest_age(clock.monotonic())))
    queue.add("a")
    clock.shift(7)
    assert sample(metrics, "queue_oldest_age_seconds", {"queue": "ingress"}) == 7
    assert sample(metrics, "queue_depth", {"queue": "ingress"}) == 1


def test_a_restored_certificate_is_shown_again() -> None:
    metrics = make_metrics()
    for secret in ("old", "new", "old"):
        metrics.set_certificates({("default", secret): 1})
    name = "certificate_expiry_timestamp_seconds"
    got = {
        secret: sample(metrics, name, {"secret_namespace": "default", "secret_name": secret})
        for secret in ("old", "new")
    }
    assert got == {"old": 1, "new": None}


def test_queue_metrics_are_settled_at_each_scrape() -> None:
    metrics = make_metrics()
    queue = metrics.queue("ingress")
    for _ in range(500):
        queue.added()
        queue.started(0.25)
        queue.finished(0.5)
    queue.depth(3)
    kept = len(queue._waits) + len(queue._works)
    names = ("queue_depth", "queue_adds_total", "queue_wait_seconds_count", "queue_work_seconds_sum")
    assert kept <= 2 * 200
    assert [sample(metrics, name, {"queue": "ingress"}) for name in names] == [3, 500, 500, 250]
