"""The current nodes of upstreams in gateways, before everything has been translated: see `early_updates`.

The nodes of most upstreams depend only on a Service and its endpoints. So they are certain as soon as these kinds have
been listed, whatever the other objects are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.names import service_port_of
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.world import World
from translation.core.options import Options
from translation.service import plain_nodes
from translation.upstreams.endpoints import listed_endpoints
from translation.upstreams.nodes import WEIGHT, Node

_CLUSTERS = "ApisixClusterConfig"

_NODE = frozenset({"host", "port", "weight"})


class CurrentNodes:
    """Nodes by the name of their upstream."""

    def __init__(self, world: World, options: Options) -> None:
        self._world = world
        self._options = options
        slices = "Endpoints" if options.endpoint_source == "endpoints" else "EndpointSlice"
        self._needed = ("Service", slices, _CLUSTERS)

    async def wait_until_listed(self) -> bool:
        """Return, once what nodes depend on is listed, whether no cluster may have another address."""
        stores = self._world.stores
        for kind in self._needed:
            is_listed = asyncio.Event()
            stores[kind].when_synced(is_listed.set)
            await is_listed.wait()
        return not any(map(_has_address, stores[_CLUSTERS].values()))

    def changed(self, name: str, nodes: Sequence[JsonObject], upstreams: int) -> Sequence[Node] | None:
        """Return the current nodes of an upstream; None if they have not changed, or are not certain.

        An upstream never loses its last node here: that waits until everything has been translated.
        """
        found = service_port_of(name)
        if found is None or not nodes or not all(map(_is_plain, nodes)):
            return None
        service, view = ObjectKey("Service", *found[:2]), self._world.view()
        if {node["host"].strip("[]") for node in nodes} == set(self._ready_addresses(service)):
            return None  # nearly always, and much faster than the nodes
        current = plain_nodes(service, found[2], upstreams, view, self._options)
        stores = self._world.stores
        is_certain = all(stores[read.kind].synced for read in view.reads if read.kind in stores)
        is_new = {(node["host"], node["port"]) for node in current or ()} != set(map(_place, nodes))
        return current if current and is_certain and is_new else None

    def _ready_addresses(self, service: ObjectKey) -> Iterator[str]:
        for endpoints, _, _ in listed_endpoints(self._world.view(), self._options, service):
            for endpoint in endpoints:
                if endpoint.ready and endpoint.serving and not endpoint.terminating:
                    yield from endpoint.addresses


def _is_plain(node: object) -> bool:
    """Return whether a node could have been generated from an endpoint."""
    if not isinstance(node, dict) or node.keys() != _NODE:
        return False
    return isinstance(node["host"], str) and isinstance(node["port"], int) and node["weight"] == WEIGHT


def _place(node: JsonObject) -> tuple[str, int]:
    return node["host"], node["port"]


def _has_address(item: CustomObject) -> bool:
    return isinstance(item.spec, dict) and "admin" in item.spec
