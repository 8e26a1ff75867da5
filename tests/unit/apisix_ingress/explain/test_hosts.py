"""Which routes of a host get requests, and what they respond."""

from __future__ import annotations

from typing import Any

from apisix_ingress.explain.hosts import HostResponses, RouteIndex
from apisix_ingress.explain.patterns import RouteFacts

NODES = {"nodes": [{"host": "10.0.0.1", "port": 80, "weight": 1}]}
HTTP, HTTPS = ["scheme", "==", "http"], ["scheme", "==", "https"]


def used(host: str, uri: str, **routes: dict[str, Any]) -> dict[str, tuple[int | None, bool]]:
    """Return id → status and whether it is a main route, of the routes that get requests."""
    facts = [RouteFacts(id_, {"host": host, "upstream": NODES, "uri": uri, **body}) for id_, body in routes.items()]
    uses = HostResponses(RouteIndex(facts), {}).uses(host, uri)
    return {use.route.id: (use.response.status, use.is_main) for use in uses}


def test_a_route_behind_an_unconditional_one_is_not_used() -> None:
    got = used("a.org", "/*", first={"priority": 1}, second={"upstream": {"nodes": []}})
    assert got == {"first": (None, True)}


def test_a_route_is_used_behind_a_condition_that_it_does_not_have() -> None:
    header = [["http_x", "==", "1"]]
    got = used("a.org", "/*", first={"priority": 1, "vars": header}, second={"upstream": {"nodes": []}})
    assert got == {"first": (None, False), "second": (503, True)}


def test_a_route_with_the_conditions_of_an_earlier_one_is_not_used() -> None:
    header = [["http_x", "==", "1"]]
    got = used("a.org", "/*", first={"priority": 1, "vars": header}, second={"vars": [*header, ["arg_q", "==", "1"]]})
    assert got == {"first": (None, False)}


def test_two_routes_for_both_schemes_leave_no_request_for_a_third() -> None:
    got = used("a.org", "/*", one={"priority": 2, "vars": [HTTP]}, two={"priority": 1, "vars": [HTTPS]}, three={})
    assert got == {"one": (None, True), "two": (None, True)}


def test_methods_decide_which_routes_are_used() -> None:
    got = used("a.org", "/*", one={"priority": 2, "methods": ["GET", "POST"]}, two={"methods": ["POST"]}, three={})
    assert got == {"one": (None, True), "three": (None, True)}


def test_an_exact_path_does_not_hide_a_prefix() -> None:
    facts = [
        RouteFacts("exact", {"host": "a.org", "uri": "/a", "upstream": NODES}),
        RouteFacts("prefix", {"host": "a.org", "uri": "/a*", "upstream": {"nodes": []}}),
    ]
    responses = HostResponses(RouteIndex(facts), {})
    assert [use.route.id for use in responses.uses("a.org", "/a")] == ["exact"]
    assert [use.route.id for use in responses.uses("a.org", "/a*")] == ["prefix"]


def test_routes_of_wildcards_and_of_every_host_get_what_the_host_leaves() -> None:
    facts = [
        RouteFacts("own", {"host": "x.a.org", "uri": "/*", "upstream": NODES, "methods": ["POST"]}),
        RouteFacts("wild", {"host": "*.a.org", "uri": "/*", "upstream": NODES, "methods": ["GET"]}),
        RouteFacts("every", {"uri": "/*", "upstream": NODES}),
    ]
    responses = HostResponses(RouteIndex(facts), {})
    assert [use.route.id for use in responses.uses("x.a.org", "/*")] == ["own", "wild", "every"]
    assert [use.route.id for use in responses.uses("*.a.org", "/*")] == ["wild", "every"]
    assert [use.route.id for use in responses.uses("", "/*")] == ["every"]
