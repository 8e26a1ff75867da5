"""Expressions: results and error messages."""

from __future__ import annotations

from typing import Any

import pytest

from e2e.devgateway.dataplane.expressions import BadExpression, compile_rules

FACTS: dict[str, object] = {"a": "5", "word": "Hello", "ip": "10.1.2.3", "list": ["x", "y"], "hex": "0x10"}


@pytest.mark.parametrize(
    ("rules", "want"),
    [
        ([], True),
        ([["a", "==", "5"]], True),
        ([["a", "==", 5]], True),
        ([["a", "5"]], True),
        ([["a", "~=", 5]], False),
        ([["none", "~=", 5]], True),
        ([["a", ">", "4"], ["a", ">=", 5], ["a", "<", 6], ["a", "<=", 5]], True),
        ([["word", ">", 1]], False),
        ([["hex", "==", 16]], True),
        ([["word", "~~", "^H"]], True),
        ([["word", "~~", "^h"]], False),
        ([["word", "~*", "^h"]], True),
        ([["word", "~~", "("]], False),
        ([["a", "in", ["4", "5"]]], True),
        ([["list", "has", "x"]], True),
        ([["a", "has", "5"]], False),
        ([["a", "!", "==", "5"]], False),
        ([["ip", "ipmatch", ["10.0.0.0/8"]]], True),
        ([["word", "ipmatch", ["10.0.0.0/8"]]], False),
        (["OR", ["a", "==", "1"], ["a", "==", "5"]], True),
        (["!OR", ["a", "==", "1"], ["a", "==", "5"]], False),
        (["!AND", ["a", "==", "1"], ["a", "==", "5"]], True),
        ([["OR", ["a", "==", "1"], ["AND", ["a", "==", "5"], ["word", "==", "Hello"]]]], True),
    ],
)
def test_expression_holds_as_in_the_gateway(rules: list[Any], want: bool) -> None:
    assert compile_rules(rules).holds(FACTS.get) is want


@pytest.mark.parametrize(
    ("rules", "want"),
    [
        (["a", "==", "1"], "rule should be wrapped inside brackets"),
        ([["a", "zz", "1"]], "invalid operator 'zz'"),
        ([["a", "==", "==", "1"]], "bad 'not' expression"),
        ([["a"]], "invalid expression"),
        ([[]], "rule too short"),
        (["OR", ["a", "==", "1"]], "rule too short"),
    ],
)
def test_bad_expression_is_refused_with_the_gateways_error(rules: list[Any], want: str) -> None:
    with pytest.raises(BadExpression) as caught:
        compile_rules(rules)
    assert str(caught.value) == want
