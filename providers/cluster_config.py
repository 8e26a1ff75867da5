"""ApisixClusterConfig: translated when it, or an ApisixGlobalRule with a plugin of it, changes; moves its cluster."""

from __future__ import annotations

from apisix_ingress.model.admin_address import AdminAddress
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from providers.core.base import Provider, ProviderDeps
from translation.core.result import Translation


class ClusterConfigProvider(Provider[CustomObject]):
    """Owns the global rules with the monitoring of gateway clusters; an object of another name is not ours."""

    kind = "ApisixClusterConfig"
    offloads = False

    def __init__(self, surroundings: ProviderDeps) -> None:
        super().__init__(surroundings)
        self._addresses: dict[str, AdminAddress] = {}

    def evaluate(self, key: ObjectKey, item: CustomObject | None, view: View) -> Translation | None:
        """Return the translation of an object that is named like a gateway cluster."""
        return super().evaluate(key, item, view) if key.name in self._options.clusters else None

    def reconcile(self, key: ObjectKey) -> None:
        """Make desired records and the address of the cluster follow the object."""
        super().reconcile(key)
        item: CustomObject | None = self._world.stores[self.kind].get(key)
        report = self._world.reports.get(key)  # there is none for an object that is not ours
        if report is None or item is None:
            self._move(key.name, None)
        elif all(problem.severity != "error" for problem in report.problems):
            from translation.cluster_config import admin_address

            self._move(key.name, admin_address(item))
        # What can't be translated changes nothing.

    def _move(self, cluster: str, address: AdminAddress | None) -> None:
        if address == self._addresses.get(cluster):
            return
        if address is None:
            del self._addresses[cluster]
        else:
            self._addresses[cluster] = address
        self._sink.cluster_moved(cluster, address)
