"""GatewayProxy: translated when it changes, or a class, Gateway, Secret or Service that it depends on."""

from __future__ import annotations

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.model.target import Target
from apisix_ingress.state.view import View
from providers.core.base import Provider
from providers.core.deps import ProviderDeps
from translation.core.outcome import KeepLast, Outcome, Published


class GatewayProxyProvider(Provider[CustomObject]):
    """Owns the gateways that GatewayProxies describe, and the records of their plugins."""

    kind = "GatewayProxy"

    def __init__(self, deps: ProviderDeps) -> None:
        super().__init__(deps)
        self._targets: dict[ObjectKey, Target] = {}

    def is_ours(self, item: CustomObject, view: View) -> bool:
        """Return True: the classes and Gateways that refer to it determine whether it is used."""
        return True

    def publish(self, key: ObjectKey, item: CustomObject | None, outcome: Outcome) -> None:
        """Publish an outcome, and connect its gateways. They stay while the object cannot be translated."""
        super().publish(key, item, outcome)
        target = outcome.target if isinstance(outcome, Published) else None
        if isinstance(outcome, KeepLast) or target == self._targets.get(key):
            return
        if target is None:
            del self._targets[key]
        else:
            self._targets[key] = target
        self._sink.target_changed(key.place, target)
