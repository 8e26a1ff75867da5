"""What all providers of the Gateway API share: a route belongs to this controller if one of its Gateways does."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

from apisix_ingress.model.json import list_in, mapping_in
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from providers.core.base import Provider
from providers.core.offload import is_large
from translation.core.outcome import Outcome
from translation.gateway.capabilities import is_pending
from translation.gateway.entry.owned import has_parent_of_ours

MANY = 64
"""Number of records of a route above which it is translated in a thread."""


class GatewayApiProvider(Provider[CustomObject]):
    """A provider of a kind whose objects do not name an ingress class."""

    @abstractmethod
    def is_ours(self, item: CustomObject, view: View) -> bool:
        """Return whether an object belongs to a Gateway of this controller."""

    def evaluate(self, key: ObjectKey, item: CustomObject | None, view: View) -> Outcome:
        """Return the outcome of the translation for a key, before policies."""
        outcome = super().evaluate(key, item, view)
        if outcome.assessment is not None and is_pending(view):
            return outcome._replace(assessment=replace(outcome.assessment, is_pending=True))
        return outcome


class RouteProvider(GatewayApiProvider):
    """A provider of one route kind."""

    def takes_long(self, key: ObjectKey) -> bool:
        """Return whether a route is large, or has many records: one for each match at each listener."""
        item = self._world.stores[self.kind].get(key)
        if not isinstance(item, CustomObject):
            return False
        rules = map(mapping_in, list_in(item.spec.get("rules")))
        matches = sum(max(1, len(list_in(rule.get("matches")))) for rule in rules)
        return is_large(item) or matches * self._listeners(item) > MANY

    def _listeners(self, item: CustomObject) -> int:
        """Return the number of listeners of the parents of a route."""
        parents = {
            (str(each.get("kind", "Gateway")), str(each.get("namespace") or item.meta.namespace), str(each.get("name")))
            for each in map(mapping_in, list_in(item.spec.get("parentRefs")))
        }
        stores = (self._world.stores.get(kind) for kind, _, _ in parents)
        found = (store.get(ObjectKey(*parent)) for store, parent in zip(stores, parents, strict=True) if store)
        return sum(len(list_in(each.spec.get("listeners"))) for each in found if isinstance(each, CustomObject))

    def is_ours(self, item: CustomObject, view: View) -> bool:
        """Return whether a route names a Gateway of this controller, or a ListenerSet of one."""
        return has_parent_of_ours(item, view, self._options)
