"""The response that a client gets for a request, and the objects that name the host or path without being published.

`report` combines this with the gateway's choice. Inputs are plain data; the callers know objects and gateways.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from apisix_ingress.explain.patterns import RouteFacts, fits_host, fits_path
from apisix_ingress.model.json import FrozenJson, JsonObject

if TYPE_CHECKING:
    from apisix_ingress.explain.routing import Choice

MOST_CLAIMANTS, MOST_SIMILAR = 20, 3
"""Maximum number of listed objects and of suggested host names."""

MOST_HOSTS_COMPARED = 2_000
"""Maximum number of host names that a misspelled one is compared with; each comparison takes about 0.1 ms."""

_ANSWERING = frozenset(
    {
        "ai-proxy",
        "ai-proxy-multi",
        "aws-lambda",
        "azure-functions",
        "batch-requests",
        "fault-injection",
        "mocking",
        "openfunction",
        "openwhisk",
        "public-api",
        "redirect",
        "serverless-post-function",
        "serverless-pre-function",
    }
)
"""Plugins that may respond themselves, so that an upstream without nodes need not matter."""


@dataclass(frozen=True, slots=True)
class Unapplied:
    """A record that should exist but that the gateway does not have in this version.

    Attributes:
        body: The desired body.
        reason: Why the gateway does not have it.
        has_earlier: Whether the gateway has an earlier version of it.
    """

    body: FrozenJson
    reason: str
    has_earlier: bool = False


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


def answer(choice: Choice, route: JsonObject | None, should: JsonObject | None, asked: list[JsonObject]) -> JsonObject:
    """Return the response that a client gets.

    Args:
        choice: The gateway's choice among the routes that it has.
        route: The description of the route that answers.
        should: The description of the route that should answer but is not applied.
        asked: The objects that name the request's host, see `claims`.

    Returns:
        `status`: the HTTP status if the gateway itself responds with an error, otherwise None; `summary`: a sentence.
    """
    if not choice.is_certain:
        return _result(None, "the result depends on conditions that only the gateway can evaluate; see the notes")
    if route is None:
        return _result(404, _why_404(should, asked))
    who = _who(route)
    status, cause = _upstream_error(route)
    text = f"route {who} is chosen, but {cause}" if status else f"answered by route {who}"
    if should is not None and should["id"] == route["id"]:
        text += f", in an earlier version: {should['reason']}"
    elif should is not None:
        text += f"; route {_who(should)} should answer instead: {should['reason']}"
    return _result(status, text)


def _result(status: int | None, text: str) -> JsonObject:
    return {"status": status, "summary": f"{status}: {text}" if status else text}


def _why_404(should: JsonObject | None, asked: list[JsonObject]) -> str:
    if should is not None:
        return f"route {_who(should)} should answer, but the gateway does not have it: {should['reason']}"
    if asked and asked[0]["names_path"]:
        first = asked[0]
        return f"no route matches. {first['object']} matches this request but is not published: {first['reasons'][0]}"
    return "no route matches this request"


def _who(route: JsonObject) -> str:
    name = f" ({route['name']})" if route["name"] else ""
    return f"{route['id']}{name}" + (f" of {route['owner']}" if route["owner"] else "")


def _upstream_error(route: JsonObject) -> tuple[int | None, str]:
    """Return the status and cause if every upstream fails for lack of nodes."""
    if _ANSWERING.intersection((*route["plugins"], *route["global_plugins"])):
        return None, ""
    errors = list(_errors(route["upstreams"])) or [(503, "it has no upstream")]
    return (None, "") if None in errors else errors[0] or (None, "")


def _errors(upstreams: Iterable[JsonObject]) -> Iterator[tuple[int, str] | None]:
    """Yield what is wrong with each upstream; None if nothing is known to be wrong."""
    for upstream in upstreams:
        name = upstream["name"] or upstream["id"] or "of the route"
        if "missing" in upstream:
            yield 502, f"upstream {name} does not exist"
        elif upstream["nodes"] or "discovery" in upstream:
            yield None
        else:
            yield 503, f"upstream {name} has no nodes"
