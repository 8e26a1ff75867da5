"""Attachments: the number of routes of each listener, known from translations, so Gateways need not read routes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from apisix_ingress.model.assessment import ListenerKey
from apisix_ingress.model.keys import ObjectKey


class Attachments:
    """Routes by listener."""

    def __init__(self) -> None:
        self._of: dict[ObjectKey, frozenset[ListenerKey]] = {}
        self._counts: Counter[ListenerKey] = Counter()

    def replace(self, route: ObjectKey, listeners: frozenset[ListenerKey]) -> frozenset[ObjectKey]:
        """Record the listeners of a route; return the Gateways and ListenerSets whose counts changed."""
        before = self._of.pop(route, frozenset())
        if not before and not listeners:
            return frozenset()
        if listeners:
            self._of[route] = listeners
        self._counts.update(listeners - before)
        for each in before - listeners:
            self._counts[each] -= 1
            if not self._counts[each]:
                del self._counts[each]
        return frozenset(each.owner for each in before ^ listeners)

    @property
    def counts(self) -> Mapping[ListenerKey, int]:
        """Listener → the number of attached routes."""
        return self._counts
