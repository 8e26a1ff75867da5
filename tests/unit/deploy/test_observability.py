"""Alert rules and dashboards: every metric in them exists, every alert has a remedy, parentheses match."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

PROJECT = Path(__file__).parents[3]
FOLDER = PROJECT / "deploy" / "observability"
RUNBOOK = PROJECT / "docs" / "how-to" / "alerts.md"
PREFIX = "apisix_ingress_controller_"
ROW = re.compile(r"^\| `(\w+)` \| (\w+) \| ([^|]+) \|", re.MULTILINE)
NAME = re.compile(rf"{PREFIX}(\w+)")
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("", "_sum", "_count")}
OF_THE_LEADER = f"and on (controller_pod, controller_namespace) {PREFIX}is_leader == 1"
STALE = {
    "breaker_open",
    "mass_delete_held",
    "records_applied",
    "records_quarantined",
    "sync_backlog",
    "sync_pending_age_seconds",
}
"""Metrics that have no meaning, or another one, on followers."""

POD_LABELS = {"controller_pod", "controller_namespace"}
BY = re.compile(r"by \(([^)]*)\)")
SHOWN = re.compile(r"\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}")


def metrics() -> dict[str, set[str]]:
    """Return every documented series in `docs/metrics.md` → its labels."""
    found: dict[str, set[str]] = {}
    for name, kind, labels in ROW.findall((PROJECT / "docs" / "metrics.md").read_text()):
        own = set(re.findall(r"`(\w+)`", labels)) | POD_LABELS
        for suffix in SUFFIXES.get(kind, ("",)):
            found[name + suffix] = own | ({"le"} if suffix == "_bucket" else set())
    return found


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    return [panel for path in sorted(FOLDER.glob("*.json")) for panel in json.loads(path.read_text())["panels"]]


def expressions() -> list[tuple[str, str]]:
    """Return PromQL with the text that names its labels."""
    alerts = [(rule["expr"], rule["annotations"]["summary"].replace("$value", "")) for rule in rules()]
    return alerts + [(panel["targets"][0]["expr"], panel["targets"][0]["legendFormat"]) for panel in panels()]


@pytest.mark.parametrize(("expression", "shown"), expressions())
def test_every_metric_and_label_exists(expression: str, shown: str) -> None:
    known = metrics()
    names = NAME.findall(expression)
    assert names
    assert [name for name in names if name not in known] == []
    labels = set().union(*(known[name] for name in names))
    asked = {label.strip() for group in BY.findall(expression) for label in group.split(",")} | set(
        SHOWN.findall(shown)
    )
    assert asked <= labels


@pytest.mark.parametrize(("expression", "shown"), expressions())
def test_parentheses_match(expression: str, shown: str) -> None:
    depth = 0
    for letter in expression:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        assert depth >= 0
    assert depth == 0
    assert shown is not None


def test_leader_only_panels_query_the_leader() -> None:
    asked = [expression for expression, _ in expressions() if STALE & set(NAME.findall(expression))]
    assert len(asked) > len(STALE)
    others = [expression for expression in asked if OF_THE_LEADER not in expression]
    assert others == [rule["expr"] for rule in rules() if rule["alert"] == "StandbyKeyRejected"]


def test_every_alert_has_a_section_and_every_section_an_alert() -> None:
    got = re.findall(r"^## (\w+)$", RUNBOOK.read_text(), re.MULTILINE)
    assert got == [rule["alert"] for rule in rules()]
    for rule in rules():
        assert rule["annotations"]["runbook"] == f"docs/how-to/alerts.md#{rule['alert'].lower()}"
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}


def test_every_dashboard_is_self_contained() -> None:
    found = [json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))]
    assert [each["uid"] for each in found] == ["apisix-ingress-controller", "apisix-ingress-sync"]
    for each in found:
        assert len({panel["id"] for panel in each["panels"]}) == len(each["panels"])
        assert each["templating"]["list"][0]["type"] == "datasource"
