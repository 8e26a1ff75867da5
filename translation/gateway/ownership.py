"""Hosts of other namespaces, if the settings give each host an owner.

A listener lends the hosts of its namespace to the routes that it allows. A listener may have the hostname of another
namespace if a route there names that hostname and the Gateway or ListenerSet of the listener. Routes without hostnames
use those of their listeners.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from apisix_ingress.model.json import list_in, mapping_in
from apisix_ingress.model.keys import IndexKey, ObjectKey
from apisix_ingress.model.kinds.indexes import HOST_INDEX
from apisix_ingress.model.network.host_claims import claimed_name, wildcards_over
from apisix_ingress.model.objects import CustomObject
from translation.core.builder import Builder
from translation.gateway.entry.listeners import Listener
from translation.hosts.host_owners import NOT_OWNED

_KINDS = ("HTTPRoute", "GRPCRoute", "TLSRoute")


def foreign(draft: Builder, listener: Listener, host: str) -> str:
    """Return why a listener may not use a hostname, or an empty string; the host "" means every host."""
    lenders = frozenset(_attached(draft, listener, host)) if host else frozenset[str]()
    return draft.owners.refusal_of_unnamed(listener.owner.namespace, host, lenders)


def usable(draft: Builder, hosts: Iterable[str], listener: Listener, path: str) -> list[str]:
    """Return the hosts that the namespace of a route may use at a listener, and report the others."""
    found = []
    for host in hosts:
        if why := draft.owners.refusal_of_unnamed(draft.namespace, host, {listener.owner.namespace}):
            draft.degrade(NOT_OWNED, path, why)
        else:
            found.append(host)
    return found


def _attached(draft: Builder, listener: Listener, host: str) -> Iterator[str]:
    """Yield the namespaces of the routes that name a hostname, or a wildcard over it, and the owner of a listener."""
    name = claimed_name(host)
    for each in (name, *wildcards_over(name)):
        for kind in _KINDS:
            for route in draft.view.find(CustomObject, IndexKey(kind, HOST_INDEX, each)):
                if listener.owner in _parents(route):
                    yield route.meta.namespace


def _parents(route: CustomObject) -> Iterator[ObjectKey]:
    for each in map(mapping_in, list_in(route.spec.get("parentRefs"))):
        namespace = each.get("namespace") or route.meta.namespace
        yield ObjectKey(str(each.get("kind", "Gateway")), str(namespace), str(each.get("name")))
