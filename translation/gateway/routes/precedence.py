"""Precedence: the priority of a record, so that a gateway tries matches in the order of the Gateway API.

If matches are equal, the oldest route wins, then the first by namespace and name, then the first match in it. How
many routes are older is counted by an index, so a change of a route translates only the routes that it precedes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from apisix_ingress.model.keys import IndexKey
from apisix_ingress.model.kinds.indexes import MATCHER_INDEX
from apisix_ingress.model.network.gateway_matches import (
    RankedMatch,
    match_value,
    parent_name,
)
from apisix_ingress.model.network.host_claims import wildcards_over
from apisix_ingress.model.objects import Age, CustomObject
from apisix_ingress.state.view import View, oldest
from translation.gateway.entry.listeners import Listener
from translation.gateway.ownership import GatewayHosts

KINDS = ("HTTPRoute", "GRPCRoute")

MOST_OLDER = 64
"""Maximum number of older routes with the same match that are ordered; beyond it, ids decide."""

_PER_ROUTE = 128
"""Maximum number of matches of a route (CRD)."""

_STEP = (MOST_OLDER + 1) * _PER_ROUTE


def by_priority(
    obj: CustomObject,
    match: RankedMatch,
    position: int,
    hosts: Sequence[str],
    listener: Listener,
    *,
    owners: GatewayHosts,
    view: View,
) -> dict[int, list[str]]:
    """Return the hosts of a record by the priority that they require, usually a single one.

    Args:
        obj: The route.
        match: The match that the record is for.
        position: The number of equal matches that precede it in the route.
        hosts: The hosts for which the listener passes requests to the route.
        listener: The listener.
        owners: The hosts that other routes may use.
        view: Provides other routes.
    """
    found: dict[int, list[str]] = {}
    for host in hosts:
        ahead = _older(obj, match, host, listener, owners=owners, view=view)
        priority = (match.rank + 1) * _STEP - ahead * _PER_ROUTE - min(position, _PER_ROUTE - 1)
        found.setdefault(priority, []).append(host)
    return found


def _older(
    obj: CustomObject, match: RankedMatch, host: str, listener: Listener, *, owners: GatewayHosts, view: View
) -> int:
    """Return how many older routes have an equal match for a host at a listener, and may use the host."""
    ages: set[Age] = set()
    for kind in KINDS:
        for value in _values(match, host, listener):
            found = _ages(obj, IndexKey(kind, MATCHER_INDEX, value), view)
            usable = (age for age in found if not owners.refusal_of_route(age[1], listener.owner, host))
            ages.update(islice(usable, MOST_OLDER))
    return min(len(ages), MOST_OLDER)


def _values(match: RankedMatch, host: str, listener: Listener) -> Iterator[str]:
    """Yield the index values of routes with a match for the host: the host, and hosts that the listener narrows to it.

    Two routes that compete for a host read the same values, so that each counts the same routes.
    """
    parent = parent_name(*listener.owner)
    wider = (*wildcards_over(host), "") if host and host == listener.hostname else ()
    for each in dict.fromkeys((host, *wider)):
        yield match_value(parent, each, match.literal, match.rank)


def _ages(obj: CustomObject, index: IndexKey, view: View) -> Iterator[Age]:
    for item in oldest(view, CustomObject, index):
        if item.meta.age >= obj.meta.age:
            return
        yield item.meta.age
