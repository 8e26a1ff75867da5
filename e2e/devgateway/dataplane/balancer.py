"""Selects the node of an upstream for a request: weighted round robin, consistent hashing, least connections."""

from __future__ import annotations

import bisect
import hashlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from e2e.devgateway.dataplane.request_context import Context

Body = dict[str, Any]
POINTS = 160
DEFAULT_PORTS = {"http": 80, "https": 443, "grpc": 80, "grpcs": 443}


@dataclass(frozen=True, slots=True)
class Node:
    """One address of an upstream."""

    host: str
    port: int
    weight: int
    priority: int = 0


def nodes_of(upstream: Body) -> list[Node]:
    """Return the nodes from either notation; the default port is that of the scheme."""
    nodes = upstream.get("nodes") or []
    port = DEFAULT_PORTS.get(upstream.get("scheme", "http"), 80)
    if isinstance(nodes, list):
        return [Node(n["host"], n.get("port", port), n["weight"], n.get("priority", 0)) for n in nodes]
    return [Node(*_address(address, port), weight) for address, weight in nodes.items()]


def _address(text: str, default: int) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if colon and port.isdigit() and (not host.count(":") or host.endswith("]")):
        return host, int(port)
    return text, default


class UnknownAlgorithm(Exception):
    """The upstream's type does not exist; the gateway fails with 500."""


@dataclass(slots=True)
class Balancer:
    """The state of one upstream; re-created when the upstream changes."""

    upstream: Body
    nodes: list[Node]
    _current: dict[Node, int] = field(default_factory=dict)
    _active: dict[Node, int] = field(default_factory=dict)
    _ring: list[tuple[int, Node]] = field(default_factory=list)

    def pick(self, context: Context, tried: Collection[Node]) -> Node | None:
        """Return a node that was not tried yet, or None; higher priorities first."""
        left = [node for node in self.nodes if node not in tried]
        if not left:
            return None
        top = max(node.priority for node in left)
        group = [node for node in left if node.priority == top]
        weighted = [node for node in group if node.weight > 0] or group
        kind = self.upstream.get("type", "roundrobin")
        if len(self.nodes) == 1:
            return weighted[0]
        if kind == "chash":
            return self._hashed(context, weighted)
        if kind in ("least_conn", "ewma"):
            return min(weighted, key=lambda node: (self._active.get(node, 0) + 1) / max(node.weight, 1))
        if kind != "roundrobin":
            raise UnknownAlgorithm(kind)
        return self.round_robin(weighted)

    def begin(self, node: Node) -> None:
        self._active[node] = self._active.get(node, 0) + 1

    def end(self, node: Node) -> None:
        self._active[node] -= 1

    def round_robin(self, nodes: list[Node]) -> Node:
        """Smooth weighted round robin: exact shares over every full round."""
        total = 0
        for node in nodes:
            weight = max(node.weight, 1)
            total += weight
            self._current[node] = self._current.get(node, 0) + weight
        best = max(nodes, key=lambda node: self._current[node])
        self._current[best] -= total
        return best

    def _hashed(self, context: Context, nodes: list[Node]) -> Node:
        if not self._ring:
            ring = [
                (_hash(f"{node.host}:{node.port}#{point}"), node)
                for node in self.nodes
                for point in range(POINTS * max(node.weight, 1) // _least_weight(self.nodes))
            ]
            self._ring = sorted(ring, key=lambda item: item[0])
        start = bisect.bisect(self._ring, _hash(hash_key(self.upstream, context)), key=lambda item: item[0])
        for node in self._clockwise(start):
            if node in nodes:
                return node
        return nodes[0]

    def _clockwise(self, start: int) -> Iterator[Node]:
        for offset in range(len(self._ring)):
            yield self._ring[(start + offset) % len(self._ring)][1]


def _least_weight(nodes: list[Node]) -> int:
    return min(max(node.weight, 1) for node in nodes)


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.md5(text.encode("utf-8", "surrogateescape"), usedforsecurity=False).digest()[:8])


def hash_key(upstream: Body, context: Context) -> str:
    """Return the value that a chash upstream hashes; by default the client's address."""
    key = upstream.get("key", "")
    match upstream.get("hash_on", "vars"):
        case "consumer":
            value: object = context.consumer_name
        case "header":
            value = context.request.get(key.removeprefix("http_").replace("_", "-"))
        case "cookie":
            value = context.cookies.get(key.removeprefix("cookie_"))
        case "vars_combinations":
            value = context.expand(key)
        case _:
            value = context.lookup(key)
    return str(value) if value else context.remote_addr
