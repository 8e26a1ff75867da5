"""ListenerSet: assessed when it, its Gateway or anything it refers to changes."""

from __future__ import annotations

from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from providers.gateway.base import GatewayApiProvider
from translation.core.outcome import Outcome
from translation.gateway.entry.listener_set import translate_listener_set
from translation.gateway.entry.owned import our_gateway, parent_of


class ListenerSetProvider(GatewayApiProvider):
    """Owns no records: its Gateway owns them."""

    kind = "ListenerSet"

    def translate(self, item: CustomObject, view: View) -> Outcome:
        """Return the records and the assessment of the ListenerSet."""
        return translate_listener_set(item, view, self._options)

    def is_ours(self, item: CustomObject, view: View) -> bool:
        """Return whether a ListenerSet names a Gateway of this controller."""
        parent = parent_of(item)
        return parent is not None and our_gateway(parent, view, self._options) is not None
