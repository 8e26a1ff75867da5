"""The gateway's choice among routes, with a reason for each that is not chosen.

Rules from the recorded data plane (matching facts 1 to 5): an exact host wins over a longer wildcard, that over a
shorter one, and that over no host; within a level an exact uri wins over the longest prefix; priority orders routes of
one uri only; equal routes stay in the order in which the gateway received them, which after its restart is the order of
their ids. If the method, addresses or vars of a route do not match, the gateway continues with the next one, across
levels.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from apisix_ingress.explain.expressions import evaluate
from apisix_ingress.explain.patterns import RouteFacts, fits_host, host_level, uri_level
from apisix_ingress.explain.request import ProbeRequest, Unknown

Outcome = Literal["wins", "loses", "may win"]


TIED = "it has the same host, uri and priority as"
"""Start of the reason of a candidate that only the order of ids separates from the winner."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A route whose host and uri match the request, through one of its hosts and one of its uris."""

    route: RouteFacts
    host: str
    uri: str
    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True)
class Missed:
    """A route that does not match, and the first reason."""

    route: RouteFacts
    reason: str


@dataclass(frozen=True, slots=True)
class Choice:
    """What the gateway does with a request.

    Attributes:
        candidates: In the order in which the gateway evaluates them.
        missed: Routes that do not match.
    """

    candidates: tuple[Candidate, ...]
    missed: tuple[Missed, ...]

    @property
    def winner(self) -> Candidate | None:
        """The route that handles the request, as far as known; None: 404."""
        return next((found for found in self.candidates if found.outcome == "wins"), None)

    @property
    def is_certain(self) -> bool:
        """Whether all candidates before the winner can be evaluated."""
        return all(found.outcome != "may win" for found in self.candidates)


@dataclass(frozen=True, slots=True)
class _Fit:
    """How well one host and uri of a route match; smaller sorts first."""

    route: RouteFacts
    host: str
    uri: str
    rank: tuple[int, int, int, int, int, int, str]


def choose(request: ProbeRequest, routes: Iterable[RouteFacts]) -> Choice:
    """Evaluate the routes in the gateway's order, with a reason for each."""
    fits: list[_Fit] = []
    missed: list[Missed] = []
    for route in routes:
        best = _best_fit(route, request.host, request.path)
        if best is None:
            missed.append(Missed(route, _why_no_candidate(route, request)))
        else:
            fits.append(best)
    fits.sort(key=lambda fit: fit.rank)
    return Choice(tuple(_judge(fits, request)), tuple(missed))


def in_order(host: str, path: str, routes: Iterable[RouteFacts]) -> list[RouteFacts]:
    """Return the routes that match a host and path, in the order in which the gateway evaluates them."""
    fits = [fit for route in routes if (fit := _best_fit(route, host, path)) is not None]
    return [fit.route for fit in sorted(fits, key=lambda fit: fit.rank)]


def _judge(fits: list[_Fit], request: ProbeRequest) -> Iterator[Candidate]:
    winner: _Fit | None = None
    for fit in fits:
        holds, reason = check(fit.route, request)
        if holds is False:
            yield Candidate(fit.route, fit.host, fit.uri, "loses", reason)
        elif winner is not None:
            yield Candidate(fit.route, fit.host, fit.uri, "loses", _why_behind(fit, winner))
        elif holds is None:
            yield Candidate(fit.route, fit.host, fit.uri, "may win", reason)
        else:
            winner = fit
            yield Candidate(fit.route, fit.host, fit.uri, "wins", _why_first(fit))


def _best_fit(route: RouteFacts, host: str, path: str) -> _Fit | None:
    return min(_fits(route, host, path), key=lambda fit: fit.rank, default=None)


def _fits(route: RouteFacts, asked_host: str, path: str) -> Iterator[_Fit]:
    if route.body.get("status", 1) == 0:
        return
    hosts = [(level, host) for host in route.hosts if (level := host_level(host, asked_host)) is not None]
    if not hosts:  # the paths of other hosts are not compared
        return
    uris = [(level, uri) for uri in route.uris if (level := uri_level(uri, path)) is not None]
    for of_host, host in hosts:
        for of_uri, uri in uris:
            rank = (*of_host, *of_uri, -route.priority, route.order, route.id)
            yield _Fit(route, host, uri, rank)


def check(route: RouteFacts, request: ProbeRequest) -> tuple[bool | None, str]:
    """Return whether everything beyond host and uri matches; None if unknown."""
    methods = route.body.get("methods") or ()
    if methods and request.method not in methods:
        return False, f"its methods are {', '.join(methods)}, the request's is {request.method}"
    addresses = [route.body["remote_addr"]] if "remote_addr" in route.body else route.body.get("remote_addrs") or ()
    verdict = evaluate(route.body.get("vars") or (), request.variable)
    if verdict.holds is False:
        return False, f"vars: {verdict.reason}"
    if addresses:
        try:
            shown = request.variable("remote_addr")
        except Unknown as error:
            return None, f"its client must be in {', '.join(addresses)}; {error}"
        if not _is_in(str(shown), addresses):
            return False, f"its client must be in {', '.join(addresses)}, but the client is {shown}"
    if "filter_func" in route.body:
        return None, "its filter_func is Lua code, which only the gateway can run"
    return verdict.holds, f"vars: {verdict.reason}"


def _is_in(address: str, networks: Iterable[str]) -> bool:
    try:
        parsed = ipaddress.ip_address(address)
        return any(parsed in ipaddress.ip_network(network, strict=False) for network in networks)
    except ValueError:
        return False


def _why_no_candidate(route: RouteFacts, request: ProbeRequest) -> str:
    if route.body.get("status", 1) == 0:
        return "it is disabled (status 0)"
    if not fits_host(route, request.host):
        return f"its host is {', '.join(route.hosts)}, the request's is {request.host or 'none'}"
    return f"its uri is {', '.join(route.uris)}, the request's path is {request.path}"


def _why_behind(fit: _Fit, winner: _Fit) -> str:
    if fit.rank[:2] != winner.rank[:2]:
        return f"its host ({fit.host or 'any'}) is less specific than {winner.host or 'any'}"
    if fit.rank[2] != winner.rank[2]:
        return f"its uri {fit.uri} is a prefix, {winner.uri} is the exact path"
    if fit.rank[3] != winner.rank[3]:
        return f"its uri {fit.uri} is a shorter prefix than {winner.uri}"
    if fit.route.priority != winner.route.priority:
        return f"its priority {fit.route.priority} is lower than {winner.route.priority}"
    return f"{TIED} {winner.route.id}, which comes first (after a restart: the smaller id)"


def _why_first(fit: _Fit) -> str:
    host = f"host {fit.host}" if fit.host else "any host"
    return f"{host}, uri {fit.uri}, priority {fit.route.priority}"
