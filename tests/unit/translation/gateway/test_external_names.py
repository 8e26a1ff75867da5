"""Backends of the Gateway API that are Services of type ExternalName."""

from __future__ import annotations

from dataclasses import replace

import pytest

from apisix_ingress.model.json import JsonObject
from apisix_ingress.state.world import World
from tests.unit.translation.addresses.victims import VICTIM, VICTIM_IP, VICTIM_POD, grant
from tests.unit.translation.gateway.objects import CLASS, gateway, listener, of_parents, route
from tests.unit.translation.objects import OPTIONS, service
from tests.unit.translation.settling import bodies, settle
from translation.core.options import Options

REFUSING = replace(OPTIONS, external_addresses="refuse-internal")
TO_OUT = {"backendRefs": [{"name": "out", "port": 8080}]}
WELL = [{"Accepted": "Accepted", "ResolvedRefs": "ResolvedRefs"}]
REFUSED = [{"Accepted": "Accepted", "ResolvedRefs": "!RefNotPermitted"}]
REJECTS = {"fault-injection": {"abort": {"http_status": 500}}}


def outside(host: str, *ports: JsonObject) -> JsonObject:
    return service("out", type="ExternalName", externalName=host, clusterIP="", ports=list(ports))


def served(*objects: JsonObject, kind: str = "HTTPRoute", options: Options = OPTIONS) -> World:
    entry = gateway(listener(), listener("tcp", 9000, "TCP"))
    return settle(CLASS, entry, *VICTIM, *objects, route(TO_OUT, kind=kind), options=options)


def nodes(found: World) -> list[JsonObject]:
    return [node for path, body in bodies(found).items() if path.startswith("upstreams") for node in body["nodes"]]


def plugins(found: World) -> JsonObject:
    (body,) = (body for path, body in bodies(found).items() if path.startswith("routes"))
    return dict(body.get("plugins", {}))


@pytest.mark.parametrize("kind", ["HTTPRoute", "GRPCRoute", "TCPRoute"])
@pytest.mark.parametrize("ports", [(), ({"port": 8080},)])
def test_its_host_is_the_node(kind: str, ports: tuple[JsonObject, ...]) -> None:
    found = served(outside("httpbin.org", *ports), kind=kind)
    assert of_parents(found, kind) == WELL
    assert nodes(found) == [{"host": "httpbin.org", "port": 8080, "weight": 100}]


def test_a_service_that_lists_ports_has_only_these() -> None:
    found = served(outside("httpbin.org", {"port": 443}))
    assert of_parents(found) == [{"Accepted": "Accepted", "ResolvedRefs": "!BackendNotFound"}]
    assert plugins(found) == REJECTS


@pytest.mark.parametrize("host", ["localhost", "169.254.169.254", "metadata.google.internal"])
def test_internal_hosts_follow_the_settings(host: str) -> None:
    assert of_parents(served(outside(host))) == WELL
    found = served(outside(host), options=REFUSING)
    assert of_parents(found) == REFUSED
    assert (plugins(found), nodes(found)) == (REJECTS, [])


@pytest.mark.parametrize("host", ["web.victim.svc.cluster.local", "web.victim.svc", VICTIM_IP, VICTIM_POD])
@pytest.mark.parametrize("options", [OPTIONS, REFUSING])
def test_another_namespace_needs_a_grant_whatever_the_settings(host: str, options: Options) -> None:
    found = served(outside(host), options=options)
    assert of_parents(found) == REFUSED
    assert plugins(found) == REJECTS
    found = served(outside(host), grant("Service"), options=options)
    assert of_parents(found) == WELL
    assert [node["host"] for node in nodes(found)] == [host]


def test_a_service_of_its_own_namespace_is_followed_to_its_destination() -> None:
    own = service("own")
    assert of_parents(served(outside("own.default.svc"), own)) == WELL
    onward = service("own", type="ExternalName", externalName="web.victim.svc", clusterIP="", ports=[])
    assert of_parents(served(outside("own.default.svc"), onward)) == REFUSED
