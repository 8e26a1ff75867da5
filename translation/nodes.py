"""Nodes: which addresses of a Service get its requests, from its endpoints.

The result depends on what the endpoints are, never on the order in which they came: it is sorted and holds each
node once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kube import Endpoint, EndpointPort, Pod, Service, ServicePort
from apisix_ingress.state.view import View
from translation.destinations import NEEDS_GRANT, endpoint_objection, pods_at
from translation.endpoints import listed_endpoints
from translation.scope import Scope

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


def service_nodes(scope: Scope, service: Service, port: ServicePort, labels: Mapping[str, str] | None) -> list[Node]:
    """Return the nodes for a port of a Service; with `labels` only the pods that have them all.

    What the settings don't let be a node is left out and noted in `scope`.
    """
    found = list(_candidates(scope, service.meta.key, port.name))
    family = _family(service, found)
    found = [candidate for candidate in found if candidate.family in (family, "FQDN")]
    if labels is not None:
        found = [item for item in found if _has_labels(scope.view, service.meta.namespace, item, labels)]
    if not service.publish_not_ready:
        found = _in_service(found)
    if scope.options.judges_addresses:
        found = _allowed(scope, service.meta.key, found)
    return [node(*pair) for pair in sorted({(item.address, item.port) for item in found})]


def _allowed(scope: Scope, service: ObjectKey, found: Sequence[_Candidate]) -> list[_Candidate]:
    """Return what may be a node; note how much may not, and why the first of it by address may not."""
    judge = scope.within(service.kind, service.namespace)
    told = [(item, endpoint_objection(judge, item.endpoint, item.address, item.port)) for item in found]
    left_out = sorted((item.address, what) for item, what in told if what)
    if left_out:
        address, what = left_out[0]
        message = f"{len(left_out)} of {len(found)} are left out: {address!r} is {what}"
        ask = "ask for one, or remove it" if what.endswith(NEEDS_GRANT) else "remove it"
        scope.degrade("ForeignAddress", "endpoints", f"{message}; {ask}")
    return [item for item, what in told if not what]


def _in_service(found: list[_Candidate]) -> list[_Candidate]:
    """Return what takes requests: what is ready; if nothing is, what still serves on its way out (as kube-proxy)."""
    ready = [item for item in found if item.endpoint.ready and item.endpoint.serving and not item.endpoint.terminating]
    return ready or [item for item in found if item.endpoint.serving and item.endpoint.terminating]


def _candidates(scope: Scope, service: ObjectKey, port: str) -> Iterable[_Candidate]:
    for endpoints, ports, family in listed_endpoints(scope.view, scope.options, service):
        yield from _of_ports(endpoints, ports, port, family)


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
    return pods_at(view, namespace, candidate.address)
