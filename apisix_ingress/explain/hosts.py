"""What the requests for a host get: which of its routes the gateway uses, and what each of them responds.

A route is not used if other routes get all requests that it matches. Conditions are compared, not evaluated, so that
the time is bounded whatever tenants write; a route whose conditions are unlike those before it counts as used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from apisix_ingress.explain.patterns import RouteFacts, host_level
from apisix_ingress.explain.request import ProbeRequest
from apisix_ingress.explain.response import Records, Response, respond
from apisix_ingress.explain.routing import in_order
from apisix_ingress.model.json import FrozenJson, list_in, mapping_in

_REST = "\0"
"""Stands for what follows the prefix of a uri: no uri of another route can name it."""

_SCHEMES = ("http", "https")
_TYPICAL = frozenset({"uri", "request_uri", "scheme", "host", "http_host", "server_port", "https"})
"""Variables whose conditions do not make a route special: every client sends them."""


@dataclass(frozen=True, slots=True)
class RouteUse:
    """A route that gets requests for a path.

    Attributes:
        route: The route.
        response: What it responds.
        is_main: Whether it gets the requests of most clients: it has no condition on the method, on headers, cookies,
            parameters or the client's address.
    """

    route: RouteFacts
    response: Response
    is_main: bool


class RouteIndex:
    """The routes of a gateway by host and path; finds the few that may match a request."""

    def __init__(self, routes: Iterable[RouteFacts]) -> None:
        self._hosts: dict[str, _Paths] = {}
        for route in routes:
            if route.body.get("status", 1) != 0:
                for host in route.hosts:
                    self._hosts.setdefault(host, _Paths()).add(route)

    @property
    def hosts(self) -> Iterable[str]:
        """The hosts of routes, in lower case; one empty string means every host."""
        return self._hosts

    def uris(self, host: str) -> Iterable[str]:
        """Return the uris of the routes of a host."""
        return self._hosts[host].uris

    def matching(self, host: str, path: str) -> list[RouteFacts]:
        """Return the routes that match a host and path, and perhaps some others, each once."""
        wildcards = (f"*{host[place:]}" for place, letter in enumerate(host) if letter in ".*")
        found: dict[str, RouteFacts] = {}
        for pattern in dict.fromkeys((host, *wildcards, "*", "")):
            if pattern in self._hosts and host_level(pattern, host) is not None:
                found |= self._hosts[pattern].matching(path)
        return list(found.values())


def closed_by(host: str, uses: Sequence[RouteUse]) -> Response | None:
    """Return the response of a host whose requests all get an error; None if some get something else.

    Redirects of the host to https count as what https responds.
    """
    main = [each for each in uses if each.is_main] or uses
    rest = [each.response for each in main if not _is_upgrade(host, each.response)]
    if not rest or not all(each.fails for each in rest):
        return None
    return max(rest, key=lambda each: each.status or 0)


def fails_in_part(uses: Iterable[RouteUse]) -> Response | None:
    """Return a response with an error of the gateway, 500 or above; None if there is none."""
    return next((each.response for each in uses if is_failure(each.response)), None)


def is_failure(response: Response) -> bool:
    """Return whether everyone gets an error from 500 on, which is not a usual response to configure."""
    return response.fails and (response.status or 0) >= 500


def redirect_of(uses: Sequence[RouteUse]) -> Response | None:
    """Return the redirect that every request of a host gets; None if some get something else."""
    if not uses or any(each.response.kind != "redirect" for each in uses):
        return None
    return uses[0].response


def _is_upgrade(host: str, response: Response) -> bool:
    """Return whether a response leads to the same host with https."""
    scheme, _, rest = response.location.partition("://")
    return response.kind == "redirect" and scheme == "https" and rest.startswith(host)


@dataclass(slots=True)
class _Paths:
    """The routes of one host, by uri."""

    uris: dict[str, None] = field(default_factory=dict)
    _exact: dict[str, dict[str, RouteFacts]] = field(default_factory=dict)
    _prefix: dict[str, dict[str, RouteFacts]] = field(default_factory=dict)

    def add(self, route: RouteFacts) -> None:
        for uri in route.uris:
            self.uris[uri] = None
            prefix, star, _ = uri.partition("*")
            (self._prefix if star else self._exact).setdefault(prefix, {})[route.id] = route

    def matching(self, path: str) -> Mapping[str, RouteFacts]:
        found = dict(self._exact.get(path, {}))
        for end in range(len(path) + 1):
            found |= self._prefix.get(path[:end], {})
        return found


class HostResponses:
    """Computes what the requests for hosts get.

    Args:
        index: The routes.
        records: The records that routes refer to.
        global_rules: The global rules of the gateway.
    """

    def __init__(self, index: RouteIndex, records: Records, global_rules: Sequence[FrozenJson] = ()) -> None:
        self._index = index
        self._records = records
        self._rules = global_rules
        self._known: dict[tuple[str, str], Response] = {}

    def uses(self, host: str, uri: str) -> Iterator[RouteUse]:
        """Yield the routes that get requests for a uri of a host, for each scheme."""
        prefix, star, rest = uri.partition("*")
        path = prefix + (_REST if star else "")
        routes = self._index.matching(host, path)
        if star and rest:  # which paths its further segments match is not known
            routes = [*{route.id: route for route in (*routes, *self._index.matching(host, prefix))}.values()]
        ordered = in_order(host, path, routes) if rest or len(routes) > 1 else routes
        schemes = _SCHEMES if any(_depends_on_scheme(route) for route in ordered) else ("http",)
        for scheme in schemes:
            yield from self._of_scheme(ordered, host, path, scheme)

    def _of_scheme(self, ordered: list[RouteFacts], host: str, path: str, scheme: str) -> Iterator[RouteUse]:
        earlier: list[_Conditions] = []
        for route in ordered:
            conditions = _conditions(route, scheme)
            if conditions is None or any(each.include(conditions) for each in earlier):
                continue
            earlier.append(conditions)
            yield RouteUse(route, self._response(route, host, path, scheme), conditions.is_typical)
            if conditions.is_empty:
                return

    def _response(self, route: RouteFacts, host: str, path: str, scheme: str) -> Response:
        key = (route.id, scheme)
        if key not in self._known:
            request = ProbeRequest("GET", scheme, host, path.removesuffix(_REST) or "/")
            self._known[key] = respond(request, route.body, self._records, self._rules, patterns=False)
        return self._known[key]


@dataclass(frozen=True, slots=True)
class _Conditions:
    """What a route requires beyond host, path and scheme."""

    methods: frozenset[str]
    variables: tuple[object, ...]
    others: tuple[object, ...]

    @property
    def is_empty(self) -> bool:
        return not (self.methods or self.variables or self.others)

    @property
    def is_typical(self) -> bool:
        named = {name for each in self.variables for name in _names(each)}
        return (not self.methods or "GET" in self.methods) and not self.others and named <= _TYPICAL

    def include(self, other: _Conditions) -> bool:
        """Return whether every request that fulfils the other conditions fulfils these."""
        methods = not self.methods or (other.methods and other.methods <= self.methods)
        others = self.others in ((), other.others)
        return bool(methods) and others and all(each in other.variables for each in self.variables)


def _conditions(route: RouteFacts, scheme: str) -> _Conditions | None:
    """Return the conditions of a route for a scheme; None if it does not match the scheme."""
    variables = []
    rules = list_in(route.body.get("vars"))
    for rule in rules if all(isinstance(each, list) for each in rules) else [rules]:
        if rule[:2] == ["scheme", "=="] and len(rule) == 3:
            if rule[2] != scheme:
                return None
        else:
            variables.append(rule)
    others = tuple(route.body[name] for name in ("remote_addr", "remote_addrs", "filter_func") if name in route.body)
    return _Conditions(frozenset(route.body.get("methods") or ()), tuple(variables), others)


def _depends_on_scheme(route: RouteFacts) -> bool:
    """Return whether a route has a condition on the scheme, or redirects http to https itself."""
    if any(isinstance(rule, list) and rule[:1] == ["scheme"] for rule in list_in(route.body.get("vars"))):
        return True
    plugins = mapping_in(route.body.get("plugins"))
    function = mapping_in(mapping_in(plugins.get("client-control")).get("ingress_nginx"))
    return "https" in function or bool(mapping_in(plugins.get("redirect")).get("http_to_https"))


def _names(rule: object) -> Iterator[str]:
    """Yield the variables that an expression names."""
    if not isinstance(rule, list) or not rule:
        return
    if isinstance(rule[0], list) or str(rule[0]).upper() in ("AND", "OR", "!AND", "!OR"):
        for each in rule:
            yield from _names(each)
    else:
        yield str(rule[0])
