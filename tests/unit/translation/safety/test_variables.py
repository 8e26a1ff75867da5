"""Variables for which a gateway parses the body of a request."""

from __future__ import annotations

import pytest

from apisix_ingress.model.json import JsonObject
from translation.nginx.functions.attached import FIELD
from translation.nginx.functions.texts import TEXTS
from translation.safety.faults import dotted
from translation.safety.variables import LONGEST, MOST_VARIABLES, variable_faults


def faulty(body: JsonObject) -> list[str]:
    return [dotted(fault.steps) for fault in variable_faults(body)]


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"vars": [["graphql_name", "==", "x"]]}, ["vars[0][0]"]),
        ({"vars": [["OR", ["uri", "==", "/"], ["graphql_root_fields", "has", "x"]]]}, ["vars[0][2][0]"]),
        ({"key": "${graphql_name}", "type": "chash"}, ["key"]),
        ({"plugins": {"limit-count": {"key": "graphql_name"}}}, ["plugins.limit-count.key"]),
        (
            {"plugins": {"proxy-rewrite": {"headers": {"set": {"X": "a${ post_arg.a[0:1:0] }"}}}}},
            ["plugins.proxy-rewrite.headers.set.X"],
        ),
        (
            {"plugins": {"cors": {"_meta": {"filter": [["post_arg.a..b", "==", 1]]}}}},
            ["plugins.cors._meta.filter[0][0]"],
        ),
        ({"plugins": {"proxy-cache": {"cache_key": ["a/", "$post_arg.*"]}}}, ["plugins.proxy-cache.cache_key[1]"]),
        ({"vars": [["post_arg.a.b", "==", "1"], ["post_arg_a", "==", "1"]]}, ["vars[0][0]"]),
        ({"plugins": {"proxy-rewrite": {"headers": {"X": "${post_arg.model}"}}}}, ["plugins.proxy-rewrite.headers.X"]),
        ({"labels": {"graphql_a": "graphql_b"}, "desc": "graphql_"}, []),
    ],
    ids=str,
)
def test_such_a_variable_is_a_fault_wherever_it_is_evaluated(body: JsonObject, where: list[str]) -> None:
    assert faulty(body) == where


def test_the_number_of_variables_in_a_record_is_limited() -> None:
    def headers(number: int) -> JsonObject:
        return {"plugins": {"proxy-rewrite": {"headers": {"A": "$uri" * number, "B": "$uri"}}}}

    assert faulty(headers(MOST_VARIABLES - 1)) == []
    assert faulty(headers(MOST_VARIABLES + 1)) == ["plugins.proxy-rewrite.headers.A"]
    assert faulty({"plugins": {"ua-restriction": {"denylist": ["^a$"] * MOST_VARIABLES * 2}}}) == []
    users = {f"user{number}": "$apr1$x$y" for number in range(MOST_VARIABLES)}
    assert faulty({"plugins": {"serverless-pre-function": {FIELD: {"basic": {"users": users}}}}}) == []


@pytest.mark.parametrize(
    "text", ["${a" + " " * 60_000 + "b}", "$" * 9 + "{" + " " * 60_000, "${a}" + "${" + "x" * LONGEST, "${" * 500]
)
def test_a_long_reference_to_a_variable_is_a_fault(text: str) -> None:
    """A gateway searches its blanks in quadratic time: 60,000 take 12 s, for every request."""
    assert faulty({"plugins": {"fault-injection": {"abort": {"body": text}}}})[:1] == [
        "plugins.fault-injection.abort.body"
    ]
    assert faulty({"plugins": {"serverless-pre-function": {FIELD: {"external": {"uri": text}}}}}) != []


def test_text_around_references_may_have_any_length() -> None:
    text = "{" + "a " * 50_000 + "${a" + " " * (LONGEST - 3) + "} $ {" + " " * 5000 + "$x" + " " * 5000
    assert faulty({"plugins": {"fault-injection": {"abort": {"body": text}}}}) == []


def test_no_function_of_the_controller_uses_such_a_variable() -> None:
    assert [dotted(fault.steps) for fault in variable_faults({"plugins": {"x": {"functions": sorted(TEXTS)}}})] == []
