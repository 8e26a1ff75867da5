"""Endpoints of Services: addresses of other namespaces need a grant."""

from __future__ import annotations

from dataclasses import replace

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.network.internal_addresses import internal_addresses
from tests.unit.translation.addresses.victims import (
    NODE_IP,
    STRICT,
    VICTIM,
    VICTIM_IP,
    VICTIM_POD,
    endpoints,
    grant,
    nodes_of,
    outside,
    pod,
    reported,
)
from tests.unit.translation.objects import OPTIONS, fill, route, rule, service, slice_of
from tests.unit.translation.settling import bodies, prepare, settle
from translation.core.options import Options


def test_endpoints_of_other_namespaces_are_skipped_and_reported() -> None:
    hand_made = slice_of([VICTIM_POD, VICTIM_IP, NODE_IP, "203.0.113.7", "192.0.2.100"])
    names = slice_of(["web.victim.svc", "example.org"], name="web-2", addressType="FQDN")
    found = settle(*VICTIM, service(), route(rule()), hand_made, names, options=STRICT)
    assert nodes_of(found) == ["203.0.113.7", "example.org"]
    (problem,) = reported(found, ObjectKey("Service", "default", "web"))
    assert problem == (
        "endpoints: 5 of 7 are skipped: '10.0.9.9' is an address in another namespace, which needs a ReferenceGrant "
        "there; add one, or remove the address"
    )
    assert len(endpoints(hand_made, names, options=OPTIONS)) == 7


def test_endpoint_that_names_a_pod_counts_only_if_that_pod_has_the_address() -> None:
    def target(name: str, address: str) -> JsonObject:
        return {"addresses": [address], "targetRef": {"kind": "Pod", "name": name}}

    own = pod("own", "10.1.0.1", NODE_IP)
    assert endpoints(own, slice_of([target("own", "10.1.0.1"), target("own", VICTIM_POD)])) == ["10.1.0.1"]
    assert endpoints(own, slice_of([target("own", NODE_IP)])) == [NODE_IP]
    assert endpoints(own, slice_of([NODE_IP])) == [NODE_IP]
    assert endpoints(slice_of([target("web-0", VICTIM_POD)])) == []


def test_an_address_with_leading_zeros_is_judged_as_a_gateway_and_as_a_resolver_read_it() -> None:
    assert endpoints(slice_of([f"0{VICTIM_POD}"])) == []
    assert endpoints(slice_of(["012.0.9.9"]), pod("other", "10.0.9.9", of="victim")) == []
    assert endpoints(slice_of(["0203.0.113.7"])) == ["0203.0.113.7"]


def test_pod_that_has_ended_has_no_address() -> None:
    ended = pod("job", VICTIM_POD, phase="Succeeded")
    assert endpoints(ended, slice_of([VICTIM_POD])) == []
    assert endpoints(pod("job", "10.1.3.3", of="victim", phase="Failed"), slice_of(["10.1.3.3"])) == ["10.1.3.3"]


def test_endpoint_with_a_grant_for_services_is_a_node() -> None:
    assert endpoints(slice_of([VICTIM_POD]), grant("Service")) == [VICTIM_POD]


def test_endpoint_leaves_when_its_address_becomes_another_ones() -> None:
    found, loop = prepare(*VICTIM, service(), route(rule()), slice_of(["10.1.7.7"]), options=STRICT)
    loop.settle()
    assert nodes_of(found) == ["10.1.7.7"]
    fill(found, [pod("late", "10.1.7.7", of="victim")])
    loop.settle()
    assert nodes_of(found) == []


def test_cluster_address_of_a_service_is_not_a_way_around() -> None:
    def by_address(*objects: JsonObject, options: Options = STRICT) -> list[str]:
        backend = {"serviceName": "web", "servicePort": 80, "resolveGranularity": "service"}
        return nodes_of(settle(*VICTIM, service(), route(rule(backends=[backend])), *objects, options=options))

    assert by_address(slice_of(["10.1.0.1"]), pod("own", "10.1.0.1")) == ["10.0.0.1"]
    assert by_address(slice_of([VICTIM_POD])) == []
    assert by_address(slice_of([VICTIM_POD]), options=OPTIONS) == ["10.0.0.1"]


def test_external_name_of_a_backend_is_judged_as_a_reference_of_the_service() -> None:
    objects = (*VICTIM, outside("web.victim.svc", "web"), route(rule()))
    found = settle(*objects, options=STRICT)
    (problem,) = reported(found, ObjectKey("ApisixRoute", "default", "route"))
    assert "Service default/web: spec.externalName: 'web.victim.svc' is a name in another namespace" in problem
    assert bodies(found) == {}
    assert nodes_of(settle(*objects, grant("Service", "web"), options=STRICT)) == ["web.victim.svc"]


def listed(*entries: str) -> Options:
    return replace(OPTIONS, internal=internal_addresses(entries))


def test_listed_networks_hold_for_endpoints_but_not_for_own_pods() -> None:
    found = (pod("own", "10.1.0.1"), slice_of(["10.1.0.1", "10.1.0.2", "203.0.113.7"]))
    assert endpoints(*found, options=listed("10.0.0.0/8")) == ["10.1.0.1", "203.0.113.7"]
    assert endpoints(*found, options=listed("10.1.0.1")) == ["10.1.0.2", "203.0.113.7"]
    assert endpoints(*found, options=listed("10.1.0.1:8080", "10.1.0.2:80")) == ["10.1.0.2", "203.0.113.7"]
