"""Gateways and their listeners."""

from __future__ import annotations

from dataclasses import replace

import pytest

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.state.world import World
from tests.unit.translation.gateway.objects import (
    CLASS,
    assessed,
    gateway,
    listener,
    of_listeners,
    of_parents,
    route,
    rule,
    secure,
    set_of,
    verdicts,
)
from tests.unit.translation.gateway.tls_objects import ACCEPTED, GOOD, POOL, frontend, pair, ssls
from tests.unit.translation.objects import OPTIONS, make, service
from tests.unit.translation.objects import rule as apisix_rule
from tests.unit.translation.settling import bodies, problems, settle

FROM_ALL: JsonObject = {"allowedListeners": {"namespaces": {"from": "All"}}}


def test_a_gateway_with_a_listener_is_programmed() -> None:
    found = settle(CLASS, gateway())
    assert verdicts(found, "Gateway", "gw") == ACCEPTED
    assert of_listeners(found) == {"http": GOOD}
    assert assessed(found, "Gateway", "gw").listeners[0].kinds == ("HTTPRoute", "GRPCRoute")
    assert bodies(found) == {}


def test_gateways_of_other_classes_are_ignored() -> None:
    foreign = make("GatewayClass", "apisix", namespace="", spec={"controllerName": "example.org/other"})
    nameless = make("Gateway", "none", spec={"listeners": []})
    found = settle(foreign, gateway(), nameless, route(rule()))
    assert not found.reports


def test_a_class_with_parameters_is_refused() -> None:
    spec = {**CLASS["spec"], "parametersRef": {"kind": "X", "name": "x"}}
    found = settle(make("GatewayClass", "apisix", namespace="", spec=spec))
    assert verdicts(found, "GatewayClass", "apisix", "") == {"Accepted": "!InvalidParameters"}
    assert "HTTPRoute" in assessed(settle(CLASS), "GatewayClass", "apisix", "").features


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (listener("b", 80, "HTTP"), "HostnameConflict"),
        (listener("b", 80, "TCP"), "ProtocolConflict"),
        (listener("b", 80, "UDP"), ""),
        (listener("b", 80, "HTTP", hostname="a.example.com"), ""),
        (listener("b", 81, "HTTP"), ""),
    ],
)
def test_listeners_of_one_port_conflict(second: JsonObject, reason: str) -> None:
    found = settle(CLASS, gateway(listener("a"), second, listener("c", 8080)))
    refused = dict.fromkeys(("Accepted", "Programmed"), f"!{reason}")
    want = {**refused, "Conflicted": reason, "ResolvedRefs": "ResolvedRefs"} if reason else GOOD
    assert of_listeners(found) == {"a": want, "b": want, "c": GOOD}
    assert problems(found)["Gateway default/gw"] == (["ListenerNotReady"] * 2 if reason else [])
    expected = "ListenersNotValid" if reason else "Accepted"
    assert verdicts(found, "Gateway", "gw") == {"Accepted": expected, "Programmed": "Programmed"}


def test_https_and_tls_share_a_port_by_hostname() -> None:
    tls = listener("tls", 443, "TLS", hostname="b.example.com", tls={"certificateRefs": [{"name": "cert"}]})
    found = settle(CLASS, gateway(secure("https", "cert", hostname="a.example.com"), tls), pair())
    assert of_listeners(found) == {"https": GOOD, "tls": GOOD}


@pytest.mark.parametrize(
    ("only", "reason"),
    [
        (listener("a", 80, "SCTP"), "UnsupportedProtocol"),
        (listener("a", 443, "TLS", tls={"mode": "Passthrough"}), "UnsupportedValue"),
    ],
)
def test_a_gateway_without_a_listener_that_can_be_served_is_refused(only: JsonObject, reason: str) -> None:
    found = settle(CLASS, gateway(only))
    assert of_listeners(found)["a"]["Accepted"] == f"!{reason}"
    assert verdicts(found, "Gateway", "gw") == {"Accepted": "!ListenersNotValid", "Programmed": "!Invalid"}


def test_kinds_that_a_listener_cannot_take_are_reported() -> None:
    kinds = [{"kind": "HTTPRoute"}, {"kind": "TCPRoute"}, {"group": "example.org", "kind": "HTTPRoute"}]
    found = settle(CLASS, gateway(listener(allowedRoutes={"kinds": kinds})))
    assert of_listeners(found)["http"]["ResolvedRefs"] == "!InvalidRouteKinds"
    assert assessed(found, "Gateway", "gw").listeners[0].kinds == ("HTTPRoute",)


