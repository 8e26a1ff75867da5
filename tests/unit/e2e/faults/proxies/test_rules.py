"""Rule files: which rule is applied, how often, and the effect of changes of the file."""

import json
from collections import Counter
from pathlib import Path

import pytest

from e2e.faults.proxies.rules import FaultLog, RuleError, RuleFile

ACTIONS = ("delay", "drop")
LIST = {"verb": "list", "resource": "secrets"}


@pytest.fixture
def rules(tmp_path: Path) -> RuleFile:
    return RuleFile(tmp_path / "rules.json", ACTIONS)


def test_without_a_file_nothing_is_played(rules: RuleFile) -> None:
    assert (rules.take(LIST), rules.problem) == (None, "")


def test_first_rule_that_matches_in_whole_is_accepted_with_its_options(rules: RuleFile) -> None:
    rules.write(
        [
            {"match": {"resource": "secret"}, "action": "drop"},
            {"match": {"name": "some"}, "action": "drop"},
            {"match": {"verb": "list|watch", "resource": "sec.*"}, "action": "delay", "seconds": 2},
            {"action": "drop"},
        ]
    )
    taken = rules.take(LIST)
    assert taken is not None
    assert (taken.action, dict(taken.options)) == ("delay", {"seconds": 2})


def test_only_faults_that_can_be_played_now_are_accepted(rules: RuleFile) -> None:
    rules.write([{"action": "delay"}, {"action": "drop", "times": 1}])
    got = [rules.take(LIST, {"drop"}), rules.take(LIST, {"drop"})]
    assert [each.action if each else None for each in got] == ["drop", None]


def test_an_exhausted_rule_keeps_counting_when_others_change(rules: RuleFile) -> None:
    twice = {"action": "drop", "times": 2}
    rules.write([twice])
    assert rules.take(LIST) is not None
    rules.write([twice, {"match": {"verb": "get"}, "action": "delay"}])
    assert rules.take(LIST) is not None
    assert rules.take(LIST) is None


def test_a_rule_that_is_removed_and_restored_counts_again(rules: RuleFile) -> None:
    once = {"action": "drop", "times": 1}
    rules.write([once])
    assert rules.take(LIST) is not None
    rules.write([])
    rules.write([once])
    assert rules.take(LIST) is not None


def test_rule_that_was_taken_holds_until_it_leaves_the_file(rules: RuleFile) -> None:
    rules.write([{"action": "drop", "times": 1}])
    taken = rules.take(LIST)
    assert taken is not None
    assert rules.holds(taken)
    rules.write([])
    assert not rules.holds(taken)


def test_share_is_about_the_part_of_requests_that_is_hit(rules: RuleFile) -> None:
    rules.write([{"action": "drop", "share": 0.25}])
    got = Counter(rules.take(LIST) is not None for _ in range(4000))
    assert 800 < got[True] < 1200


def test_a_broken_file_keeps_the_rules_and_reports_the_reason(rules: RuleFile) -> None:
    rules.write([{"action": "drop"}])
    assert rules.take(LIST) is not None
    rules.path.write_text("[{")
    assert rules.take(LIST) is not None
    assert str(rules.path) in rules.problem
    rules.path.write_text(json.dumps([]))
    assert (rules.take(LIST), rules.problem) == (None, "")


@pytest.mark.parametrize(
    "raw",
    [
        {"match": {}},
        {"action": "explode"},
        {"action": "drop", "match": {"verb": "("}},
        {"action": "drop", "match": ["verb"]},
        {"action": "drop", "share": "often"},
        "drop",
    ],
)
def test_invalid_rules_are_rejected(rules: RuleFile, raw: object) -> None:
    with pytest.raises(RuleError):
        rules.write([raw])  # type: ignore[list-item]
    assert not rules.path.exists()


def test_the_log_has_senders_and_actions_and_can_be_filtered(tmp_path: Path) -> None:
    log = FaultLog(tmp_path / "log.jsonl", "proxy")
    assert log.lines() == []
    log.note("request", verb="list")
    log.note("request", verb="watch")
    log.note("fault", action="drop")
    (line,) = log.lines("request", verb="watch")
    assert (line["who"], line["event"], line["verb"]) == ("proxy", "request", "watch")
    assert {"monotonic", "time"} <= line.keys()
    assert len(log.lines()) == 3
