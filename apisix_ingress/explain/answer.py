"""The response that a client gets as text, and the objects that name the host or path without being published.

`response` computes the response, and `report` combines both. Inputs are plain data; the callers know objects and
gateways.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from apisix_ingress.explain.patterns import RouteFacts, fits_host, fits_path
from apisix_ingress.explain.response import NO_HANDSHAKE, Response
from apisix_ingress.model.json import FrozenJson, JsonObject

if TYPE_CHECKING:
    from apisix_ingress.explain.routing import Choice

MOST_CLAIMANTS, MOST_SIMILAR = 20, 3
"""Maximum number of listed objects and of suggested host names."""

MOST_HOSTS_COMPARED = 2_000
"""Maximum number of host names that a misspelled one is compared with; each comparison takes about 0.1 ms."""


@dataclass(frozen=True, slots=True)
class Unapplied:
    """A record that should exist but that the gateway does not have in this version.

    Attributes:
        body: The desired body.
        reason: Why the gateway does not have it.
        has_earlier: Whether the gateway has an earlier version of it.
        is_closed: Whether the gateway has a record in its place that responds with 503.
    """

    body: FrozenJson
    reason: str
    has_earlier: bool = False
    is_closed: bool = False


CLOSED = {"plugins": {"fault-injection": {"abort": {"http_status": 503}}}}
"""What a record that takes the place of a rejected route does."""


@dataclass(frozen=True, slots=True)
class Claimant:
    """An object that names hosts and paths but has a problem or is not served.

    Attributes:
        owner: The object, e.g. `ApisixRoute default/web`.
        rules: Hosts and uris of each of its rules, in the gateway's format.
        reasons: What is wrong, one sentence each.
    """

    owner: str
    rules: Sequence[FrozenJson]
    reasons: Sequence[str]

    def distance(self, host: str, path: str) -> int | None:
        """Return 0 if a rule matches host and path, 1 if one matches the host only, None if none does."""
        rules = [RouteFacts("", rule) for rule in self.rules]
        of_host = [rule for rule in rules if fits_host(rule, host)]
        if not of_host:
            return None
        return 0 if any(fits_path(rule, path) for rule in of_host) else 1


def claims(claimants: Iterable[Claimant], host: str, path: str) -> tuple[list[JsonObject], int]:
    """Return the objects that name a request's host, with the same path first, and the number of omitted ones."""
    found = [(near, each) for each in claimants if (near := each.distance(host, path)) is not None]
    found.sort(key=lambda pair: (pair[0], pair[1].owner))
    shown: list[JsonObject] = [
        {"object": each.owner, "names_path": near == 0, "reasons": list(each.reasons)} for near, each in found
    ]
    return shown[:MOST_CLAIMANTS], max(0, len(shown) - MOST_CLAIMANTS)


def similar_hosts(host: str, routes: Iterable[RouteFacts]) -> list[str]:
    """Return hosts of routes with names similar to one that no route has."""
    known = {name: None for route in routes for name in route.hosts if name}
    return get_close_matches(host, list(known)[:MOST_HOSTS_COMPARED], n=MOST_SIMILAR, cutoff=0.8)


def answer(
    response: Response,
    choice: Choice,
    route: JsonObject | None,
    should: JsonObject | None,
    asked: list[JsonObject],
    *,
    is_verified: bool = True,
) -> JsonObject:
    """Return the response that a client gets.

    Args:
        response: The response, computed from the records.
        choice: The gateway's choice among the routes that it has.
        route: The description of the route that answers.
        should: The description of the route that should answer but is not applied.
        asked: The objects that name the request's host, see `claims`.
        is_verified: Whether it is known that the gateway has these records.

    Returns:
        `kind` (backend, redirect, reply, error; unknown if the route is not certain); `status`: the HTTP status if the
        gateway itself responds, otherwise None; `location`; `depends_on`: what may change the response; `summary`: a
        sentence.
    """
    if not choice.is_certain:
        text = "the result depends on conditions that only the gateway can evaluate; see the notes"
        return {"kind": "unknown", "status": None, "location": "", "depends_on": [], "summary": text}
    summary = _summary(response, route, should, asked)
    return {
        "kind": response.kind,
        "status": response.status,
        "location": response.location,
        "depends_on": list(response.depends_on),
        "summary": summary if is_verified else f"unknown; with the last known records of the gateway, {summary}",
    }


def unread(reason: str) -> JsonObject:
    """Return the answer of a gateway that could not be read."""
    known: JsonObject = {"kind": "unknown", "status": None, "location": "", "depends_on": [], "upstreams": []}
    return {**known, "summary": f"unknown: {reason}", "unverified": reason}


def _summary(response: Response, route: JsonObject | None, should: JsonObject | None, asked: list[JsonObject]) -> str:
    is_guard = route is not None and route["owner"].startswith(("Gateway ", "ListenerSet "))
    if response.status == 404 and (is_guard or (route is None and not response.plugin)):
        return f"404: {_why_404(should, asked)}"
    text = _sentence(response, _who(route) if route is not None else "")
    if route is None or should is None:
        return text
    if should["id"] == route["id"] and should["is_closed"]:
        return f"503: route {_who(route)} is closed: {should['reason']}"
    if should["id"] == route["id"]:
        return f"{text}, in an earlier version: {should['reason']}"
    return f"{text}; route {_who(should)} should answer instead: {should['reason']}"


def _sentence(response: Response, who: str) -> str:
    """Return the response in one sentence; `who` is the route, empty if a global rule answers."""
    by = f"route {who}" if who else "a global rule"
    status = "" if response.status is None else f"{response.status}: "
    match response.kind:
        case "backend":
            return f"{status}answered by {by}" + (f", and {response.cause}" if response.cause else "")
        case "redirect":
            return f"{response.status} → {response.location or 'a location that depends on the request'}, by {by}"
        case "reply":
            return f"{status}{by} is chosen, and {response.cause}"
    if response.cause.startswith((NO_HANDSHAKE.cause, "nginx")):
        return f"{status}{response.cause}"
    return f"{status}{by} is chosen, but {response.cause}"


def _why_404(should: JsonObject | None, asked: list[JsonObject]) -> str:
    if should is not None:
        what = "has an earlier version of it" if should["has_earlier"] else "does not have it"
        return f"route {_who(should)} should answer, but the gateway {what}: {should['reason']}"
    if asked and asked[0]["names_path"]:
        first = asked[0]
        return f"no route matches. {first['object']} matches this request but is not published: {first['reasons'][0]}"
    return "no route matches this request"


def _who(route: JsonObject) -> str:
    name = f" ({route['name']})" if route["name"] else ""
    return f"{route['id']}{name}" + (f" of {route['owner']}" if route["owner"] else "")
