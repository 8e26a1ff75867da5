"""The ConfigMap with plugin metadata: translated when it changes, regardless of the labels of its namespace."""

from __future__ import annotations

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import ConfigMap
from apisix_ingress.state.view import View
from providers.core.base import Provider
from translation.core.result import Translation


class PluginMetadataProvider(Provider[ConfigMap]):
    """Owns plugin metadata; ignores every other ConfigMap."""

    kind = "ConfigMap"

    def evaluate(self, key: ObjectKey, item: ConfigMap | None, view: View) -> Translation | None:
        """Return the translation of the ConfigMap that the settings name."""
        return self.translate(item, view) if item is not None and key == self._options.plugin_metadata else None

    def translate(self, item: ConfigMap, view: View) -> Translation:
        """Return the plugin metadata of the ConfigMap."""
        from translation.plugin_metadata import translate_plugin_metadata

        return translate_plugin_metadata(item, view, self._options)
