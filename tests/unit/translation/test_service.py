"""The upstreams of a Service: nodes, settings, and settings of Ingresses."""

import random

import pytest

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.objects import Service
from apisix_ingress.state.claims import UpstreamClaim, UpstreamOverrides
from apisix_ingress.state.world import World
from tests.unit.translation.objects import (
    OPTIONS,
    bodies,
    claim,
    make,
    service,
    slice_of,
    upstream,
    world,
)
from translation.core.options import Options
from translation.core.outcome import Published
from translation.service import translate_service

WEB = ObjectKey("Service", "default", "web")
PORT_80 = UpstreamClaim(WEB, 80)


def translate(found: World, options: Options = OPTIONS) -> Published:
    view = found.view()
    outcome = translate_service(WEB, view.get(Service, WEB), view, options)
    assert isinstance(outcome, Published)
    return outcome


def nodes(*objects: JsonObject, wanted: UpstreamClaim = PORT_80, options: Options = OPTIONS) -> list[str]:
    found = world(*objects)
    claim(found, "route", wanted)
    (body,) = bodies(translate(found, options))
    return [f"{node['host']}:{node['port']}" for node in body["nodes"]]


def endpoint(address: str, **conditions: bool) -> JsonObject:
    return {"addresses": [address], "conditions": conditions}


READY = endpoint("10.1.0.1", ready=True)
NOT_READY = endpoint("10.1.0.2", ready=False)
LEAVING = endpoint("10.1.0.3", ready=False, serving=True, terminating=True)
GONE = endpoint("10.1.0.4", ready=False, serving=False, terminating=True)


def test_only_ready_endpoints_get_requests() -> None:
    assert nodes(service(), slice_of([LEAVING, NOT_READY, READY, GONE])) == ["10.1.0.1:8080"]


def test_terminating_serving_endpoints_are_used_when_none_is_ready() -> None:
    assert nodes(service(), slice_of([LEAVING, NOT_READY, GONE])) == ["10.1.0.3:8080"]


def test_ready_endpoint_that_terminates_is_on_its_way_out() -> None:
    leaving = endpoint("10.1.0.9", ready=True, terminating=True)
    assert nodes(service(), slice_of([leaving, READY])) == ["10.1.0.1:8080"]
    assert nodes(service(), slice_of([leaving, NOT_READY])) == ["10.1.0.9:8080"]


def test_service_that_publishes_not_ready_addresses_has_them_all() -> None:
    got = nodes(service(publishNotReadyAddresses=True), slice_of([READY, NOT_READY]))
    assert got == ["10.1.0.1:8080", "10.1.0.2:8080"]


def test_nodes_do_not_depend_on_the_order_of_endpoints() -> None:
    addresses = [f"10.1.0.{number}" for number in range(9)]
    shuffled = random.Random(1).sample(addresses, len(addresses))
    want = nodes(service(), slice_of(addresses[:5], name="a"), slice_of(addresses[5:], name="b"))
    assert nodes(service(), slice_of(shuffled[4:], name="b"), slice_of(shuffled[:4], name="a")) == want


def test_address_in_two_slices_is_one_node() -> None:
    assert nodes(service(), slice_of(["10.1.0.1"], name="a"), slice_of(["10.1.0.1"], name="b")) == ["10.1.0.1:8080"]


def test_port_of_the_endpoint_is_the_one_of_the_same_name() -> None:
    ports = [{"name": "http", "port": 80}, {"name": "admin", "port": 81}]
    found = (
        service(ports=ports),
        slice_of(["10.1.0.1"], name="a", port=8080, port_name="http"),
        slice_of(["10.1.0.1"], name="b", port=9090, port_name="admin"),
    )
    assert nodes(*found, wanted=UpstreamClaim(WEB, 81)) == ["10.1.0.1:9090"]


FOUR = slice_of(["10.1.0.1"], name="four")
SIX = slice_of(["fd00::1"], name="six", addressType="IPv6")


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        ({"ipFamilies": ["IPv6", "IPv4"]}, ["[fd00::1]:8080"]),
        ({"ipFamilies": ["IPv4", "IPv6"]}, ["10.1.0.1:8080"]),
        ({"clusterIP": "fd00::2"}, ["[fd00::1]:8080"]),
        ({"clusterIP": "10.0.0.1"}, ["10.1.0.1:8080"]),
        ({"clusterIP": "None"}, ["10.1.0.1:8080"]),
    ],
)
def test_nodes_are_of_one_family_the_first_of_the_service(spec: JsonObject, want: list[str]) -> None:
    assert nodes(service(**spec), FOUR, SIX) == want


