"""Values that make regular expressions backtrack: the work for each annotation grows with the length of its value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.steps import pumped, steps
from translation.nginx.effects import responses
from translation.nginx.tables.annotations import TABLE
from translation.nginx.tables.findings import judged
from translation.nginx.tables.values import Values

_PARSED: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("parsed_values.json").read_text("utf-8"))
_SEEDS = {name: tuple(_PARSED.get(name, {}).get("taken", ()))[:2] or ("add_header a b;",) for name in TABLE}


def _work(name: str, value: str) -> int:
    others = _PARSED.get(name, {}).get("with", {})
    return steps(lambda: list(judged(Values({**others, name: value}))))


@pytest.mark.parametrize("name", sorted(TABLE))
def test_ten_times_as_long_a_value_takes_at_most_ten_times_the_work(name: str) -> None:
    for seed in _SEEDS[name]:
        few, many = pumped(seed, 20), pumped(seed, 200)
        for short, long in zip(few, many, strict=True):
            assert _work(name, long) <= 11 * _work(name, short) + 1000, long[:80]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("auth-response-headers", ",  " * 1000 + "!"),
        ("session-cookie-max-age", "1" * 4000 + "x"),
        ("session-cookie-expires", "-1" * 2000 + "x"),
        ("ssl-ciphers", "AES" * 1300 + "?"),
    ],
)
def test_a_value_that_backtracks_is_not_valid(name: str, value: str) -> None:
    others = {"auth-url": "http://auth.test/", "affinity": "cookie"}
    findings = {found.annotation: found for found in judged(Values({**others, name: value}))}
    assert findings[name].outcome is not None


@pytest.mark.parametrize(
    ("name", "value"),
    [("cors-expose-headers", "a" * 4000 + "!"), ("cors-allow-origin", ":11" * 1000 + "!")],
)
def test_a_cors_list_that_backtracks_has_the_default(name: str, value: str) -> None:
    given = Values({"enable-cors": "true", name: value})
    assert responses.cors_headers(given) == responses.cors_headers(Values({"enable-cors": "true"}))


@pytest.mark.parametrize("name", sorted(TABLE))
def test_a_value_beyond_the_maximum_closes_the_path_and_is_reported(name: str) -> None:
    row = TABLE[name]
    value = "a" * (row.longest + 1)
    verdict = row.judge(value)
    assert row.outcome(value) is not None
    assert (verdict.level, verdict.protects) == ("refused", True)
    assert verdict.reason == f"The value is longer than {row.longest} characters; shorten it."
