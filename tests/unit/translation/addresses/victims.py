"""A namespace with Pods, Services and Nodes, and objects of another one that refer to them."""

from __future__ import annotations

from dataclasses import replace

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.state.world import World
from tests.unit.translation.objects import OPTIONS, make, route, rule, service
from tests.unit.translation.settling import bodies, settle
from translation.core.options import Options

STRICT = replace(
    OPTIONS,
    external_addresses="refuse-internal",
    cross_namespace="grant",
    gateway_namespaces=frozenset({"apisix"}),
)


EXT = ObjectKey("ApisixUpstream", "default", "ext")


VICTIM_POD, VICTIM_IP, NODE_IP = "10.1.0.9", "10.0.9.9", "192.0.2.1"


def namespace(name: str) -> JsonObject:
    return {"kind": "Namespace", "metadata": {"name": name}}


def pod(name: str, *addresses: str, of: str = "default", phase: str = "Running") -> JsonObject:
    status = {"phase": phase, "podIPs": [{"ip": address} for address in addresses]}
    return make("Pod", name, namespace=of, status=status)


def grant(kind: str, name: str = "", *, of: str = "victim") -> JsonObject:
    group = "apisix.apache.org" if kind.startswith("Apisix") else ""
    target = {"group": "", "kind": "Service", **({"name": name} if name else {})}
    source = {"group": group, "kind": kind, "namespace": "default"}
    return make("ReferenceGrant", f"may-{kind.lower()}", namespace=of, spec={"from": [source], "to": [target]})


VICTIM: tuple[JsonObject, ...] = (
    *map(namespace, ("default", "victim", "apisix", "kube-system")),
    service("web", namespace="victim", clusterIP=VICTIM_IP, clusterIPs=[VICTIM_IP, "fd00:9::9"]),
    service("etcd-headless", namespace="apisix", clusterIP="None"),
    service("kubernetes", namespace="default", clusterIP="10.0.0.254"),
    make(
        "EndpointSlice",
        "kubernetes",
        labels={"kubernetes.io/service-name": "kubernetes"},
        addressType="IPv4",
        endpoints=[{"addresses": ["192.0.2.100"]}],
        ports=[{"port": 6443}],
    ),
    pod("web-0", VICTIM_POD, "fd00:1::9", of="victim"),
    pod("kube-proxy", NODE_IP, of="kube-system"),
    pod("other-proxy", NODE_IP, of="victim"),
)


def outside(host: str, name: str = "out") -> JsonObject:
    return service(name, type="ExternalName", externalName=host, ports=[])


def reported(found: World, owner: ObjectKey = EXT) -> list[str]:
    return [str(problem) for problem in found.reports[owner].problems]


def nodes_of(found: World) -> list[str]:
    (body,) = (body for key, body in bodies(found).items() if key.startswith("upstreams"))
    return [item["host"] for item in body["nodes"]]


def endpoints(*objects: JsonObject, options: Options = STRICT) -> list[str]:
    return nodes_of(settle(*VICTIM, service(), route(rule()), *objects, options=options))