def test_a_single_stack_headless_service_keeps_its_family() -> None:
    assert nodes(service(clusterIP="None"), SIX) == ["[fd00::1]:8080"]


def test_second_family_is_used_when_the_first_one_has_no_address() -> None:
    # The API server sets this for a headless Service without a selector, whatever its endpoints are.
    spec: JsonObject = {"clusterIP": "None", "ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "RequireDualStack"}
    assert nodes(service(**spec), SIX) == ["[fd00::1]:8080"]
    assert nodes(service(ipFamilies=["IPv4"]), SIX) == []


def test_host_names_of_a_slice_are_nodes_of_any_family() -> None:
    fqdn = slice_of(["a.example.com"], addressType="FQDN")
    assert nodes(service(), fqdn) == ["a.example.com:8080"]
    assert nodes(service(clusterIP="None"), fqdn) == ["a.example.com:8080"]


def test_endpoints_object_is_the_other_source() -> None:
    subsets = [
        {
            "addresses": [{"ip": "10.1.0.1"}, {"ip": "fd00::1"}],
            "notReadyAddresses": [{"ip": "10.1.0.2"}],
            "ports": [{"port": 8080}],
        }
    ]
    options = Options(endpoint_source="endpoints")
    assert nodes(service(), make("Endpoints", "web", subsets=subsets), options=options) == ["10.1.0.1:8080"]
    assert nodes(service(), options=options) == []


SUBSET = upstream(subsets=[{"name": "s", "labels": {"v": "1"}}])


def test_subset_chooses_pods_by_the_label_that_the_endpoint_names() -> None:
    found = (
        service(),
        SUBSET,
        slice_of(
            [
                {"addresses": ["10.1.0.1"], "targetRef": {"kind": "Pod", "name": "p1"}},
                {"addresses": ["10.1.0.2"], "targetRef": {"kind": "Pod", "name": "p2"}},
                {"addresses": ["10.1.0.3"], "targetRef": {"kind": "Pod", "name": "nope"}},
                "10.1.0.4",
            ]
        ),
        make("Pod", "p1", labels={"v": "1", "x": "y"}),
        make("Pod", "p2", labels={"v": "2"}),
    )
    assert nodes(*found, wanted=UpstreamClaim(WEB, 80, "s")) == ["10.1.0.1:8080"]


@pytest.mark.parametrize("objects", [(), (SUBSET,)])
def test_subset_that_is_unknown_reaches_no_pod(objects: tuple[JsonObject, ...]) -> None:
    assert nodes(service(), slice_of([READY]), *objects, wanted=UpstreamClaim(WEB, 80, "x")) == []


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        ({"clusterIP": "10.0.0.1"}, ["10.0.0.1:80"]),
        ({"clusterIP": "fd00::1"}, ["[fd00::1]:80"]),
        ({"clusterIP": "None"}, []),
        ({"type": "ExternalName", "externalName": "a.example.com", "clusterIP": ""}, ["a.example.com:80"]),
        ({"type": "ExternalName", "clusterIP": ""}, []),
    ],
)
def test_service_granularity_has_the_cluster_address(spec: JsonObject, want: list[str]) -> None:
    assert nodes(service(**spec), FOUR, wanted=UpstreamClaim(WEB, 80, granularity="service")) == want


def test_an_external_name_without_ports_uses_the_port_of_the_claim() -> None:
    assert nodes(service(ports=[], type="ExternalName", externalName="a.example.com")) == ["a.example.com:80"]


def test_one_record_for_each_distinct_upstream() -> None:
    found = world(service(), slice_of([READY]))
    claim(found, "a", PORT_80, UpstreamClaim(WEB, 80, granularity="service"))
    claim(found, "b", PORT_80)
    assert [record.name for record in translate(found).records] == ["default_web_80", "default_web_80_service"]


def test_missing_service_keeps_its_upstreams_without_nodes() -> None:
    found = world(upstream(retries=2))
    claim(found, "a", PORT_80)
    got = translate(found)
    assert bodies(got) == [{"type": "roundrobin", "scheme": "http", "retries": 2, "nodes": []}]
    assert [record.existing_only for record in got.records] == [False]


def test_upstream_that_is_only_claimed_weakly_is_not_created() -> None:
    found = world()
    claim(found, "a", UpstreamClaim(WEB, 80, weak=True))
    assert [record.existing_only for record in translate(found).records] == [True]
    claim(found, "b", PORT_80)
    assert [record.existing_only for record in translate(found).records] == [False]


def test_an_upstream_keeps_its_nodes_when_its_port_disappears() -> None:
    found = world(service(ports=[{"port": 9000}]), slice_of([READY]))
    claim(found, "a", PORT_80, UpstreamClaim(WEB, 9000))
    got = translate(found)
    assert [record.name for record in got.records] == ["default_web_9000"]
    assert got.carried_over == {web_80(found): {}}


