"""The number of routes of each listener."""

from __future__ import annotations

from apisix_ingress.model.assessment import ListenerKey
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.state.attachments import Attachments

GATEWAYS = [ObjectKey("Gateway", "default", name) for name in "ab"]
A, B = (ListenerKey(each, "http") for each in GATEWAYS)
ROUTES = [ObjectKey("HTTPRoute", "default", name) for name in "xy"]


def test_routes_are_counted_until_they_leave() -> None:
    found = Attachments()
    assert found.replace(ROUTES[0], frozenset({A})) == {GATEWAYS[0]}
    assert found.replace(ROUTES[1], frozenset({A, B})) == {*GATEWAYS}
    assert found.counts == {A: 2, B: 1}
    assert found.replace(ROUTES[1], frozenset({A})) == {GATEWAYS[1]}
    assert found.replace(ROUTES[1], frozenset({A})) == frozenset()
    assert found.replace(ROUTES[0], frozenset()) == {GATEWAYS[0]}
    assert found.counts == {A: 1}
