"""Precedence: the priority of a record, so that a gateway asks matches in the order of the Gateway API.

Of equal matches that of the oldest route goes first, then by namespace and name, then the first one in the route. How
many routes are older is counted by an index, so a change of one route translates only the routes that it goes ahead of.
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

KINDS = ("HTTPRoute", "GRPCRoute")

MOST_OLDER = 64
"""Older routes with the same match that are ordered; beyond them the order is that of ids."""

_PER_ROUTE = 128
"""Matches that the CRD lets one route have."""

_STEP = (MOST_OLDER + 1) * _PER_ROUTE


def by_priority(
    obj: CustomObject, match: RankedMatch, position: int, hosts: Sequence[str], listener: Listener, view: View
) -> dict[int, list[str]]:
    """Return the hosts of a record by the priority that it has to have for them, mostly one.

    Args:
        obj: The route.
        match: The match that the record is for.
        position: How many matches of the route that are equal to it come first.
        hosts: The hosts for which the listener hands requests to the route.
        listener: The listener.
        view: Where other routes are looked up.
    """
    found: dict[int, list[str]] = {}
    for host in hosts:
        ahead = _older(obj, match, host, listener, view)
        priority = (match.rank + 1) * _STEP - ahead * _PER_ROUTE - min(position, _PER_ROUTE - 1)
        found.setdefault(priority, []).append(host)
    return found


def _older(obj: CustomObject, match: RankedMatch, host: str, listener: Listener, view: View) -> int:
    """Return how many older routes have an equal match for a host at a listener."""
    ages: set[Age] = set()
    for kind in KINDS:
        for value in _values(match, host, listener):
            ages.update(islice(_ages(obj, IndexKey(kind, MATCHER_INDEX, value), view), MOST_OLDER))
    return min(len(ages), MOST_OLDER)


def _values(match: RankedMatch, host: str, listener: Listener) -> Iterator[str]:
    """Yield where routes are that have a match for the host: under it, and what the listener's hostname narrows to it.

    Two routes that compete for a host look at the same values, so that each counts what is ahead of the other.
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
