"""Alert rules and dashboards, read by Prometheus' own parser."""

import json
from pathlib import Path

from e2e.charts.prometheus_rules import check

FOLDER = Path(__file__).parents[3] / "deploy" / "observability"
RULES = FOLDER / "alerts.yaml"


def test_prometheus_reads_every_rule_and_expression() -> None:
    counts, wrong = check(RULES, sorted(FOLDER.glob("*.json")))
    assert wrong == ""
    assert all(counts)
    assert sum(counts) > 30


def test_a_wrong_rule_and_a_wrong_expression_are_named(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES.read_text().replace("absent(apisix_ingress_controller_is_leader)", "absent(a"))
    board = tmp_path / "board.json"
    board.write_text(json.dumps({"panels": [{"title": "Broken", "targets": [{"expr": "sum by ("}]}]}))
    _, wrong = check(rules, [board])
    assert "ControllerDown" in wrong
    assert "Broken: " in wrong


def test_a_template_with_an_unknown_function_is_named(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES.read_text().replace("{{ $value }}", "{{ $value | nonsense }}", 1))
    _, wrong = check(rules, [])
    assert "nonsense" in wrong
