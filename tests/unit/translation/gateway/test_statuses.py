"""Status documents: what is written, depending on the existing status."""

from __future__ import annotations

from dataclasses import replace

from apisix_ingress.model.assessment import Assessment, ListenerKey, ListenerState, ParentState, Verdict
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from translation.gateway.hostnames import covers, intersection, pattern, shared_hosts
from translation.gateway.statuses import Moment, status_change

GATEWAY = ObjectKey("Gateway", "default", "gw")
ROUTE = ObjectKey("HTTPRoute", "default", "app")
LISTENER = ListenerKey(GATEWAY, "http")
NOW = Moment("ours", 2, "2026-01-02T00:00:00Z", {LISTENER: 3}, [("IPAddress", "192.0.2.1")])
GOOD = Verdict("Accepted", True, "Accepted")


def condition(type_: str = "Accepted", status: str = "True", **rest: object) -> JsonObject:
    base = {"reason": type_, "message": "", "observedGeneration": 2, "lastTransitionTime": NOW.now}
    return {"type": type_, "status": status, **base, **rest}


def entry(controller: str = "ours", **rest: object) -> JsonObject:
    return {"parentRef": {"name": "gw"}, "controllerName": controller, "conditions": [condition()], **rest}


ASSESSED = Assessment(parents=(ParentState({"name": "gw"}, (GOOD,)),))


def test_a_first_status_is_written_once() -> None:
    change = status_change(ROUTE, ASSESSED, {}, NOW)
    assert change == {"parents": [entry()]}
    assert status_change(ROUTE, ASSESSED, change, replace(NOW, now="later")) == {}


def test_entries_and_conditions_of_others_stay() -> None:
    foreign = {"type": "Programmed2", "status": "True"}
    old = entry(conditions=[condition(status="False", lastTransitionTime="before"), foreign])
    status = {"parents": [old, entry("other"), "junk"]}
    change = status_change(ROUTE, ASSESSED, status, NOW)
    assert change == {"parents": [entry("other"), entry(conditions=[condition(), foreign])]}


def test_the_time_of_a_transition_stays_while_the_status_does() -> None:
    old = entry(conditions=[condition(reason="Old", lastTransitionTime="before")])
    change = status_change(ROUTE, ASSESSED, {"parents": [old]}, NOW)
    assert change["parents"][0]["conditions"] == [condition(lastTransitionTime="before")]


def test_the_status_is_removed_from_a_route_of_another_controller() -> None:
    status = {"parents": [entry(), entry("other")]}
    assert status_change(ROUTE, None, status, NOW) == {"parents": [entry("other")]}
    assert status_change(ROUTE, None, {"parents": [entry("other")]}, NOW) == {}
    assert status_change(GATEWAY, None, {}, NOW) == {}
    assert status_change(ROUTE, None, {}, NOW) == {}


def test_a_policy_has_an_entry_for_each_gateway() -> None:
    policy = ObjectKey("BackendTLSPolicy", "default", "tls")
    foreign = {"ancestorRef": {"name": "gw"}, "controllerName": "other", "conditions": []}
    change = status_change(policy, ASSESSED, {"ancestors": [foreign]}, NOW)
    ours = {"ancestorRef": {"name": "gw"}, "controllerName": "ours", "conditions": [condition()]}
    assert change == {"ancestors": [foreign, ours]}
    assert status_change(policy, ASSESSED, change, NOW) == {}
    assert status_change(policy, Assessment(), change, NOW) == {"ancestors": [foreign]}
    assert status_change(policy, Assessment(), {}, NOW) == {}


def test_a_gateway_shows_listeners_and_addresses() -> None:
    state = ListenerState("http", 80, ("HTTPRoute",), (GOOD,))
    change = status_change(GATEWAY, Assessment((GOOD,), (state,), listener_sets=1), {}, NOW)
    kinds = [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute"}]
    listener = {"name": "http", "supportedKinds": kinds, "attachedRoutes": 3, "conditions": [condition()]}
    assert change == {
        "conditions": [condition()],
        "listeners": [listener],
        "addresses": [{"type": "IPAddress", "value": "192.0.2.1"}],
        "attachedListenerSets": 1,
    }
    own = Assessment((GOOD,), (state,), addresses=(("IPAddress", "192.0.2.9"),))
    assert status_change(GATEWAY, own, change, NOW) == {"addresses": [{"type": "IPAddress", "value": "192.0.2.9"}]}


def test_a_condition_of_ours_that_no_longer_applies_is_removed() -> None:
    stale = condition("InsecureFrontendValidationMode")
    status = {"conditions": [stale, condition("Example")], "listeners": [], "addresses": []}
    change = status_change(GATEWAY, Assessment((GOOD,)), status, replace(NOW, published=()))
    assert change == {"conditions": [condition("Example"), condition()]}


def test_a_set_and_a_class_show_what_they_have() -> None:
    key = ObjectKey("ListenerSet", "default", "set")
    assert status_change(key, Assessment((GOOD,)), {}, NOW) == {"conditions": [condition()], "listeners": []}
    key = ObjectKey("GatewayClass", "", "apisix")
    assert status_change(key, Assessment((GOOD,), features=("B", "A")), {}, NOW) == {
        "conditions": [condition()],
        "supportedFeatures": [{"name": "A"}, {"name": "B"}],
    }


def test_a_policy_shows_its_ancestors_after_those_of_others() -> None:
    key, gateway = ObjectKey("HTTPRoutePolicy", "default", "p"), {"kind": "Gateway", "name": "gw"}
    others = [{"ancestorRef": {"name": str(number)}, "controllerName": "other"} for number in range(15)]
    wanted = Assessment(parents=(ParentState(gateway, (GOOD,)), ParentState({"name": "second"}, (GOOD,))))
    change = status_change(key, wanted, {"ancestors": others}, NOW)
    ours = {"ancestorRef": gateway, "controllerName": "ours", "conditions": [condition()]}
    assert change == {"ancestors": [*others, ours]}  # the API has room for 16
    assert status_change(key, None, change, NOW) == {"ancestors": others}


def test_a_consumer_shows_conditions_only() -> None:
    change = status_change(ObjectKey("Consumer", "default", "c"), Assessment((GOOD,)), {}, NOW)
    assert change == {"conditions": [condition()]}


def test_host_names() -> None:
    assert covers("", "a.test")
    assert covers("*.test", "b.a.test")
    assert not covers("*.test", "test")
    assert not covers("a.test", "*.test")
    assert intersection("*.a.test", "*.test") == "*.a.test"
    assert intersection("a.test", "b.test") is None
    assert shared_hosts("*.test", ("A.test", "b.test", "c.org")) == ("a.test", "b.test")
    assert shared_hosts("", ()) == ("",)
    assert pattern("*.a-b.test") == r".+\.a\-b\.test"
