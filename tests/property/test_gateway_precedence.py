"""The choice among random HTTPRoutes, by the records of a gateway and its matching, is that of the Gateway API.

The model implements the specification without records: `HTTPRouteRule.matches` and `HTTPRouteSpec.hostnames`. The
specification leaves regular expressions for paths to implementations: the model has them before the prefix `/` and
after all other paths. `make precedence` runs 10,000 sets (`PRECEDENCE_SETS`); the number of a set is its seed.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from apisix_ingress.explain.patterns import RouteFacts
from apisix_ingress.explain.request import ProbeRequest
from apisix_ingress.explain.routing import choose
from apisix_ingress.model.json import JsonObject
from tests.unit.translation.objects import make, service
from tests.unit.translation.settling import settle

SETS = int(os.environ.get("PRECEDENCE_SETS", "120"))
BLOCK = 20
REQUESTS = 12
CONTROLLER = "apisix.apache.org/apisix-ingress-controller"

LISTENERS = ("", "*.a.test", "x.a.test", "b.test")
HOSTS = ("a.test", "x.a.test", "y.a.test", "z.y.a.test", "*.a.test", "*.y.a.test", "b.test")
ASKED = ("a.test", "x.a.test", "y.a.test", "z.y.a.test", "w.z.y.a.test", "b.test", "other.test")
PATHS = ("/", "/a", "/a/b", "/ab", "/a/b/c")
PATTERNS = ("/a.*", "/a/b", "/[ab]", "/.*/b/?c?", ".*")
NAMESPACES = ("default", "other")
FROM_ALL = {"allowedRoutes": {"namespaces": {"from": "All"}}}
HEADERS = ("X-One", "X-Two", "X-Three")
QUERIES = ("q", "r")


@dataclass(frozen=True)
class Request:
    host: str
    path: str
    method: str
    headers: dict[str, str]
    query: dict[str, str]


@dataclass(frozen=True)
class Candidate:
    """A match that fits a request; the larger rank wins."""

    rank: tuple[Any, ...]
    route: str
    rule: int
    match: int


def random_path(rng: random.Random) -> JsonObject:
    kind = rng.choice(("Exact", "PathPrefix", "PathPrefix", "PathPrefix", "RegularExpression"))
    if kind == "RegularExpression":
        return {"type": kind, "value": rng.choice(PATTERNS)}
    slash = "/" if kind == "PathPrefix" and rng.random() < 0.1 else ""
    return {"type": kind, "value": rng.choice(PATHS).rstrip("/") + slash or "/"}


def random_match(rng: random.Random) -> JsonObject:
    match: JsonObject = {}
    if rng.random() < 0.9:
        match["path"] = random_path(rng)
    if rng.random() < 0.3:
        match["method"] = rng.choice(("GET", "POST"))
    headers = rng.sample(HEADERS, rng.choice((0, 0, 0, 1, 2)))
    if headers:
        match["headers"] = [{"name": name, "value": rng.choice("01")} for name in headers]
    queries = rng.sample(QUERIES, rng.choice((0, 0, 0, 1, 2)))
    if queries:
        match["queryParams"] = [{"name": name, "value": rng.choice("01")} for name in queries]
    return match


def shown_rule(rule: int) -> JsonObject:
    """Return the header by which a record shows its rule."""
    return {"name": "X-Rule", "value": str(rule)}


def random_route(rng: random.Random, number: int, sections: list[str]) -> JsonObject:
    rules = [
        {
            "matches": [random_match(rng) for _ in range(rng.choice((1, 1, 2)))],
            "backendRefs": [{"name": "web", "port": 80}],
            "filters": [{"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [shown_rule(rule)]}}],
        }
        for rule in range(rng.choice((1, 1, 2)))
    ]
    parent = {
        "name": "gw",
        "namespace": "default",
        **({"sectionName": rng.choice(sections)} if rng.random() < 0.2 else {}),
    }
    spec: JsonObject = {"parentRefs": [parent], "rules": rules}
    if rng.random() < 0.7:
        spec["hostnames"] = rng.sample(HOSTS, rng.choice((1, 1, 2, 3)))
    raw = make("HTTPRoute", f"r{rng.randrange(6)}-{number}", namespace=rng.choice(NAMESPACES), spec=spec)
    raw["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:0{rng.choice('012')}Z"
    return raw


def random_request(rng: random.Random) -> Request:
    return Request(
        rng.choice(ASKED),
        rng.choice((*PATHS, "/a/x", "/b")),
        rng.choice(("GET", "POST")),
        {name: rng.choice("01") for name in rng.sample(HEADERS, rng.choice((0, 1, 2, 3)))},
        {name: rng.choice("01") for name in rng.sample(QUERIES, rng.choice((0, 1, 2)))},
    )


def takes(hostname: str, host: str) -> bool:
    if not hostname:
        return True
    return host.endswith(hostname[1:]) if hostname.startswith("*") else hostname == host


def specificity(hostname: str) -> tuple[int, int]:
    """Return the characters of a hostname without wildcard, then of any hostname (HTTPRouteSpec.hostnames)."""
    return (0 if hostname.startswith("*") else len(hostname), len(hostname))


def path_rank(path: JsonObject, asked: str) -> tuple[bool, float] | None:
    """Return whether a path is exact, and its length; a regular expression is a bit longer than the prefix `/`."""
    value = path["value"]
    if path["type"] == "Exact":
        return (True, len(value)) if asked == value else None
    if path["type"] == "RegularExpression":
        return (False, 0.5) if re.fullmatch(value, asked) else None
    prefix = value.rstrip("/")
    return (False, len(prefix)) if asked == prefix or asked.startswith(f"{prefix}/") else None


def candidates(request: Request, routes: list[JsonObject], listener: str) -> Iterator[Candidate]:
    for raw in routes:
        section = raw["spec"]["parentRefs"][0].get("sectionName")
        if section is not None and section != name_of(listener):
            continue
        hosts = [each for each in raw["spec"].get("hostnames", [""]) if takes(each, request.host)]
        # A hostname of a route that is wider than the listener's means the listener's.
        specific = max((max(specificity(each), specificity(listener)) for each in hosts), default=None)
        if specific is None:
            continue
        for number, rule in enumerate(raw["spec"]["rules"]):
            for index, match in enumerate(rule["matches"]):
                if (fit := fits(request, match)) is not None:
                    rank = (specific, fit, Descending(age(raw)), -number, -index)
                    yield Candidate(rank, record_of(raw), number, index)


@dataclass(frozen=True)
class Descending:
    """Sorts in reverse: the oldest route, then the first namespace and name."""

    value: tuple[str, str, str]

    def __lt__(self, other: Descending) -> bool:
        return other.value < self.value


def age(raw: JsonObject) -> tuple[str, str, str]:
    meta = raw["metadata"]
    return meta["creationTimestamp"], meta["namespace"], meta["name"]


def record_of(raw: JsonObject) -> str:
    return f"HTTPRoute_{raw['metadata']['namespace']}_{raw['metadata']['name']}"


def fits(request: Request, match: JsonObject) -> tuple[Any, ...] | None:
    path = path_rank(match.get("path", {"type": "PathPrefix", "value": "/"}), request.path)
    headers, queries = match.get("headers", []), match.get("queryParams", [])
    others = (
        match.get("method", request.method) == request.method,
        all(request.headers.get(each["name"]) == each["value"] for each in headers),
        all(request.query.get(each["name"]) == each["value"] for each in queries),
    )
    return (path, "method" in match, len(headers), len(queries)) if path is not None and all(others) else None


def name_of(listener: str) -> str:
    return listener.replace("*", "any").replace(".", "-") or "all"


def model(request: Request, routes: list[JsonObject], listeners: list[str]) -> Candidate | None:
    taking = [each for each in listeners if takes(each, request.host)]
    if not taking:
        return None
    listener = max(taking, key=specificity)
    return max(candidates(request, routes, listener), key=lambda each: each.rank, default=None)


def gateway(listeners: list[str]) -> JsonObject:
    entries = [
        {"name": name_of(each), "port": 80, "protocol": "HTTP", **FROM_ALL, **({"hostname": each} if each else {})}
        for each in listeners
    ]
    return make("Gateway", "gw", spec={"gatewayClassName": "apisix", "listeners": entries})


def chosen(request: Request, facts: list[RouteFacts]) -> tuple[str, str]:
    """Return the name of the winning record and its rule; empty without one."""
    query = "&".join(f"{name}={value}" for name, value in request.query.items())
    headers = {name.lower(): value for name, value in request.headers.items()}
    probe = ProbeRequest(request.method, "http", request.host, f"{request.path}?{query}", headers)
    winner = choose(probe, facts).winner
    if winner is None:
        return "", ""
    headers = winner.route.body.get("plugins", {}).get("proxy-rewrite", {}).get("headers", {})
    return winner.route.body["name"], headers.get("set", {}).get("X-Rule", "")


@pytest.mark.parametrize("block", range(-(-SETS // BLOCK)))
def test_gateway_chooses_as_the_specification_does(block: int) -> None:
    for seed in range(block * BLOCK, min((block + 1) * BLOCK, SETS)):
        rng = random.Random(seed)
        listeners = rng.sample(LISTENERS, rng.choice((1, 2, 3, 4)))
        sections = [name_of(each) for each in listeners]
        routes = [random_route(rng, number, sections) for number in range(rng.randrange(1, 9))]
        class_ = make("GatewayClass", "apisix", namespace="", spec={"controllerName": CONTROLLER})
        services = (service(namespace=each) for each in NAMESPACES)
        found = settle(class_, gateway(listeners), *services, *routes)
        records = found.desired.records("default").items()
        facts = [RouteFacts(key.id, record.body) for key, record in records if key.kind == "routes"]
        for request in (random_request(rng) for _ in range(REQUESTS)):
            want = model(request, routes, listeners)
            name, rule = chosen(request, facts)
            if want is None:
                assert name == "" or name.startswith("Gateway_"), (seed, request, name)
            else:
                assert name.startswith(f"{want.route}_"), (seed, request, want, name)
                assert rule == str(want.rule), (seed, request, want, name)
