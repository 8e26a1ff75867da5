"""ApisixClusterConfig: translated when it, or an ApisixGlobalRule with a plugin of it, changes."""

from __future__ import annotations

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kube import CustomObject
from apisix_ingress.state.view import View
from providers.base import Provider
from translation.cluster_config import translate_cluster_config
from translation.result import Translation


class ClusterConfigProvider(Provider[CustomObject]):
    """Owns the global rules with the monitoring of gateway clusters; an object of another name is not ours."""

    kind = "ApisixClusterConfig"

    def evaluate(self, key: ObjectKey, item: CustomObject | None, view: View) -> Translation | None:
        """Return the translation of an object that is named like a gateway cluster."""
        return super().evaluate(key, item, view) if key.name in self._options.clusters else None

    def translate(self, item: CustomObject, view: View) -> Translation:
        """Return the global rule of an ApisixClusterConfig."""
        return translate_cluster_config(item, view, self._options)
