"""Listeners that are refused: they have no effect on other listeners and on their routes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from apisix_ingress.model.json import JsonObject
from apisix_ingress.state.world import World
from tests.unit.translation.gateway.objects import (
    CLASS,
    assessed,
    gateway,
    listener,
    of_listeners,
    of_parents,
    secure,
    set_of,
)
from tests.unit.translation.gateway.test_host_owners import (
    ALL,
    ITS_PORT,
    OWNED,
    SERVICES,
    aged,
    certificate,
    http_route,
)
from tests.unit.translation.gateway.tls_objects import frontend
from tests.unit.translation.hosts.owning import namespace
from tests.unit.translation.objects import make, pem, secret
from tests.unit.translation.settling import bodies, settle
from translation.gateway.routes.precedence import MOST_OLDER

OPEN: dict[str, Any] = {"allowedRoutes": ALL}
EVERY_SET: dict[str, Any] = {"allowedListeners": ALL}
BY_SET = {"kind": "ListenerSet", "name": "set"}


def settled(*objects: JsonObject) -> World:
    return settle(CLASS, *SERVICES, *objects, options=OWNED)


def of_others(found: World) -> dict[str, Any]:
    """Return the records, and the reports of every object outside the namespace `evil`."""
    reports = {owner: report for owner, report in found.reports.items() if owner.namespace != "evil"}
    return {"records": bodies(found), "reports": reports}


def refused(found: World) -> dict[str, dict[str, str]]:
    return {
        each.name: {verdict.type: verdict.reason for verdict in each.verdicts if verdict.type == "Accepted"}
        for each in assessed(found, "ListenerSet", "set", "evil").listeners
    }


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (listener(**OPEN), listener("a", hostname="*.com")),
        (listener(**OPEN), listener("a", hostname="gw.shop.com")),
        (listener(hostname="*.com", **OPEN), listener("a", hostname="*.shop.com", **OPEN)),
        (secure("https", "cert", hostname="*.com", **OPEN), secure("a", "cert", hostname="gw.shop.com")),
    ],
)
def test_a_refused_listener_takes_no_requests_from_another_one(mine: JsonObject, theirs: JsonObject) -> None:
    every = (
        namespace("default", "*.com"),
        gateway(mine, **EVERY_SET),
        certificate("default"),
        certificate("evil"),
        http_route("victim", 10, "gw.shop.com"),
    )

    found = settled(*every, aged(set_of(theirs, namespace="evil"), 20))

    assert refused(found) == {"a": {"Accepted": "UnsupportedValue"}}
    assert of_others(found) == of_others(settled(*every))
    assert [body["hosts"] for body in bodies(found).values() if "upstream_id" in body] == [["gw.shop.com"]]


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (listener("b", 8080, hostname="shop.com"), listener("a", 8080, hostname="shop.com")),
        (secure("b", "cert", hostname="shop.com"), secure("a", "cert", hostname="shop.com")),
        (listener("b", 9100, "TCP"), listener("a", 9100, "TCP")),
        (listener("b", 8080, hostname="shop.com"), listener("a", 8080, "FOO", hostname="evil.com")),
    ],
)
def test_a_refused_listener_conflicts_with_none(mine: JsonObject, theirs: JsonObject) -> None:
    owner = make("TCPRoute", "tcp", namespace="victim", spec={"parentRefs": [BY_SET], "rules": []})
    every = (
        gateway(**EVERY_SET),
        ITS_PORT,
        certificate("victim"),
        certificate("evil"),
        http_route("victim", 10, "shop.com", parentRefs=[BY_SET]),
        aged(make("ApisixRoute", "s", namespace="victim", spec={"stream": [STREAM]}), 10),
        aged(owner, 10),
        aged(set_of(mine, namespace="victim"), 30),
    )

    found = settled(*every, aged(set_of(theirs, namespace="evil"), 20))

    assert refused(found)["a"]["Accepted"] in ("UnsupportedValue", "UnsupportedProtocol")
    assert of_others(found) == of_others(settled(*every))
    (of_victim,) = assessed(found, "ListenerSet", "set", "victim").listeners
    assert {each.type: each.holds for each in of_victim.verdicts}["Accepted"]


STREAM = {
    "name": "s",
    "protocol": "TCP",
    "match": {"ingressPort": 9100},
    "backend": {"serviceName": "web", "servicePort": 80},
}


def test_a_refused_listener_does_not_weaken_the_client_authentication_of_another_gateway() -> None:
    verifying = gateway(
        secure("https", "cert", hostname="shop.com", **OPEN),
        tls=frontend({"kind": "Secret", "name": "ca"}),
    )
    other = gateway(name="other", **EVERY_SET)
    every = (
        verifying,
        other,
        secret("ca", ca__crt=pem(3).certificate),
        certificate("default"),
        certificate("evil"),
        http_route("victim", 10, "shop.com"),
    )
    theirs = set_of(secure("a", "cert", hostname="shop.com"), namespace="evil", name="set")
    theirs["spec"]["parentRef"]["name"] = "other"

    found = settled(*every, aged(theirs, 20))

    assert refused(found) == {"a": {"Accepted": "UnsupportedValue"}}
    assert of_others(found) == of_others(settled(*every))


def test_a_gateway_whose_listeners_are_refused_takes_no_address_from_another_one() -> None:
    pool = replace(OWNED, gateway_addresses=("192.0.2.1",))
    theirs = aged(gateway(secure("a", "cert"), addresses=[{"value": "192.0.2.1"}]), 10)
    theirs["metadata"]["namespace"] = "evil"
    every = (CLASS, certificate("evil"), aged(gateway(), 20))

    found = settle(*every, theirs, options=pool)

    assert assessed(found, "Gateway", "gw").addresses == (("IPAddress", "192.0.2.1"),)
    assert of_others(found) == of_others(settle(*every, options=pool))


def test_a_gateway_that_is_not_accepted_has_no_attached_listener_sets() -> None:
    unsupported = gateway(listener(**OPEN), addresses=[{"type": "example.org/vip", "value": "x"}], **EVERY_SET)

    found = settled(unsupported, set_of(listener("a", hostname="evil.com"), namespace="evil"))

    assert (assessed(found, "Gateway", "gw").listener_sets, refused(found)) == (0, {})


def test_a_route_without_a_host_that_its_namespace_may_use_is_not_accepted() -> None:
    found = settled(gateway(listener(**OPEN)), http_route("victim", 10, "shop.com"), http_route("evil", 20, "shop.com"))

    assert of_parents(found, namespace="victim") == [{"Accepted": "Accepted", "ResolvedRefs": "ResolvedRefs"}]
    assert of_parents(found, namespace="evil") == [{"Accepted": "!HostNotOwned", "ResolvedRefs": "ResolvedRefs"}]


def test_a_route_keeps_the_hosts_that_its_namespace_may_use() -> None:
    theirs = http_route("evil", 20, "shop.com", "evil.com")

    found = settled(gateway(listener(**OPEN)), http_route("victim", 10, "shop.com"), theirs)

    assert of_parents(found, namespace="evil") == [{"Accepted": "Accepted", "ResolvedRefs": "ResolvedRefs"}]


def test_a_route_whose_requests_all_go_to_more_specific_listeners_is_not_accepted() -> None:
    both = gateway(listener("wide", hostname="*.com", **OPEN), listener("narrow", hostname="shop.com"))
    route = http_route(
        "victim", 10, "shop.com", parentRefs=[{"name": "gw", "namespace": "default", "sectionName": "wide"}]
    )

    found = settle(CLASS, *SERVICES, both, route)

    (parent,) = assessed(found, "HTTPRoute", "app", "victim").parents
    accepted = parent.verdicts[0]
    assert (accepted.holds, accepted.reason, accepted.message) == (
        False,
        "NoMatchingListenerHostname",
        "more specific listeners receive the requests for every hostname of the route",
    )
    assert of_listeners(found)["narrow"]["Accepted"] == "Accepted"


def test_a_route_without_hosts_creates_no_upstream_for_a_service_that_it_may_use() -> None:
    every = (gateway(listener(**OPEN)), http_route("victim", 10, "shop.com"), grant("web", "victim"))
    theirs = http_route("evil", 20, "shop.com")
    theirs["spec"]["rules"][0]["backendRefs"] = [{"name": "web", "namespace": "default", "port": 80}]

    assert of_others(settled(*every, grant("web", "default"), theirs)) == of_others(settled(*every))


def grant(service_: str, namespace: str) -> JsonObject:
    who = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "evil"}
    what = {"group": "", "kind": "Service", "name": service_}
    return make("ReferenceGrant", namespace=namespace, spec={"from": [who], "to": [what]})


def test_older_routes_that_may_not_use_a_host_do_not_take_part_in_the_order_of_its_routes() -> None:
    """Only a limited number of older routes with equal matches is ordered."""
    named = namespace("victim", "shop.com")
    mine = [http_route("victim", 20 + day, "shop.com", "victim.com") for day in range(2)]
    mine[1]["metadata"]["name"] = "second"
    every = (named, gateway(listener(**OPEN)), *mine)
    strangers = []
    for number in range(MOST_OLDER):
        strangers.append(http_route("evil", 10, "shop.com"))
        strangers[-1]["metadata"]["name"] = f"a{number}"

    assert of_others(settled(*every, *strangers)) == of_others(settled(*every))
