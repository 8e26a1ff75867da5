"""A route's `vars` in `explain`: conditions that hold, that are unknown, and that the gateway would not compile."""

from typing import Any

import pytest

from apisix_ingress.explain.expressions import evaluate
from apisix_ingress.explain.request import Unknown

VARIABLES = {"arg_n": "7", "arg_hex": "0x10", "http_host": "web.example.org", "arg_text": "seven"}


def lookup(name: str) -> str | None:
    if name == "geoip":
        raise Unknown("the gateway looks it up")
    return VARIABLES.get(name)


@pytest.mark.parametrize(
    ("rules", "want"),
    [
        ([[]], "rule too short"),
        (["AND", ["arg_n", "7"]], "rule too short"),
        ([["arg_n", "not", "==", "7"]], "bad 'not' expression"),
        ([["arg_n", "=~", "7"]], "invalid operator '=~'"),
    ],
)
def test_rules_that_the_gateway_would_not_compile_never_hold(rules: list[Any], want: str) -> None:
    got = evaluate(rules, lookup)
    assert (got.holds, got.reason) == (False, f"vars cannot be compiled: {want}")


@pytest.mark.parametrize(
    ("rule", "want"),
    [
        (["arg_n", "7"], True),
        (["arg_n", "==", 7], True),
        (["arg_hex", "==", 16], True),
        (["arg_text", "==", 7], False),
        (["arg_text", ">", 1], False),
        (["arg_none", "<", 1], False),
        (["arg_n", ">", True], False),
        (["arg_n", "!", ">", 8], True),
        (["arg_n", "IN", ["6", "7"]], True),
        (["arg_n", "in", "7"], False),
        (["arg_n", "has", "7"], False),
        (["arg_text", "ipmatch", ["10.0.0.0/8"]], False),
        (["geoip", "==", "x"], None),
    ],
)
def test_a_comparison_holds_as_at_the_gateway(rule: list[Any], want: bool | None) -> None:
    assert evaluate([rule], lookup).holds is want


@pytest.mark.parametrize(
    ("rules", "want"),
    [
        ([], True),
        (["OR", ["arg_n", "==", "8"], ["geoip", "==", "x"]], None),
        (["OR", ["arg_n", "==", "7"], ["geoip", "==", "x"]], True),
        (["AND", ["arg_n", "==", "8"], ["geoip", "==", "x"]], False),
        (["!OR", ["arg_n", "==", "8"], ["arg_text", "==", "x"]], True),
        (["!AND", ["arg_n", "==", "7"], ["geoip", "==", "x"]], None),
    ],
)
def test_unknown_values_decide_only_if_nothing_else_does(rules: list[Any], want: bool | None) -> None:
    assert evaluate(rules, lookup).holds is want


def test_an_or_that_fails_names_every_part() -> None:
    got = evaluate(["OR", ["arg_n", "==", "8"], ["arg_none", "==", "x"]], lookup)
    assert got.reason == "arg_n == '8', but it is '7' and arg_none == 'x', but it is absent"
