"""Matches of HTTPRoutes and GRPCRoutes: their order in the Gateway API, and an index of equal ones.

Derived from raw specs, like every index. A gateway evaluates the longest literal path first; the rank orders matches
with one literal path: exact before regular expression before prefix, then with a method, then by the number of headers
and of query parameters. Age decides between equal ones (`translation.gateway.routes.precedence`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import unquote

from apisix_ingress.model.json import FrozenJson, list_in, mapping_in
from apisix_ingress.model.objects import CustomObject

MOST_VALUES = 20_000
"""Limit of index values per route; a route with more is not indexed and loses every conflict."""

MOST_CONDITIONS = 16
"""Limit of headers, and of query parameters, per match in the CRD."""

GATEWAY_KIND = "Gateway"


class RankedMatch(NamedTuple):
    """One match.

    Attributes:
        rule: Index of the rule.
        match: Index of the match in the rule.
        literal: The path that the gateway sorts by, without `*` at its end.
        rank: Among matches of one literal path, the larger rank takes precedence.
    """

    rule: int
    match: int
    literal: str
    rank: int


def ranked_matches(obj: CustomObject) -> Iterator[RankedMatch]:
    """Yield the matches of an HTTPRoute or GRPCRoute; a rule without matches has one that matches every request."""
    read = _grpc if obj.meta.kind == "GRPCRoute" else _http
    for index, rule in enumerate(list_in(obj.spec.get("rules")) or [{}]):
        for number, match in enumerate(list_in(mapping_in(rule).get("matches")) or [{}]):
            literal, kind, has_method = read(mapping_in(match))
            headers, queries = _count(match, "headers"), _count(match, "queryParams")
            yield RankedMatch(index, number, literal, _rank(kind, has_method, headers, queries))


def match_values(obj: CustomObject) -> Iterable[str]:
    """Return the values under which a route is indexed: parent, host, literal path and rank."""
    matches = dict.fromkeys((each.literal, each.rank) for each in ranked_matches(obj))
    hosts = dict.fromkeys(str(host).lower() for host in list_in(obj.spec.get("hostnames")) or [""])
    parents = dict.fromkeys(_parents(obj))
    if len(matches) * len(hosts) * len(parents) > MOST_VALUES:
        return ()
    return [
        match_value(parent, host, literal, rank) for parent in parents for host in hosts for literal, rank in matches
    ]


def match_value(parent: str, host: str, literal: str, rank: int) -> str:
    """Return the value for one match of a route with one parent and host."""
    return f"{parent}\n{host}\n{rank}\n{literal}"


def decoded_path(path: str) -> str:
    """Return a path without %-escapes, as gateways compare paths; one whose bytes are not UTF-8 stays as it is."""
    try:
        found = unquote(path, errors="strict")
    except UnicodeDecodeError:
        return path
    return found if found.isprintable() else path


def parent_name(kind: str, namespace: str, name: str) -> str:
    """Return how a parent is written in the index."""
    return f"{kind}/{namespace}/{name}"


def _parents(obj: CustomObject) -> Iterator[str]:
    for each in map(mapping_in, list_in(obj.spec.get("parentRefs"))):
        namespace = each.get("namespace") or obj.meta.namespace
        yield parent_name(str(each.get("kind") or GATEWAY_KIND), str(namespace), str(each.get("name")))


PREFIX, REGEX, EXACT = range(3)


def _http(match: FrozenJson) -> tuple[str, int, bool]:
    path = mapping_in(match.get("path"))
    value, kind = str(path.get("value") or "/"), path.get("type") or "PathPrefix"
    has_method = bool(match.get("method"))
    if kind == "RegularExpression":
        return "/", REGEX, has_method
    literal = decoded_path(value).partition("*")[0]
    if kind == "Exact":
        return literal, EXACT, has_method
    return literal.rstrip("/") or "/", PREFIX, has_method


def _grpc(match: FrozenJson) -> tuple[str, int, bool]:
    call = mapping_in(match.get("method"))
    service, method = str(call.get("service") or ""), str(call.get("method") or "")
    if call.get("type") == "RegularExpression" or (method and not service):
        return "/", REGEX, False
    if service and method:
        return f"/{service}/{method}", EXACT, False
    return (f"/{service}", PREFIX, False) if service else ("/", PREFIX, False)


def _count(match: object, name: str) -> int:
    return min(len(list_in(mapping_in(match).get(name))), MOST_CONDITIONS)


def _rank(kind: int, has_method: bool, headers: int, queries: int) -> int:
    most = MOST_CONDITIONS + 1
    return ((kind * 2 + has_method) * most + headers) * most + queries
