"""What all providers of the Gateway API share: a route belongs to this controller if one of its Gateways does."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from providers.core.base import Provider
from providers.core.holds import holds_by_name
from providers.core.problems import unread
from translation.core.result import Translation
from translation.core.scope import in_scope


class GatewayApiProvider(Provider[CustomObject]):
    """A provider of a kind whose objects do not name an ingress class."""

    @abstractmethod
    def is_ours(self, item: CustomObject, view: View) -> bool:
        """Return whether an object belongs to a Gateway of this controller."""

    def evaluate(self, key: ObjectKey, item: CustomObject | None, view: View) -> Translation | None:
        """Return the translation for a key; None withdraws its records: the object is gone or is not handled."""
        if item is None or not in_scope(item.meta.namespace, view, self._options) or not self.is_ours(item, view):
            return None
        if (problem := unread(item)) and problem.severity == "error":
            return Translation(problems=(problem,), holds=holds_by_name(key))
        from translation.gateway.capabilities import is_pending

        found = self.translate(item, view)
        if found.assessment is not None and is_pending(view):
            return replace(found, assessment=replace(found.assessment, is_pending=True))
        return found


class RouteProvider(GatewayApiProvider):
    """A provider of one route kind."""

    def is_ours(self, item: CustomObject, view: View) -> bool:
        """Return whether a route names a Gateway of this controller, or a ListenerSet of one."""
        from translation.gateway.routes.attachment import has_parent_of_ours

        return has_parent_of_ours(item, view, self._options)
