"""Hosts of other namespaces, if the settings give each host an owner.

A listener lends the hosts of its namespace to the routes that it allows. A listener may have the hostname of another
namespace if a route there names that hostname and the Gateway or ListenerSet of the listener. Routes without hostnames
use those of their listeners.
"""

from __future__ import annotations

from collections.abc import Iterator

from apisix_ingress.model.json import list_in, mapping_in
from apisix_ingress.model.keys import IndexKey, ObjectKey
from apisix_ingress.model.kinds.indexes import HOST_INDEX
from apisix_ingress.model.network.host_claims import claimed_name, wildcards_over
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View, oldest
from translation.hosts.host_owners import HostOwners

_KINDS = ("HTTPRoute", "GRPCRoute", "TLSRoute")


class GatewayHosts:
    """The hosts that listeners and their routes may use, from the point of view of one translation.

    Args:
        view: The objects to read.
        owners: The owners of hosts.
    """

    def __init__(self, view: View, owners: HostOwners) -> None:
        self.owners = owners
        self._view = view
        self._refusals: dict[tuple[ObjectKey, str], str] = {}
        self._of_routes: dict[tuple[str, str, str], str] = {}

    def refusal(self, owner: ObjectKey, host: str) -> str:
        """Return why a listener may not use a host; empty if it may.

        Args:
            owner: The Gateway or ListenerSet of the listener.
            host: Its hostname, or the claim of its port; empty for every host.
        """
        if (owner, host) not in self._refusals:
            self._refusals[owner, host] = self._judge(owner, host)
        return self._refusals[owner, host]

    def refusal_of_route(self, namespace: str, owner: ObjectKey, host: str) -> str:
        """Return why a route of a namespace may not use a host at a listener of an owner; empty if it may."""
        asked = (namespace, owner.namespace, host)
        if asked not in self._of_routes:
            self._of_routes[asked] = self.owners.refusal_of_unnamed(namespace, host, {owner.namespace})
        return self._of_routes[asked]

    def _judge(self, owner: ObjectKey, host: str) -> str:
        refusal = self.owners.refusal_of_unnamed(owner.namespace, host)
        lenders = {owner.namespace}
        for namespace in self._attached(owner, host) if refusal and host else ():
            # Thousands of routes may name the hostname, and the first ones usually permit it.
            if namespace not in lenders:
                lenders.add(namespace)
                if not self.owners.refusal_of_unnamed(owner.namespace, host, lenders):
                    return ""
        return refusal

    def _attached(self, owner: ObjectKey, host: str) -> Iterator[str]:
        """Yield the namespaces of the routes that name a hostname, or a wildcard over it, and the owner of a listener.

        The oldest routes are the first.
        """
        name = claimed_name(host)
        for each in (name, *wildcards_over(name)):
            for kind in _KINDS:
                for route in oldest(self._view, CustomObject, IndexKey(kind, HOST_INDEX, each)):
                    if owner in _parents(route):
                        yield route.meta.namespace


def _parents(route: CustomObject) -> Iterator[ObjectKey]:
    for each in map(mapping_in, list_in(route.spec.get("parentRefs"))):
        namespace = each.get("namespace") or route.meta.namespace
        yield ObjectKey(str(each.get("kind", "Gateway")), str(namespace), str(each.get("name")))
