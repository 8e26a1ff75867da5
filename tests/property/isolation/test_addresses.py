"""No published node reaches a Pod of another namespace, whatever tenants write, in any order.

The reference resolves as the gateway's resolver and kube-proxy do: by the search list, through ExternalName, cluster
addresses and headless Services, to the final addresses.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import Endpoint, EndpointSlice, Service
from apisix_ingress.state.world import World
from tests.unit.translation.objects import OPTIONS, fill, make, service
from tests.unit.translation.settling import bodies, prepare

STRICT = replace(OPTIONS, external_addresses="refuse-internal", cross_namespace="grant")

OWN_POD, VICTIM_POD, VICTIM_V6, FREE = "10.1.0.1", "10.1.0.9", "fd00:1::9", "203.0.113.7"
VICTIM_IP = "10.0.0.9"
NAMES = ("a", "b", "c")

HOSTS = (
    *(
        OWN_POD,
        VICTIM_POD,
        VICTIM_V6,
        FREE,
        VICTIM_IP,
        "::ffff:10.1.0.9",
        "fd00:1:0::9",
        "0x0a.1.9",
        "10.0.1.1",
        "10.0.1.2",
    ),
    *("web.victim", "web.victim.svc", "web.victim.svc.cluster.local", "head.victim.svc", "p.head.victim"),
    *("10-1-0-9.evil.pod", "10-1-0-9.victim.pod.cluster.local", "example.org"),
    *(f"{name}.evil{end}" for name in NAMES for end in ("", ".svc", ".svc.cluster.local")),
)
ADDRESSES = (OWN_POD, VICTIM_POD, FREE, VICTIM_IP, "10.0.1.1", "10.0.1.2")


def pod(namespace: str, name: str, *addresses: str, phase: str = "Running") -> JsonObject:
    status = {"phase": phase, "podIPs": [{"ip": address} for address in addresses]}
    return make("Pod", name, namespace=namespace, status=status)


def slice_of(namespace: str, name: str, family: str, endpoints: list[JsonObject]) -> JsonObject:
    found = make("EndpointSlice", f"{name}-{family.lower()}", namespace=namespace, addressType=family)
    found["metadata"]["labels"] = {"kubernetes.io/service-name": name}
    return found | {"endpoints": endpoints, "ports": [{"name": "", "port": 80}]}


VICTIM = (
    *({"kind": "Namespace", "metadata": {"name": name}} for name in ("evil", "victim")),
    service("web", namespace="victim", clusterIP=VICTIM_IP),
    service("head", namespace="victim", clusterIP="None"),
    *(slice_of("victim", name, "IPv4", [{"addresses": [VICTIM_POD]}]) for name in ("web", "head")),
)

hosts = st.sampled_from(HOSTS)
names = st.sampled_from(NAMES)


@st.composite
def services(draw: st.DrawFn) -> JsonObject:
    name = draw(names)
    if draw(st.booleans()):
        return service(name, namespace="evil", type="ExternalName", externalName=draw(hosts), ports=[])
    address = draw(st.sampled_from(("None", f"10.0.1.{NAMES.index(name) + 1}")))
    return service(name, namespace="evil", clusterIP=address)


@st.composite
def slices(draw: st.DrawFn) -> JsonObject:
    family = draw(st.sampled_from(("IPv4", "IPv6", "FQDN")))
    pool = {"IPv4": ADDRESSES, "IPv6": (VICTIM_V6, "fd00:1:0::9", "::ffff:10.1.0.9"), "FQDN": HOSTS}[family]
    targets = st.sampled_from(
        ({}, {"targetRef": {"kind": "Pod", "name": "own"}}, {"targetRef": {"kind": "Pod", "name": "web"}})
    )
    found = draw(st.lists(st.tuples(st.sampled_from(pool), targets), max_size=3))
    return slice_of("evil", draw(names), family, [{"addresses": [address], **target} for address, target in found])


def external(nodes: object) -> JsonObject:
    return make("ApisixUpstream", "ext", namespace="evil", spec={"externalNodes": nodes})


def domain(name: str) -> JsonObject:
    return {"type": "Domain", "name": name}


upstreams = st.one_of(
    st.lists(hosts.map(domain), min_size=1, max_size=2).map(external),
    names.map(lambda name: external([{"type": "Service", "name": name}])),
    st.just(external("broken")),
)
changes = st.one_of(
    services(),
    slices(),
    upstreams,
    st.sampled_from(
        (
            pod("evil", "own", OWN_POD),
            pod("evil", "own", OWN_POD, phase="Succeeded"),
            pod("evil", "own", VICTIM_POD, phase="Succeeded"),
            pod("victim", "web", VICTIM_POD, VICTIM_V6),
            pod("victim", "web", "10.1.5.5"),
        )
    ),
)


def routes() -> Iterator[JsonObject]:
    """Yield a route to each Service in each way, and one to the external upstream: mistakes affect no other route."""
    for name in NAMES:
        for how in ("endpoint", "service"):
            backend = {"serviceName": name, "servicePort": 80, "resolveGranularity": how}
            yield _route(f"{name}-{how}", {"backends": [backend]})
    yield _route("ext", {"upstreams": [{"name": "ext"}]})


def _route(name: str, to: JsonObject) -> JsonObject:
    rule = {"name": "r", "match": {"paths": [f"/{name}"]}, **to}
    return make("ApisixRoute", name, namespace="evil", spec={"http": [rule]})


def endpoints(world: World, key: ObjectKey) -> Iterator[Endpoint]:
    for item in world.stores["EndpointSlice"].values():
        assert isinstance(item, EndpointSlice)
        if (item.meta.namespace, item.service) == (key.namespace, key.name):
            yield from item.endpoints


def reached(world: World, host: str, seen: frozenset[ObjectKey] = frozenset()) -> set[str]:
    """Return the addresses that requests to a host finally reach."""
    try:
        address = _plain(host)
    except ValueError:
        return _named(world, host, seen)
    owner = next((item for item in world.stores["Service"].values() if item.cluster_ip == address), None)
    return _behind(world, owner, seen) if owner else {address}


def _plain(host: str) -> str:
    if host == "0x0a.1.9":
        return VICTIM_POD
    address = ipaddress.ip_address(host.strip("[]"))
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def _named(world: World, host: str, seen: frozenset[ObjectKey]) -> set[str]:
    labels = host.removesuffix(".cluster.local").removesuffix(".svc").split(".")
    if labels[-1] == "pod":
        return {labels[-3].replace("-", ".")}
    found = world.stores["Service"].get(ObjectKey("Service", labels[-1], labels[-2]))
    return _behind(world, found, seen) if isinstance(found, Service) else set()


def _behind(world: World, item: Service, seen: frozenset[ObjectKey]) -> set[str]:
    key = item.meta.key
    if key in seen:
        return set()
    if item.type == "ExternalName":
        return reached(world, item.external_name, seen | {key})
    listed = [address for endpoint in endpoints(world, key) for address in endpoint.addresses]
    return {each for address in listed for each in reached(world, address, seen | {key})}


def victims(world: World) -> set[str]:
    pods = (item for item in world.stores["Pod"].values() if item.meta.namespace == "victim")
    return {_plain(address) for item in pods for address in item.addresses}


def own(world: World) -> set[str]:
    pods = (item for item in world.stores["Pod"].values() if item.meta.namespace == "evil")
    return {_plain(address) for item in pods for address in item.addresses}


@settings(max_examples=100, deadline=None)
@given(st.lists(changes, max_size=14))
def test_no_published_node_leads_to_a_pod_of_another_namespace(steps: list[JsonObject]) -> None:
    world, loop = prepare(*VICTIM, pod("victim", "web", VICTIM_POD, VICTIM_V6), *routes(), options=STRICT)
    loop.settle()
    for step in steps:
        fill(world, [step])
        loop.settle()
        nodes = [node["host"] for body in bodies(world).values() for node in body.get("nodes") or ()]
        wrong = {node: reached(world, node) & (victims(world) - own(world)) for node in nodes}
        assert {node: found for node, found in wrong.items() if found} == {}
