"""The document of `tree`: host → path → route → upstream → nodes, each with its owner."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from apisix_ingress.explain.patterns import RouteFacts
from apisix_ingress.explain.request import ProbeRequest
from apisix_ingress.explain.response import respond
from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.objects import Pod
from apisix_ingress.model.records import references
from translation.gateway.names import listener_in

ANY_HOST = "*"
"""Represents a route without hosts."""

PodOf = Callable[[str, str], str]
"""Namespace and address → name of the Pod, or empty."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The data of a tree.

    Attributes:
        records: The body of every desired record.
        owners: Record → its owner.
        pod: Finds Pods by address.
    """

    records: Mapping[RecordKey, FrozenJson]
    owners: Mapping[RecordKey, ObjectKey]
    pod: PodOf

    def owner(self, key: RecordKey) -> str:
        """Return the owner of a record, or empty."""
        return str(self.owners.get(key, ""))


def tree_document(wanted: Wanted, *, host: str = "", about: ObjectKey | None = None) -> JsonObject:
    """Return the whole tree, or the part that concerns a host or an object."""
    hosts: dict[str, dict[str, list[JsonObject]]] = {}
    for key, body in sorted(wanted.records.items()):
        if key.kind != "routes" or (about and not _concerns(key, wanted, about)):
            continue
        facts = RouteFacts(key.id, body)
        route = _route(key, body, wanted)
        for name in facts.hosts:
            if not host or covers(name, host.lower()):
                for uri in facts.uris:
                    hosts.setdefault(name or ANY_HOST, {}).setdefault(uri, []).append(route)
    return {
        "hosts": [
            {
                "host": name,
                "paths": [{"path": path, "routes": _ranked(routes)} for path, routes in sorted(paths.items())],
            }
            for name, paths in sorted(hosts.items())
        ],
        "streams": [] if host else list(_streams(wanted, about)),
    }


def covers(pattern: str, host: str) -> bool:
    """Return whether a route's host, empty for every one, matches a host or equals the given text."""
    return pattern in ("", host) or (pattern.startswith("*") and host.endswith(pattern[1:]))


def _ranked(routes: list[JsonObject]) -> list[JsonObject]:
    """Sort the routes of a path in the order in which the gateway evaluates them."""
    return sorted(routes, key=lambda route: (-route["priority"], route["record"]))


def _route(key: RecordKey, body: FrozenJson, wanted: Wanted) -> JsonObject:
    return {
        "record": str(key),
        "name": str(body.get("name") or ""),
        "owner": wanted.owner(key),
        "listener": listener_in(str(body.get("name") or "")),
        "priority": int(body.get("priority") or 0),
        "methods": list(body.get("methods") or ()),
        "conditions": len(body.get("vars") or ()),
        "responds": _responds(key, body, wanted),
        "upstreams": [_upstream(ref, wanted) for ref in _upstreams(key, body)],
    }


def _responds(key: RecordKey, body: FrozenJson, wanted: Wanted) -> str:
    """Return what the gateway itself responds; empty if a backend does, and for stream routes."""
    if key.kind != "routes":
        return ""
    facts = RouteFacts(key.id, body)
    scheme = next((rule[2] for rule in body.get("vars") or () if rule[:2] == ["scheme", "=="] and rule[2:]), "http")
    request = ProbeRequest("GET", str(scheme), facts.hosts[0], "/")
    response = respond(request, body, wanted.records, patterns=False)
    if response.kind == "redirect":
        return f"{response.status} → {response.location}"
    is_of_backend = response.kind == "backend" or bool(response.destinations)
    return "" if is_of_backend else f"{response.status}: {response.cause}"


def _upstreams(key: RecordKey, body: FrozenJson) -> tuple[RecordKey, ...]:
    """Return the upstreams that a route sends to, each once."""
    return tuple(dict.fromkeys(ref for ref in references(key.kind, body) if ref.kind == "upstreams"))


def _upstream(key: RecordKey, wanted: Wanted) -> JsonObject:
    body, owner = wanted.records.get(key), wanted.owners.get(key)
    nodes = (body or {}).get("nodes")
    return {
        "record": str(key),
        "name": str((body or {}).get("name") or ""),
        "owner": wanted.owner(key),
        "missing": body is None,
        "discovery": str((body or {}).get("service_name") or ""),
        "nodes": [_node(each, owner, wanted) for each in nodes] if isinstance(nodes, list) else [],
    }


def _node(node: FrozenJson, owner: ObjectKey | None, wanted: Wanted) -> JsonObject:
    address = str(node.get("host") or "")
    namespace = owner.namespace if owner else ""
    pod = wanted.pod(namespace, address.strip("[]")) if owner and owner.kind == "Service" else ""
    return {
        "address": f"{address}:{node.get('port')}",
        "weight": node.get("weight"),
        "pod": str(ObjectKey("Pod", namespace, pod)) if pod else "",
    }


def _streams(wanted: Wanted, about: ObjectKey | None) -> Iterator[JsonObject]:
    for key, body in sorted(wanted.records.items()):
        if key.kind == "stream_routes" and (not about or _concerns(key, wanted, about)):
            route = _route(key, body, wanted)
            yield {"port": body.get("server_port"), "sni": str(body.get("sni") or ""), **route}


def _concerns(key: RecordKey, wanted: Wanted, about: ObjectKey) -> bool:
    """Return whether a route, or anything it leads to, belongs to an object."""
    body = wanted.records[key]
    refs = tuple(references(key.kind, body))
    if wanted.owners.get(key) == about or any(wanted.owners.get(ref) == about for ref in refs):
        return True
    route = _route(key, body, wanted)
    return any(node["pod"] == str(about) for upstream in route["upstreams"] for node in upstream["nodes"])


def pods_by_address(pods: Iterable[Pod]) -> PodOf:
    """Return the function that finds a Pod's name by its namespace and address."""
    names = {(pod.meta.namespace, address): pod.meta.name for pod in pods for address in pod.addresses}
    return lambda namespace, address: names.get((namespace, address), "")
