"""Alerts and dashboards of the chart: the same as in deploy/observability."""

import json

import yaml

from e2e.charts.chart import WITH_KEY, find, merged, nested, render
from e2e.charts.kinds import OBSERVABILITY

ENABLED = merged(WITH_KEY, nested("prometheusRule.enabled", value=True), nested("dashboards.enabled", value=True))


def test_the_rule_has_the_alerts() -> None:
    rule = find(render(ENABLED, release="test", namespace="here"), "PrometheusRule")
    assert rule["spec"] == yaml.safe_load((OBSERVABILITY / "alerts.yaml").read_text())
    assert (rule["metadata"]["name"], rule["metadata"]["namespace"]) == ("test-apisix-ingress", "here")


def test_the_config_map_has_the_dashboards_and_the_label_of_grafana() -> None:
    found = find(render(ENABLED), "ConfigMap", "apisix-ingress-dashboards")
    want = {path.name: json.loads(path.read_text()) for path in OBSERVABILITY.glob("*.json")}
    assert {name: json.loads(text) for name, text in found["data"].items()} == want
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"


def test_both_are_off_by_default() -> None:
    manifests = render(WITH_KEY)
    assert "PrometheusRule" not in {each["kind"] for each in manifests}
    assert not any(each["metadata"]["name"].endswith("-dashboards") for each in manifests)
