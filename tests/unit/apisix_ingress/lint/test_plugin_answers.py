"""Contract: `lint` and a real gateway agree on plugins. `reference.plugin_answers` records the answers."""

import json
from typing import Any

import pytest

from apisix_ingress.lint.plugin_checks import CHECKS, mistakes_beyond_schema
from apisix_ingress.webhook.schemas.published import published_book
from reference.plugin_answers import FILE

CASES = [json.loads(line) for line in FILE.read_text().splitlines()]
BOOK = published_book("3.18").http


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['plugin']}-{json.dumps(case['config'])[:60]}")
def test_lint_and_the_gateway_agree(case: dict[str, Any]) -> None:
    name, config, in_consumer = case["plugin"], case["config"], bool(case.get("consumer"))
    found = list(BOOK.mistakes(name, config, in_consumer=in_consumer))
    if not found:
        found = list(mistakes_beyond_schema(name, BOOK.with_defaults(name, config, in_consumer=in_consumer)))
    assert bool(found) is bool(case["error"]), (found, case["error"])


def test_every_check_has_an_answer_of_both_kinds() -> None:
    answers = {(case["plugin"], bool(case["error"])) for case in CASES}
    loggers = {name for name in CHECKS if name.endswith("logger") or name == "syslog"} - {"http-logger"}
    assert {(name, each) for name in CHECKS.keys() - loggers for each in (True, False)} <= answers
