"""Attachment: which listeners pass requests to a route, for each of its parentRefs, and why others do not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apisix_ingress.model.assessment import ListenerKey, Verdict
from apisix_ingress.model.json import list_in, mapping_in
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.network.host_claims import claimed_port
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from crds import SpecError
from crds.gateway.common import ParentReference
from crds.gateway.gateways import GatewaySpec
from crds.gateway.routes import RouteSpec
from translation.core.builder import Builder
from translation.core.options import Options
from translation.core.scope import in_scope
from translation.gateway.entry.acceptance import refusal_of
from translation.gateway.entry.addresses import address_of
from translation.gateway.entry.client_verification import verification_of
from translation.gateway.entry.listeners import Entry, Listener, entry_of, gateway_port
from translation.gateway.entry.owned import allows_namespace, gateway_of, parent_of
from translation.gateway.hostnames import intersection, shared_hosts
from translation.gateway.parsing import spec_of
from translation.hosts.host_owners import NOT_OWNED

_WITHOUT_HOSTS = ("TCPRoute", "UDPRoute")
"""Kinds of routes that listeners select by their port alone."""


@dataclass(frozen=True, slots=True)
class Attached:
    """A listener that passes requests to a route.

    Attributes:
        entry: The Gateway of the listener, and its other listeners.
        listener: The listener.
        hosts: The hosts; the empty string means every host.
        address: The address of the Gateway, empty if Gateways share their addresses.
        lost: Why the route may not use the other hosts that it has in common with the listener.
        is_served: Whether its requests may be served: clients can be verified as the Gateway asks.
    """

    entry: Entry
    listener: Listener
    hosts: tuple[str, ...]
    address: str
    lost: tuple[str, ...] = ()
    is_served: bool = True


@dataclass(frozen=True, slots=True)
class Parent:
    """One parentRef to a Gateway of this controller.

    Attributes:
        reference: The parentRef.
        accepted: The condition Accepted.
        listeners: The listeners that the route is attached to.
    """

    reference: Mapping[str, Any]
    accepted: Verdict
    listeners: tuple[Attached, ...] = ()

    @property
    def keys(self) -> frozenset[ListenerKey]:
        """The listeners whose attachedRoutes include the route."""
        return frozenset(each.listener.key for each in self.listeners)


def parents_of(draft: Builder, obj: CustomObject, spec: RouteSpec) -> tuple[Parent, ...]:
    """Return the parentRefs of a route to Gateways of this controller."""
    raw = list_in(obj.spec.get("parentRefs"))
    found = (
        _parent(draft, obj, spec, reference, mapping_in(each))
        for reference, each in zip(spec.parent_refs, raw, strict=True)
    )
    return tuple(each for each in found if each is not None)


def is_elsewhere(reference: Mapping[str, Any], namespace: str, view: View, options: Options) -> bool:
    """Return whether a parentRef leads to a namespace that this installation does not serve, but another one may.

    Args:
        reference: The parentRef, which may be invalid.
        namespace: The namespace of the route.
        view: Where ListenerSets and namespaces are looked up.
        options: The settings.
    """
    own, name = reference.get("namespace") or namespace, reference.get("name")
    if not isinstance(own, str) or not in_scope(own, view, options):
        return isinstance(own, str)
    if reference.get("kind") != "ListenerSet" or not isinstance(name, str):
        return False
    found = view.get(CustomObject, ObjectKey("ListenerSet", own, name))
    gateway = parent_of(found) if found is not None else None
    return gateway is not None and not in_scope(gateway.namespace, view, options)


def _parent(
    draft: Builder, obj: CustomObject, spec: RouteSpec, reference: ParentReference, raw: Mapping[str, Any]
) -> Parent | None:
    view, options = draft.view, draft.options
    found = gateway_of(obj, reference, view, options)
    if found is None:
        return None
    gateway, owner = found
    try:
        entry = entry_of(gateway, view, options, draft.owners)
    except SpecError:
        return Parent(raw, Verdict("Accepted", False, "NoMatchingParent", f"{gateway.meta.key} cannot be read"))
    if (why := refusal_of(entry.gateway.meta.key, entry.spec, view)) is not None:
        return Parent(raw, _refused("Pending", f"{gateway.meta.key} is not accepted: {why.message}"))
    named = [each for each in entry.listeners if each.owner == owner and _is_named(reference, each)]
    refusal, listeners = _accepted(obj, spec, named, view)
    if refusal is not None:
        return Parent(raw, refusal)
    address = address_of(gateway, spec_of(gateway, GatewaySpec), view, options).value
    if options.gateway_addresses and not address:
        return Parent(raw, _refused("Pending", f"{gateway.meta.key} has no address"))
    every = tuple(_attached(obj, spec, each, entry, address=address, view=view) for each in listeners)
    attached = tuple(each for each in every if each.hosts)
    return Parent(raw, Verdict("Accepted", True, "Accepted") if attached else _without_hosts(every), attached)


def _attached(
    obj: CustomObject, spec: RouteSpec, listener: Listener, entry: Entry, *, address: str, view: View
) -> Attached:
    """Return a route at a listener, with the hosts that its namespace may use there."""
    hosts = _hosts(obj, spec, listener, entry)
    refusals = {
        host: entry.hosts.refusal_of_route(
            obj.meta.namespace, listener.owner, _claim(obj, listener, host, entry.options)
        )
        for host in hosts
    }
    return Attached(
        entry,
        listener,
        tuple(host for host, why in refusals.items() if not why),
        address,
        tuple(why for why in refusals.values() if why),
        is_served=not verification_of(entry, listener, view, entry.options).refusal[0],
    )


def _hosts(obj: CustomObject, spec: RouteSpec, listener: Listener, entry: Entry) -> tuple[str, ...]:
    """Return the hosts that a route has in common with a listener, without those of more specific listeners."""
    if obj.meta.kind in _WITHOUT_HOSTS:
        return ("",)
    shared = shared_hosts(listener.hostname, spec.hostnames)
    return tuple(host for host in shared if not entry.is_taken(listener, host))


def _claim(obj: CustomObject, listener: Listener, host: str, options: Options) -> str:
    """Return what a route uses at a listener: a host, or the port of stream routes without one."""
    if host or obj.meta.kind in ("HTTPRoute", "GRPCRoute"):
        return host
    return claimed_port(gateway_port(listener, options))


def _without_hosts(every: Sequence[Attached]) -> Verdict:
    """Return why a route gets no requests from listeners that accept it."""
    if why := next((each.lost[0] for each in every if each.lost), ""):
        return _refused(NOT_OWNED, why)
    message = "more specific listeners receive the requests for every hostname of the route"
    return _refused("NoMatchingListenerHostname", message)


def _is_named(reference: ParentReference, listener: Listener) -> bool:
    if reference.section_name and reference.section_name != listener.name:
        return False
    return reference.port is None or reference.port == listener.port


def _accepted(
    obj: CustomObject, spec: RouteSpec, named: list[Listener], view: View
) -> tuple[Verdict | None, list[Listener]]:
    """Return why no listener accepts a route, or the listeners that accept it."""
    if not named:
        return _refused("NoMatchingParent", "no listener has this sectionName and port"), []
    allowed = list(_allowing(obj, [each for each in named if each.is_open], view))
    if not allowed:
        return _refused("NotAllowedByListeners", "no listener allows routes of this kind from this namespace"), []
    hosts = ("",) if obj.meta.kind in _WITHOUT_HOSTS else spec.hostnames or ("",)
    listeners = [each for each in allowed if any(_shares(each, host) for host in hosts)]
    if not listeners:
        return _refused("NoMatchingListenerHostname", "no listener has a hostname in common with the route"), []
    return None, listeners


def _shares(listener: Listener, host: str) -> bool:
    return intersection(listener.hostname, host.lower()) is not None


def _allowing(obj: CustomObject, listeners: list[Listener], view: View) -> Iterator[Listener]:
    for each in listeners:
        by_namespace = allows_namespace(each.routes.namespaces, each.owner.namespace, obj.meta.namespace, view)
        if obj.meta.kind in each.kinds and by_namespace:
            yield each


def _refused(reason: str, message: str) -> Verdict:
    return Verdict("Accepted", False, reason, message)
