"""An HTTPRoute, an Ingress and an ApisixRoute for the same requests: the oldest wins, and the others report it."""

from __future__ import annotations

from typing import Any

import pytest

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.state.world import World
from tests.unit.translation.gateway.objects import CLASS, gateway, of_parents, route, rule
from tests.unit.translation.hosts.test_route_conflicts import born, codes, ingress, priorities
from tests.unit.translation.hosts.test_route_conflicts import route as apisix_route
from tests.unit.translation.objects import make, service
from tests.unit.translation.settling import settle

EXACT = {"path": {"type": "Exact", "value": "/x"}}
PREFIX = {"path": {"type": "PathPrefix", "value": "/x/"}}


def http_route(day: int, *matches: JsonObject, name: str = "app", **spec: Any) -> JsonObject:
    return born(route(rule(matches=list(matches or [EXACT])), name=name, **{"hostnames": ["A.com"], **spec}), day)


def served(*objects: JsonObject) -> World:
    return settle(CLASS, gateway(), service(), *objects)


def test_a_younger_http_route_yields_to_an_ingress_and_an_apisix_route() -> None:
    for old in (ingress("old", 1, ("/x", "Exact")), apisix_route("old", 1)):
        new = http_route(2)
        found = served(new, old)
        assert (priorities(found, old), codes(found, old)) == ([0], [])
        assert priorities(found, new) == [-1]
        assert codes(found, new) == ["degraded Conflicted spec.rules[0].matches[0]"]
        (parent,) = of_parents(found)
        assert parent == {"Accepted": "Accepted", "ResolvedRefs": "ResolvedRefs", "Conflicted": "OlderRoute"}


def test_the_older_http_route_wins_and_the_others_report_it() -> None:
    old, ing, route_ = http_route(1), ingress("ing", 2, ("/x", "Exact")), apisix_route("ar", 3)
    found = served(old, ing, route_)
    assert codes(found, old) == []
    assert priorities(found, old)[0] > 0
    assert codes(found, ing) == ["degraded Conflicted spec.rules[0].http.paths[0]"]
    assert codes(found, route_) == ["degraded Conflicted spec.http[0]"]
    assert (priorities(found, ing), priorities(found, route_)) == ([-1], [-2])
    assert "conflict: requests for a.com and /x go to HTTPRoute default/app" in str(found.reports[_key(ing)].problems)


def test_http_routes_around_an_ingress_keep_their_ages() -> None:
    first, second, third = http_route(1, name="one"), ingress("two", 2, ("/x", "Exact")), http_route(3, name="three")
    found = served(third, second, first)
    got = [priorities(found, each)[0] for each in (first, second, third)]
    assert (got[0] > 0, got[1:]) == (True, [-1, -2])


@pytest.mark.parametrize(
    ("match", "conflicts"),
    [
        (PREFIX, True),
        ({"path": {"value": "/y"}}, False),
        ({**PREFIX, "method": "GET"}, False),
        ({**PREFIX, "headers": [{"name": "X-A", "value": "1"}]}, False),
        ({**PREFIX, "queryParams": [{"name": "a", "value": "1"}]}, False),
        ({"path": {"type": "RegularExpression", "value": "/x/.*"}}, False),
    ],
)
def test_only_equal_matches_conflict(match: JsonObject, conflicts: bool) -> None:
    new = http_route(2, match)
    found = served(new, ingress("old", 1, ("/x", "Prefix")))
    assert bool(codes(found, new)) == conflicts


def test_conditions_on_headers_are_compared_with_those_of_apisix_routes() -> None:
    header = {"subject": {"scope": "Header", "name": "x-a"}, "op": "Equal", "value": "1"}
    new = http_route(2, {**EXACT, "headers": [{"name": "X-A", "value": "1"}], "method": "GET"})
    assert codes(served(new, apisix_route("old", 1, exprs=[header], methods=["GET"])), new) != []
    assert codes(served(new, apisix_route("old", 1, exprs=[header])), new) == []


def test_a_route_of_another_controller_is_ignored() -> None:
    foreign, ing = http_route(1, parentRefs=[{"name": "another"}]), ingress("ing", 2, ("/x", "Exact"))
    found = served(foreign, ing)
    assert (codes(found, ing), priorities(found, ing)) == ([], [0])


def test_a_policy_sets_a_route_apart() -> None:
    target = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "app"}
    policy = make("HTTPRoutePolicy", "p", spec={"targetRefs": [target], "vars": [["http_x", "==", "1"]]})
    for days in ((1, 2), (2, 1)):
        canary, ing = http_route(days[0]), ingress("ing", days[1], ("/x", "Exact"))
        found = served(canary, ing, policy)
        assert (codes(found, canary), codes(found, ing)) == ([], [])


def test_grpc_methods_conflict_with_paths() -> None:
    call = {"method": {"service": "shop.Cart", "method": "Add"}}
    new = born(route(rule(matches=[call]), kind="GRPCRoute", hostnames=["a.com"]), 2)
    found = served(new, ingress("old", 1, ("/shop.Cart/Add", "Exact")))
    assert codes(found, new) == ["degraded Conflicted spec.rules[0].matches[0]"]
    for other in ({"service": "shop.Cart"}, {"method": "Add"}, {}):
        assert codes(served(born(route(rule(matches=[{"method": other}]), kind="GRPCRoute"), 2)), new) == []


def _key(raw: JsonObject) -> ObjectKey:
    return ObjectKey(raw["kind"], "default", raw["metadata"]["name"])
