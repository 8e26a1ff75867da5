"""Nodes: the addresses that get the requests of a Service, from its endpoints.

The result depends only on the set of endpoints, not on their order: it is sorted and contains each node once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, TypedDict

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import Endpoint, Pod, Service, ServicePort
from apisix_ingress.state.view import View
from translation.addresses.destinations import NEEDS_GRANT, endpoint_objection, pods_at
from translation.core.context import Context
from translation.upstreams.endpoints import listed_endpoints

WEIGHT = 100
"""The weight of every node of a Service."""

IPV4, IPV6 = "IPv4", "IPv6"

MOST_NODES = 10_000
"""Maximum number of nodes in all upstreams of one Service: a change of one endpoint iterates over all of them."""


class Node(TypedDict):
    """A node in the format of the Admin API; an IPv6 host is in brackets."""

    host: str
    port: int
    weight: int


class _Candidate(NamedTuple):
    address: str
    port: int
    endpoint: Endpoint


def node(address: str, port: int, weight: int = WEIGHT) -> Node:
    """Return a node for a host name or an address."""
    host = f"[{address}]" if ":" in address and not address.startswith("[") else address
    return {"host": host, "port": port, "weight": weight}


def service_nodes(
    scope: Context, service: Service, port: ServicePort, labels: Mapping[str, str] | None, *, listed: ListedNodes
) -> list[Node]:
    """Return the nodes for a port of a Service; with `labels`, only pods that have all of them.

    Nodes that the settings reject are skipped and reported in `scope`.
    """
    found, left_out = listed.of_port(port.name)
    if left_out:
        message = (
            f"at most {listed.most} endpoints of port {port.port} are used: a Service has at most {MOST_NODES}"
            " nodes in all its upstreams; split the Service"
        )
        scope.degrade("TooLarge", "endpoints", message)
    if labels is not None:
        found = [item for item in found if _has_labels(scope.view, service.meta.namespace, item, labels)]
    if not service.publish_not_ready:
        found = _in_service(found)
    if scope.options.judges_addresses:
        found = _allowed(scope, service.meta.key, found)
    return [node(*pair) for pair in sorted({(item.address, item.port) for item in found})]


class ListedNodes:
    """The endpoints of a Service by port, computed once for all of its upstreams.

    Args:
        service: The Service.
        upstreams: The number of its upstreams; each gets its share of `MOST_NODES`.
    """

    def __init__(self, scope: Context, service: Service, upstreams: int) -> None:
        self.most = max(1, MOST_NODES // max(1, upstreams))
        self._service = service
        self._slices: dict[str, list[tuple[int, _Slice]]] = {}
        for endpoints, ports, family in listed_endpoints(scope.view, scope.options, service.meta.key):
            found = _Slice(endpoints, family)
            for port in ports:
                self._slices.setdefault(port.name, []).append((port.port, found))

    def of_port(self, name: str) -> tuple[list[_Candidate], bool]:
        """Return the candidates for a port, and whether there are more than may be nodes."""
        slices = self._slices.get(name)
        if not slices:
            return [], False
        family = _family(self._service, {each for _, found in slices for each in found.families})
        # If no endpoint of a subset is ready, terminating ones are used.
        tiers = (0, 1, 2) if self._service.publish_not_ready else (0, 1)
        candidates = (
            _Candidate(address, number, endpoint)
            for tier in tiers
            for number, found in slices
            for each in dict.fromkeys((family, "FQDN"))
            for address, endpoint in found.families.get(each, _NONE)[tier]
        )
        found = list(islice(candidates, self.most + 1))
        return found[: self.most], len(found) > self.most


Addresses = list[tuple[str, Endpoint]]

_NONE: tuple[Addresses, ...] = ([], [], [])


class _Slice:
    """Endpoints by address family: ready, serving while terminating, and neither."""

    def __init__(self, endpoints: Iterable[Endpoint], family: str) -> None:
        self.families: dict[str, tuple[Addresses, ...]] = {}
        for endpoint in endpoints:
            is_ready = endpoint.ready and endpoint.serving and not endpoint.terminating
            tier = 0 if is_ready else 1 if endpoint.serving and endpoint.terminating else 2
            for address in endpoint.addresses:
                each = family or (IPV6 if ":" in address else IPV4)
                self.families.setdefault(each, ([], [], []))[tier].append((address, endpoint))


def _allowed(scope: Context, service: ObjectKey, found: Sequence[_Candidate]) -> list[_Candidate]:
    """Return the permitted nodes; report how many are rejected, and the reason for the first one by address."""
    judge = scope.within(service.kind, service.namespace)
    checked = [(item, endpoint_objection(judge, item.endpoint, item.address, item.port)) for item in found]
    left_out = sorted((item.address, what) for item, what in checked if what)
    if left_out:
        address, what = left_out[0]
        message = f"{len(left_out)} of {len(found)} are skipped: {address!r} is {what}"
        ask = "add one, or remove the address" if what.endswith(NEEDS_GRANT) else "remove the address"
        scope.degrade("ForeignAddress", "endpoints", f"{message}; {ask}")
    return [item for item, what in checked if not what]


def _in_service(found: list[_Candidate]) -> list[_Candidate]:
    """Return the ready endpoints; if none is ready, the ones that still serve while terminating (as kube-proxy)."""
    ready = [item for item in found if item.endpoint.ready and item.endpoint.serving and not item.endpoint.terminating]
    return ready or [item for item in found if item.endpoint.serving and item.endpoint.terminating]


def _family(service: Service, there: set[str]) -> str:
    """Return the address family to use, so that no pod is used twice: the Service's first one that has an address."""
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
    """Return the Pod that an endpoint names. Without a name, the address identifies it: host networks share one."""
    if candidate.endpoint.pod:
        pod = view.get(Pod, ObjectKey("Pod", namespace, candidate.endpoint.pod))
        return (pod,) if pod else ()
    return pods_at(view, namespace, candidate.address)
