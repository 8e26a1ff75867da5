"""Requests and translations under the metric names of 1.8."""

import pytest

from apisix_ingress.observability.metrics import Metrics
from apisix_ingress.wiring.metric_adapters import AdminMetrics, ReconcileMetrics
from tests.samples import sample


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(pod="p", namespace="n")


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return sample(metrics, name, labels)


@pytest.mark.parametrize(
    ("method", "path", "status", "resource", "op"),
    [
        ("PUT", "routes/1", 201, "route", "write"),
        ("PUT", "stream_routes/1", 200, "streamRoute", "write"),
        ("DELETE", "ssls/1", 200, "ssl", "write"),
        ("GET", "plugin_configs", 200, "pluginConfig", "read"),
        ("GET", "routes?page=1&page_size=10", 200, "route", "read"),
    ],
)
def test_a_request_is_counted_by_resource_and_direction(
    metrics: Metrics, method: str, path: str, status: int, resource: str, op: str
) -> None:
    AdminMetrics(metrics)(method, path, status, 0.01)
    assert value(metrics, "apisix_requests", resource=resource, op=op) == 1
    assert value(metrics, "apisix_status_codes", resource=resource, status_code=str(status)) == 1


def test_a_request_without_a_response_is_counted_as_status_zero(metrics: Metrics) -> None:
    AdminMetrics(metrics)("PUT", "upstreams/1", None, 5.0)
    assert value(metrics, "apisix_status_codes", resource="upstream", status_code="0") == 1


def test_translations_count_by_how_well_the_object_is(metrics: Metrics) -> None:
    count = ReconcileMetrics(metrics)
    count("ApisixRoute", True)
    count("ApisixRoute", False)
    count("ApisixRoute", True)
    assert value(metrics, "sync_operation_total", resource="route", result="success") == 2
    assert value(metrics, "sync_operation_total", resource="route", result="failure") == 1
