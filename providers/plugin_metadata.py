"""The ConfigMap with plugin metadata: translated when it changes, regardless of the labels of its namespace."""

from __future__ import annotations

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import ConfigMap
from apisix_ingress.state.view import View
from providers.core.base import Provider
from translation.core.outcome import NOT_SERVED, Outcome
from translation.plugin_metadata import translate_plugin_metadata


class PluginMetadataProvider(Provider[ConfigMap]):
    """Owns plugin metadata; ignores every other ConfigMap."""

    kind = "ConfigMap"

    def evaluate(self, key: ObjectKey, item: ConfigMap | None, view: View) -> Outcome:
        """Return the outcome for the ConfigMap that the settings name."""
        return NOT_SERVED if item is None or key != self._options.plugin_metadata else self.translate(item, view)

    def translate(self, item: ConfigMap, view: View) -> Outcome:
        """Return the plugin metadata of the ConfigMap."""
        return translate_plugin_metadata(item, view, self._options)