def test_a_listener_that_cannot_be_served_closes_connections_at_its_address() -> None:
    pooled = replace(OPTIONS, gateway_addresses=("192.0.2.1",))
    tls = frontend({"kind": "ConfigMap", "name": "absent"})
    entry = gateway(listener(), secure("https", "cert", hostname="a.test"), tls=tls)
    found = settle(CLASS, entry, pair(), options=pooled)
    (body,) = (dict(body) for path, body in bodies(found).items() if path.startswith("routes"))
    assert (body["hosts"], body["plugins"]["fault-injection"]["abort"]["http_status"]) == (["a.test"], 444)
    assert body["vars"] == [["server_addr", "==", "192.0.2.1"], ["server_port", "==", "443"]]
    assert not ssls(found)


def test_a_hostname_of_another_namespace_is_refused() -> None:
    older = make("ApisixRoute", "web", namespace="other", spec={"http": [apisix_rule(match={"hosts": ["a.test"]})]})
    older["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"
    owned = replace(OPTIONS, host_ownership="namespace")
    entry = gateway(listener("a", hostname="a.test"), listener("b", hostname="b.test"))
    found = settle(CLASS, entry, older, service(namespace="other"), options=owned)
    accepted = {name: each["Accepted"] for name, each in of_listeners(found).items()}
    assert accepted == {"a": "!UnsupportedValue", "b": "Accepted"}


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        ({"infrastructure": {"parametersRef": {"group": "g", "kind": "K", "name": "n"}}}, "!InvalidParameters"),
        ({"addresses": [{"type": "example.org/vip", "value": "x"}]}, "!UnsupportedAddress"),
    ],
)
def test_unsupported_parts_of_a_gateway_are_rejected(spec: JsonObject, want: str) -> None:
    objects = (route(rule()), set_of(listener("x", 81)), service())
    found = settle(CLASS, gateway(listener(hostname="a.test"), **spec, **FROM_ALL), *objects)
    assert verdicts(found, "Gateway", "gw") == {"Accepted": want, "Programmed": "!Invalid"}
    assert of_listeners(found) == {"http": {**GOOD, "Programmed": "!Pending"}}
    assert of_parents(found)[0]["Accepted"] == "!Pending"
    assert verdicts(found, "ListenerSet", "set")["Accepted"] == "!ParentNotAccepted"
    assert [path for path in bodies(found) if not path.startswith("upstreams")] == []


def test_a_spec_that_cannot_be_read_keeps_what_is_published() -> None:
    found = settle(CLASS, gateway({"name": "http"}), route(rule()), set_of(listener("x", 81)))
    assert problems(found)["Gateway default/gw"] == ["InvalidSpec", "InvalidSpec"]
    assert assessed(found, "HTTPRoute", "app").parents[0].verdicts[0].reason == "NoMatchingParent"
    assert verdicts(found, "ListenerSet", "set")["Accepted"] == "!ParentNotAccepted"


def addresses(found: World, *names: str) -> list[str]:
    every = [assessed(found, "Gateway", name).addresses for name in names]
    return [each[0][1] if each else "" for each in every]


def test_a_pool_is_shared_out_and_may_be_used_up() -> None:
    static = gateway(name="c", addresses=[{"type": "IPAddress", "value": "192.0.2.1"}])
    objects = (CLASS, gateway(name="a"), gateway(name="b"), static, route(rule(), parentRefs=[{"name": "b"}]))
    found = settle(*objects, options=POOL)
    assert addresses(found, "a", "b", "c") == ["192.0.2.2", "", "192.0.2.1"]
    assert verdicts(found, "Gateway", "b")["Programmed"] == "!AddressNotAssigned"
    assert of_listeners(found, name="b")["http"]["Programmed"] == "!Pending"
    assert assessed(found, "HTTPRoute", "app").parents[0].verdicts[0].reason == "Pending"


def test_a_gateway_keeps_the_address_that_it_shows() -> None:
    shown = gateway(name="z") | {"status": {"addresses": [{"type": "IPAddress", "value": "192.0.2.1"}, {}]}}
    found = settle(CLASS, gateway(name="a"), shown, gateway({"name": "broken"}, name="b"), options=POOL)
    assert addresses(found, "a", "z") == ["192.0.2.2", "192.0.2.1"]


def test_a_foreign_address_is_reported() -> None:
    asked = gateway(addresses=[{"value": "198.51.100.1"}])
    want = {"Accepted": "Accepted", "Programmed": "!AddressNotUsable"}
    assert verdicts(settle(CLASS, asked), "Gateway", "gw") == want
    assert verdicts(settle(CLASS, asked, options=POOL), "Gateway", "gw") == want
    published = replace(OPTIONS, published_addresses=frozenset({"198.51.100.1"}))
    assert verdicts(settle(CLASS, asked, options=published), "Gateway", "gw") == ACCEPTED


