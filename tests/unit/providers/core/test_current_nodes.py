"""The nodes of upstreams that are certain before everything has been translated."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.state.claims import UpstreamClaim
from apisix_ingress.state.world import World
from providers.core.current_nodes import CurrentNodes
from tests.unit.translation.objects import OPTIONS, claim, fill, make, service, slice_of, world
from translation.core.options import Options
from translation.core.outcome import records_of
from translation.service import translate_service

NAME = "default_web_80"
LISTED = ("Service", "EndpointSlice", "Endpoints", "ApisixClusterConfig")
WEB = ObjectKey("Service", "default", "web")
STRICT = replace(OPTIONS, external_addresses="refuse-internal")


def node(host: str, port: int = 8080, **fields: object) -> JsonObject:
    return {"host": host, "port": port, "weight": 100, **fields}


OLD = (node("10.1.0.9"),)


def listed(*objects: JsonObject, kinds: tuple[str, ...] = LISTED) -> World:
    found = world()
    fill(found, objects)
    for kind, store in found.stores.items():
        store.synced = kind in kinds
    return found


def changed(
    *objects: JsonObject,
    name: str = NAME,
    nodes: tuple[JsonObject, ...] = OLD,
    kinds: tuple[str, ...] = LISTED,
    options: Options = OPTIONS,
) -> list[str] | None:
    found = CurrentNodes(listed(*objects, kinds=kinds), options).changed(name, nodes, 1)
    return None if found is None else [f"{each['host']}:{each['port']}" for each in found]


def test_new_endpoints_are_returned() -> None:
    assert changed(service(), slice_of(["10.1.0.2", "10.1.0.1"])) == ["10.1.0.1:8080", "10.1.0.2:8080"]


def test_they_are_the_nodes_of_the_translation() -> None:
    found = listed(service(ipFamilies=["IPv6"]), slice_of(["fd00::1"], addressType="IPv6"))
    claim(found, "route", UpstreamClaim(WEB, 80))
    view = found.view()
    service_ = found.stores["Service"].get(WEB)
    (record,) = records_of(translate_service(WEB, service_, view, OPTIONS))
    assert (record.name, CurrentNodes(found, OPTIONS).changed(NAME, OLD, 1)) == (NAME, record.body["nodes"])


@pytest.mark.parametrize(
    "nodes",
    [
        (node("10.1.0.1"), node("10.1.0.2")),
        (node("10.1.0.2"), node("10.1.0.1")),
        (),
        (node("10.1.0.9", weight=1),),
        (node("10.1.0.9", priority=0),),
        (node("10.1.0.9", port="8080"),),  # type: ignore[arg-type]
        ({"host": "10.1.0.9", "weight": 100},),
        ("10.1.0.9",),
    ],
    ids=["equal", "another-order", "empty", "weight", "priority", "text", "no-port", "no-object"],
)
def test_equal_and_other_nodes_stay(nodes: tuple[JsonObject, ...]) -> None:
    assert changed(service(), slice_of(["10.1.0.1", "10.1.0.2"]), nodes=nodes) is None


def test_another_port_of_equal_addresses_is_left_to_the_translation() -> None:
    assert changed(service(), slice_of(["10.1.0.9"], port=9090)) is None


@pytest.mark.parametrize("name", ["default_web", "default_web_v1_80", "default_web_80_service", "default_web_80~https"])
def test_upstreams_with_other_nodes_stay(name: str) -> None:
    assert changed(service(), slice_of(["10.1.0.1"]), name=name) is None


@pytest.mark.parametrize(
    "objects",
    [
        (slice_of(["10.1.0.1"]),),
        (service(ports=[{"port": 81}]), slice_of(["10.1.0.1"])),
        (service(type="ExternalName", externalName="a.test"), slice_of(["10.1.0.1"])),
        (service(), slice_of([])),
        (service(), slice_of([{"addresses": ["10.1.0.1"], "conditions": {"ready": False}}])),
    ],
    ids=["no-service", "no-port", "external", "no-endpoint", "none-ready"],
)
def test_a_service_without_endpoints_of_the_port_is_left_to_the_translation(objects: tuple[JsonObject, ...]) -> None:
    assert changed(*objects) is None


def test_an_endpoint_that_is_no_longer_ready_is_removed() -> None:
    leaving = {"addresses": ["10.1.0.9"], "conditions": {"ready": False}}
    assert changed(service(), slice_of([leaving, "10.1.0.1"]), nodes=(*OLD, node("10.1.0.1"))) == ["10.1.0.1:8080"]


def test_kinds_that_the_settings_require_have_to_be_listed() -> None:
    objects = (service(), slice_of([{"addresses": ["10.1.0.1"], "targetRef": {"kind": "Pod", "name": "p"}}]))
    pod = make("Pod", "p", status={"podIPs": [{"ip": "10.1.0.1"}]})
    assert changed(*objects, pod, options=STRICT) is None
    everything = (*LISTED, "Pod", "Namespace", "ReferenceGrant")
    assert changed(*objects, pod, options=STRICT, kinds=everything) == ["10.1.0.1:8080"]


async def becomes_known_with(missing: str, world: World, options: Options) -> bool:
    """Return whether nodes are unknown until the last kind is listed."""
    waiting = asyncio.ensure_future(CurrentNodes(world, options).wait_until_listed())
    await asyncio.sleep(0)
    was_known = waiting.done()
    world.stores[missing].synced = True
    return await waiting and not was_known


@pytest.mark.parametrize("missing", ["Service", "EndpointSlice", "ApisixClusterConfig"])
async def test_nodes_are_unknown_until_services_endpoints_and_addresses_are_listed(missing: str) -> None:
    world = listed(kinds=tuple({*LISTED} - {missing}))
    assert await becomes_known_with(missing, world, OPTIONS)


async def test_endpoints_are_read_instead_of_slices_if_configured() -> None:
    options = replace(OPTIONS, endpoint_source="endpoints")
    subsets = [{"addresses": [{"ip": "10.1.0.1"}], "ports": [{"port": 8080}]}]
    endpoints = make("Endpoints", "web", subsets=subsets)
    world = listed(kinds=("Service", "EndpointSlice", "ApisixClusterConfig"))
    assert await becomes_known_with("Endpoints", world, options)
    assert changed(service(), endpoints, options=options) == ["10.1.0.1:8080"]


async def test_nodes_are_unknown_if_a_cluster_may_have_another_address() -> None:
    admin = {"admin": {"baseURL": "http://gateway:9180/apisix/admin", "adminKey": "key"}}
    given = listed(make("ApisixClusterConfig", "default", namespace="", spec=admin))
    assert not await CurrentNodes(given, OPTIONS).wait_until_listed()
    plain = make("ApisixClusterConfig", "default", namespace="", spec={"monitoring": {}})
    assert await CurrentNodes(listed(plain), OPTIONS).wait_until_listed()
