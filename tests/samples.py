"""Samples of a scrape."""

from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families

from apisix_ingress.observability.metrics import NAMESPACE, Metrics

_OF_EVERY_SERIES = {"controller_pod", "controller_namespace"}


def sample(metrics: Metrics, name: str, labels: Mapping[str, str] | None = None) -> float | None:
    """Return the sample of a name, without namespace, and its own labels; None if there is none."""
    # The parser would add `_total` to the names of 1.8's counters if they were declared as counters.
    bare = "\n".join(line for line in metrics.render().decode().splitlines() if not line.startswith("#"))
    for family in text_string_to_metric_families(bare):
        for each in family.samples:
            own = {label: value for label, value in each.labels.items() if label not in _OF_EVERY_SERIES}
            if each.name == f"{NAMESPACE}_{name}" and own == (labels or {}):
                return each.value
    return None
