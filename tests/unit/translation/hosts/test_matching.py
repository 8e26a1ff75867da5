"""Conditions on a request, as `vars` and as fields of a route."""

import pytest

from crds.v2.route import Expression
from tests.unit.translation.objects import OPTIONS, world
from translation.core.context import Context
from translation.hosts.matching import check_addresses, check_hosts, check_paths, expressions, is_network


def scope() -> Context:
    return Context("ApisixRoute", "default", world().view(), OPTIONS)


@pytest.mark.parametrize(
    ("where", "name", "want"),
    [
        ("Query", "Id", "arg_Id"),
        ("Header", "X-Api-Version", "http_x_api_version"),
        ("Cookie", "Sid", "cookie_Sid"),
        ("Body", "model.name", "post_arg.model.name"),
        ("Path", "", "uri"),
        ("Variable", "request_method", "request_method"),
    ],
)
def test_subject_becomes_a_variable(where: str, name: str, want: str) -> None:
    expr = Expression.model_validate({"subject": {"scope": where, "name": name}, "op": "Equal", "value": "v"})
    assert expressions([expr]) == [[want, "==", "v"]]


@pytest.mark.parametrize(
    ("operator", "want"),
    [
        ("Equal", ["=="]),
        ("NotEqual", ["~="]),
        ("GreaterThan", [">"]),
        ("GreaterThanEqual", [">="]),
        ("LessThan", ["<"]),
        ("LessThanEqual", ["<="]),
        ("RegexMatch", ["~~"]),
        ("RegexNotMatch", ["!", "~~"]),
        ("RegexMatchCaseInsensitive", ["~*"]),
        ("RegexNotMatchCaseInsensitive", ["!", "~*"]),
    ],
)
def test_operator_with_a_value(operator: str, want: list[str]) -> None:
    expr = Expression.model_validate({"subject": {"scope": "Path"}, "op": operator, "value": ""})
    assert expressions([expr]) == [["uri", *want, ""]]


@pytest.mark.parametrize(("operator", "want"), [("In", ["in"]), ("NotIn", ["!", "in"])])
def test_operator_with_a_set(operator: str, want: list[str]) -> None:
    expr = Expression.model_validate({"subject": {"scope": "Path"}, "op": operator, "set": ["a", "b"]})
    assert expressions([expr]) == [["uri", *want, ["a", "b"]]]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("10.0.0.1", True),
        ("10.0.0.1/8", True),
        ("fd00::1", True),
        ("fd00::/8", True),
        ("10.0.0.0/33", False),
        ("10.0.0.0/255.0.0.0", False),
        ("10.0.0.0/08", False),
        ("::/0", True),
        ("fe80::1%eth0", False),
        ("fe80::%1/10", False),
        ("example.com", False),
        ("", False),
    ],
)
def test_network_is_an_address_or_a_range(text: str, want: bool) -> None:
    assert is_network(text) is want


def test_every_bad_address_is_reported() -> None:
    found = scope()
    check_addresses(found, ["10.0.0.1", "x", "y"], "p")
    assert [problem.path for problem in found.problems] == ["p[1]", "p[2]"]


def test_path_and_host_that_never_match_are_reported() -> None:
    found = scope()
    check_paths(found, ["a"], "paths")
    check_hosts(found, ["a.com:8080", "a.com", "[::1]"], "hosts")
    assert [(problem.severity, problem.code, problem.path) for problem in found.problems] == [
        ("warning", "PathNeverMatches", "paths[0]"),
        ("warning", "HostNeverMatches", "hosts[0]"),
    ]
