"""Generates the Grafana dashboards in `deploy/observability` from two lists of panels."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

PREFIX = "apisix_ingress_controller_"
WIDTH, HEIGHT, PER_ROW = 8, 8, 3
SOURCE = {"type": "prometheus", "uid": "${source}"}


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel.

    Attributes:
        title: What it shows.
        expression: PromQL; `@` is replaced with the prefix of all metrics.
        legend: Grafana's pattern for the name of a series.
        unit: Grafana's name of the unit.
        kind: `timeseries` or `stat`.
    """

    title: str
    expression: str
    legend: str = ""
    unit: str = "short"
    kind: str = "timeseries"


def quantile(metric: str, by: str, share: float = 0.99) -> str:
    """Return the PromQL for a quantile of a histogram over five minutes."""
    return f"histogram_quantile({share}, sum by (le, {by}) (rate(@{metric}_bucket[5m])))"


def of_leader(by: str, expression: str) -> str:
    """Return the PromQL for the maximum at the leader: a follower's value may be from a former term."""
    pod = "on (controller_pod, controller_namespace)"
    return f"max by ({by}) ({expression} and {pod} @is_leader == 1)"


CONTROLLER = (
    Panel("Leader", "@is_leader", "{{controller_pod}}", kind="stat"),
    Panel("Event loop lag (maximum)", "@event_loop_lag_seconds", "{{controller_pod}}", "s"),
    Panel("Time since last watch event", "max by (kind) (@watch_age_seconds)", "{{kind}}", "s"),
    Panel(
        "Object changes received",
        "sum by (resource, operation) (rate(@events_total[5m]))",
        "{{operation}} {{resource}}",
        "ops",
    ),
    Panel(
        "Failed lists and watches",
        "sum by (kind, reason) (rate(@watch_failures_total[5m]))",
        "{{kind}}: {{reason}}",
    ),
    Panel(
        "Reconciled objects",
        "sum by (resource, result) (rate(@sync_operation_total[5m]))",
        "{{resource}} {{result}}",
        "ops",
    ),
    Panel("Queue depth", "sum by (queue) (@queue_depth)", "{{queue}}"),
    Panel("Age of the oldest key", "max by (queue) (@queue_oldest_age_seconds)", "{{queue}}", "s"),
    Panel("Processing time of a key, p99", quantile("queue_work_seconds", "queue"), "{{queue}}", "s"),
    Panel(
        "Statuses written", "sum by (kind, outcome) (rate(@status_writes_total[5m]))", "{{kind}}: {{outcome}}", "ops"
    ),
    Panel("Events dropped", "sum(increase(@kube_events_dropped_total[1h]))", "in an hour"),
    Panel(
        "Admission requests", "sum by (kind, result) (rate(@webhook_requests_total[5m]))", "{{kind}}: {{result}}", "ops"
    ),
)

SYNC = (
    Panel("Paused clusters", of_leader("cluster", "@breaker_open"), "{{cluster}}", kind="stat"),
    Panel(
        "Age of the oldest unconfirmed change", of_leader("cluster", "@sync_pending_age_seconds"), "{{cluster}}", "s"
    ),
    Panel("Sync backlog", of_leader("cluster", "@sync_backlog"), "{{cluster}}"),
    Panel("Sync latency, p99", quantile("sync_lag_seconds", "cluster"), "{{cluster}}", "s"),
    Panel("Sync latency, median", quantile("sync_lag_seconds", "cluster", 0.5), "{{cluster}}", "s"),
    Panel("Admin API request duration, p99", quantile("admin_request_seconds", "operation"), "{{operation}}", "s"),
    Panel("Desired records", "max by (cluster, kind) (@records_desired)", "{{cluster}}: {{kind}}"),
    Panel(
        "Missing or superfluous records",
        of_leader("cluster, kind", "abs(@records_desired - @records_applied)"),
        "{{cluster}}: {{kind}}",
    ),
    Panel("Rejected records", of_leader("cluster, kind", "@records_quarantined"), "{{cluster}}: {{kind}}"),
    Panel(
        "Writes",
        "sum by (cluster, operation, outcome) (rate(@record_writes_total[5m]))",
        "{{cluster}} {{operation}} {{outcome}}",
    ),
    Panel("Repaired drift per hour", "sum by (cluster) (increase(@drift_repaired_total[1h]))", "{{cluster}}"),
    Panel("Held-back sweeps", of_leader("cluster", "@mass_delete_held"), "{{cluster}}", kind="stat"),
    Panel("Admin API responses", "sum by (status_code) (@apisix_status_codes)", "{{status_code}}"),
    Panel(
        "Days until certificate expiry",
        "bottomk(10, (@certificate_expiry_timestamp_seconds - time()) / 86400)",
        "{{secret_namespace}}/{{secret_name}}",
        "d",
    ),
    Panel("Held-back deletes", "max by (kind) (@deletes_held)", "{{kind}}"),
)


def files() -> dict[str, str]:
    """Return file name → text."""
    return {
        "dashboard-controller.json": _text(
            dashboard("apisix-ingress: controller", "apisix-ingress-controller", CONTROLLER)
        ),
        "dashboard-sync.json": _text(dashboard("apisix-ingress: gateways", "apisix-ingress-sync", SYNC)),
    }


def expression(panel: Panel) -> str:
    """Return the PromQL of a panel."""
    return panel.expression.replace("@", PREFIX)


def dashboard(title: str, uid: str, panels: Sequence[Panel]) -> dict[str, Any]:
    """Return a dashboard."""
    source = {"name": "source", "label": "Data source", "type": "datasource", "query": "prometheus"}
    return {
        "title": title,
        "uid": uid,
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [source]},
        "panels": [_panel(number, panel) for number, panel in enumerate(panels)],
    }


def _panel(number: int, panel: Panel) -> dict[str, Any]:
    row, column = divmod(number, PER_ROW)
    return {
        "id": number + 1,
        "title": panel.title,
        "type": panel.kind,
        "datasource": SOURCE,
        "gridPos": {"h": HEIGHT, "w": WIDTH, "x": column * WIDTH, "y": row * HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [{"refId": "A", "expr": expression(panel), "legendFormat": panel.legend, "datasource": SOURCE}],
    }


def _text(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=2) + "\n"
