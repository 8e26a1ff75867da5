"""Nodes: which addresses of a Service get its requests, from its endpoints.

The result depends on what the endpoints are, never on the order in which they came: it is sorted and holds each
node once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from apisix_ingress.model.keys import IndexKey, ObjectKey
from apisix_ingress.model.kube import Endpoint, EndpointPort, Endpoints, EndpointSlice, Pod, Service, ServicePort
from apisix_ingress.model.resources import PODS_BY_ADDRESS, SLICES_BY_SERVICE
from apisix_ingress.state.view import View
from translation.addresses import refused
from translation.context import Options

WEIGHT = 100
"""The weight of every node of a Service."""

IPV4, IPV6 = "IPv4", "IPv6"


class Node(TypedDict):
    """A node as the Admin API takes it; an IPv6 host is in brackets."""

    host: str
    port: int
    weight: int


@dataclass(frozen=True, slots=True)
class _Candidate:
    address: str
    port: int
    family: str
    endpoint: Endpoint


def node(address: str, port: int, weight: int = WEIGHT) -> Node:
    """Return a node for a host name or an address."""
    host = f"[{address}]" if ":" in address and not address.startswith("[") else address
    return {"host": host, "port": port, "weight": weight}


def service_nodes(
    view: View, options: Options, service: Service, port: ServicePort, labels: Mapping[str, str] | None
) -> list[Node]:
    """Return the nodes for a port of a Service; with `labels` only the pods that have them all."""
    found = list(_candidates(view, options, service.meta.key, port.name))
    family = _family(service, found)
    found = [candidate for candidate in found if candidate.family in (family, "FQDN")]
    if labels is not None:
        found = [item for item in found if _has_labels(view, service.meta.namespace, item, labels)]
    if not service.publish_not_ready:
        found = _in_service(found)
    pairs = sorted({(item.address, item.port) for item in found})
    return [node(*pair) for pair in pairs if not refused(options, *pair)]


def _in_service(found: list[_Candidate]) -> list[_Candidate]:
    """Return what takes requests: what is ready; if nothing is, what still serves on its way out (as kube-proxy)."""
    ready = [item for item in found if item.endpoint.ready and item.endpoint.serving and not item.endpoint.terminating]
    return ready or [item for item in found if item.endpoint.serving and item.endpoint.terminating]


def _candidates(view: View, options: Options, service: ObjectKey, port: str) -> Iterable[_Candidate]:
    if options.endpoint_source == "endpoints":
        found = view.get(Endpoints, ObjectKey("Endpoints", service.namespace, service.name))
        for subset in found.subsets if found else ():
            yield from _of_ports(subset.endpoints, subset.ports, port, "")
        return
    index = IndexKey("EndpointSlice", SLICES_BY_SERVICE, f"{service.namespace}/{service.name}")
    for item in view.find(EndpointSlice, index):
        yield from _of_ports(item.endpoints, item.ports, port, item.address_type)


def _of_ports(
    endpoints: Iterable[Endpoint], ports: Iterable[EndpointPort], name: str, family: str
) -> Iterable[_Candidate]:
    numbers = [port.port for port in ports if port.name == name]
    for endpoint in endpoints:
        for address in endpoint.addresses:
            for number in numbers:
                yield _Candidate(address, number, family or (IPV6 if ":" in address else IPV4), endpoint)


def _family(service: Service, found: Sequence[_Candidate]) -> str:
    """Return the address family to use, so that no pod counts twice: the Service's first one that has an address."""
    there = {candidate.family for candidate in found}
    if service.ip_families:
        return next((family for family in service.ip_families if family in there), service.ip_families[0])
    if not service.headless:
        return IPV6 if ":" in service.cluster_ip else IPV4
    return min(there - {"FQDN"}, default=IPV4)


def _has_labels(view: View, namespace: str, candidate: _Candidate, labels: Mapping[str, str]) -> bool:
    return any(
        all(pod.meta.labels.get(name) == value for name, value in labels.items())
        for pod in _pods(view, namespace, candidate)
    )


def _pods(view: View, namespace: str, candidate: _Candidate) -> tuple[Pod, ...]:
    """Return the Pod that an endpoint names. Only where it names none its address tells: host networks share one."""
    if candidate.endpoint.pod:
        pod = view.get(Pod, ObjectKey("Pod", namespace, candidate.endpoint.pod))
        return (pod,) if pod else ()
    return view.find(Pod, IndexKey("Pod", PODS_BY_ADDRESS, f"{namespace}/{candidate.address}"))