def test_an_address_of_another_gateway_is_reported() -> None:
    both = [{"value": "192.0.2.1"}, {"value": "192.0.2.2"}]
    found = settle(CLASS, gateway(name="a", addresses=both), gateway(name="b", addresses=both[:1]), options=POOL)
    assert addresses(found, "a", "b") == ["192.0.2.1", "192.0.2.2"]
    assert [verdicts(found, "Gateway", name)["Programmed"] for name in "ab"] == ["!AddressNotUsable"] * 2


def test_listeners_of_a_set_are_served_by_its_gateway() -> None:
    attached = route(rule(), parentRefs=[{"kind": "ListenerSet", "name": "set"}])
    found = settle(CLASS, gateway(**FROM_ALL), set_of(listener("x", 81)), attached, service())
    assert verdicts(found, "ListenerSet", "set") == ACCEPTED
    assert of_listeners(found, "ListenerSet", "set") == {"x": GOOD}
    assert assessed(found, "Gateway", "gw").listener_sets == 1
    assert [each.owner.kind for each in found.attachments.counts] == ["ListenerSet"]


def test_a_set_that_is_not_allowed_is_refused() -> None:
    found = settle(CLASS, gateway(), set_of(listener("x", 81)), set_of(name="odd", kind="Service"))
    assert verdicts(found, "ListenerSet", "set") == {"Accepted": "!NotAllowed", "Programmed": "!NotAllowed"}
    assert ObjectKey("ListenerSet", "default", "odd") not in found.reports


def test_a_refused_listener_of_a_set_does_not_refuse_its_siblings() -> None:
    """The TCP listener loses to the Gateway's; its HTTP sibling on that port has no conflict left."""
    one = gateway(listener("own", hostname="own.test"), allowedListeners={"namespaces": {"from": "Same"}})
    both = set_of(listener("http", hostname="set.test"), listener("tcp", 80, "TCP"))
    found = settle(CLASS, one, both)
    assert of_listeners(found, "ListenerSet", "set")["http"] == GOOD
    assert of_listeners(found, "ListenerSet", "set")["tcp"]["Conflicted"] == "ProtocolConflict"
    assert assessed(found, "Gateway", "gw").listener_sets == 1


def test_a_set_whose_listeners_all_conflict_is_refused() -> None:
    found = settle(CLASS, gateway(**FROM_ALL), set_of(listener("x")))
    assert verdicts(found, "ListenerSet", "set") == dict.fromkeys(("Accepted", "Programmed"), "!ListenersNotValid")
    assert of_listeners(found, "ListenerSet", "set")["x"]["Conflicted"] == "HostnameConflict"


def test_a_set_that_cannot_be_read_is_not_a_set() -> None:
    broken = make("ListenerSet", "set", spec={"parentRef": {"name": "gw"}, "listeners": "all"})
    found = settle(CLASS, gateway(**FROM_ALL), broken)
    assert assessed(found, "Gateway", "gw").listener_sets == 0


def test_with_assigned_hosts_others_are_skipped() -> None:
    own = make("Namespace", "default", namespace="", annotations={"apisix.apache.org/hosts": "a.test"})
    assigned = replace(OPTIONS, host_ownership="assigned")
    app = route(rule(), hostnames=["a.test", "b.test"])
    found = settle(CLASS, gateway(), own, app, service(), options=assigned)
    (body,) = (body for body in bodies(found).values() if str(body.get("name", "")).startswith("HTTPRoute"))
    assert body["hosts"] == ["a.test"]
    tcp = gateway(listener("tcp", 9000, "TCP"))
    found = settle(CLASS, tcp, own, route(rule(), kind="TCPRoute"), service(), options=assigned)
    assert not [path for path in bodies(found) if path.startswith("stream_routes")]


def test_routes_match_the_address_and_port_of_their_gateway() -> None:
    options = replace(POOL, listener_ports={80: 9080})
    entry = gateway(listener(), listener("plain", 8080))
    found = settle(CLASS, entry, route(rule()), service(), options=options)
    routes = {str(body["name"]).rsplit("_", 1)[1]: body for body in bodies(found).values() if "priority" in body}
    assert {name: body["vars"] for name, body in routes.items()} == {
        "http": [["server_addr", "==", "192.0.2.1"], ["server_port", "==", "9080"]],
        "plain": [["server_addr", "==", "192.0.2.1"], ["server_port", "==", "8080"]],
    }