def web_80(found: World) -> RecordKey:
    return RecordKey("upstreams", found.view().record_id("upstreams", "default_web_80"))


def test_bad_settings_keep_the_previous_record_except_for_its_nodes() -> None:
    found = world(service(), slice_of([READY]), upstream(retries=3))
    claim(found, "a", PORT_80)
    before = {record.key: record for record in translate(found).records}
    for raw in (upstream(retries=-1), slice_of(["10.1.0.7"])):
        found.stores[raw["kind"]].set(RESOURCES[raw["kind"]].decode(raw))
    got = translate(found)
    assert (got.records, got.problems) == ((), ())
    (record,) = got.desired(before)
    want = dict(before[record.key].body) | {"nodes": [{"host": "10.1.0.7", "port": 8080, "weight": 100}]}
    assert record.body == want
    assert got.desired({}) == ()


def test_bad_settings_leave_nodes_alone_where_the_subset_is_not_known() -> None:
    found = world(service(), slice_of([READY]), upstream(retries=-1))
    claim(found, "a", UpstreamClaim(WEB, 80, "s"))
    assert list(translate(found).carried_over.values()) == [{}]


def test_invalid_settings_of_one_port_do_not_affect_another() -> None:
    levels = [{"port": 80, "tlsSecret": {"name": "nope", "namespace": "default"}}]
    found = world(
        service(ports=[{"name": "a", "port": 80}, {"name": "b", "port": 81}]), upstream(portLevelSettings=levels)
    )
    claim(found, "a", PORT_80, UpstreamClaim(WEB, 81))
    got = translate(found)
    assert [record.name for record in got.records] == ["default_web_81"]
    assert got.carried_over == {web_80(found): {"nodes": []}}


def test_record_that_is_carried_over_only_changes_in_fields_that_it_had() -> None:
    found = world(service(), upstream(discovery={"serviceName": "svc", "type": "dns"}))
    claim(found, "a", PORT_80)
    before = {record.key: record for record in translate(found).records}
    got = Published(carried_over={web_80(found): {"nodes": []}})
    assert got.desired(before) == tuple(before.values())


def test_holds_name_every_upstream_that_is_claimed() -> None:
    found = world()
    claim(found, "a", PORT_80)
    (hold,) = translate(found).protected
    assert hold.names == {"default_web_80"}


def test_the_discovery_of_a_port_replaces_its_nodes() -> None:
    levels = [{"port": 80, "discovery": {"serviceName": "svc", "type": "dns"}}]
    found = world(service(), slice_of([READY]), upstream(portLevelSettings=levels))
    claim(found, "a", PORT_80)
    (body,) = bodies(translate(found))
    assert "nodes" not in body
    assert body["service_name"] == "svc"


def body_with(*overrides: UpstreamOverrides, decorator: JsonObject | None = None) -> JsonObject:
    """Return the upstream that Ingresses, oldest first, claim with these overrides."""
    found = world(service(), *([decorator] if decorator else []))
    for number, item in reversed(list(enumerate(overrides))):
        claim(found, f"ing-{number}", UpstreamClaim(WEB, 80, overrides=item), created=f"2026-01-0{number + 1}")
    claim(found, "a-route", PORT_80, created="2025-01-01")
    (body,) = bodies(translate(found))
    return body


def test_overrides_are_merged_field_by_field_the_oldest_first() -> None:
    got = body_with(
        UpstreamOverrides(scheme="https", timeout=(0, 0, 5)),
        UpstreamOverrides(scheme="grpc", retries=0, timeout=(2, 0, 7)),
    )
    assert (got["scheme"], got["retries"]) == ("https", 0)
    assert got["timeout"] == {"connect": 2, "send": 60, "read": 5}


def test_an_ingress_sets_its_own_timeouts_unless_annotated() -> None:
    assert body_with(UpstreamOverrides())["timeout"] == {"connect": 60, "send": 60, "read": 60}
    assert "timeout" not in body_with(UpstreamOverrides(), decorator=upstream(retries=1))
    assert "timeout" not in body_with()


def test_overrides_go_over_the_decorator_part_by_part() -> None:
    decorator = upstream(timeout={"connect": "5s", "send": "5s", "read": "5s"}, scheme="grpc", retries=3)
    got = body_with(UpstreamOverrides(timeout=(0, 0, 9.5)), decorator=decorator)
    assert (got["scheme"], got["retries"]) == ("grpc", 3)
    assert got["timeout"] == {"connect": 5, "send": 5, "read": 9.5}
