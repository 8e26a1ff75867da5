"""ApisixClusterConfig: translated when it changes, or an ApisixGlobalRule that sets one of its plugins.

It can also override the Admin API address of its gateway cluster.
"""

from __future__ import annotations

from apisix_ingress.model.admin_address import AdminAddress
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from providers.core.base import Provider
from providers.core.deps import ProviderDeps
from translation.cluster_config import admin_address
from translation.core.outcome import NOT_SERVED, Outcome, Published


class ClusterConfigProvider(Provider[CustomObject]):
    """Owns the global rules for monitoring; ignores objects that are not named after a gateway cluster."""

    kind = "ApisixClusterConfig"

    def __init__(self, deps: ProviderDeps) -> None:
        super().__init__(deps)
        self._addresses: dict[str, AdminAddress] = {}

    def evaluate(self, key: ObjectKey, item: CustomObject | None, view: View) -> Outcome:
        """Return the outcome for an object that is named after a gateway cluster."""
        return super().evaluate(key, item, view) if key.name in self._options.clusters else NOT_SERVED

    def publish(self, key: ObjectKey, item: CustomObject | None, outcome: Outcome) -> None:
        """Publish an outcome, and move the cluster. An object that cannot be translated leaves the address as it is."""
        super().publish(key, item, outcome)
        if outcome is NOT_SERVED:
            self._move(key.name, None)
        elif item is not None and isinstance(outcome, Published):
            self._move(key.name, admin_address(item))

    def _move(self, cluster: str, address: AdminAddress | None) -> None:
        if address == self._addresses.get(cluster):
            return
        if address is None:
            del self._addresses[cluster]
        else:
            self._addresses[cluster] = address
        self._sink.cluster_moved(cluster, address)
