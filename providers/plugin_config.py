"""ApisixPluginConfig: translated when it, or a Secret it takes values from, changes. Routes hold its id only."""

from __future__ import annotations

from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from providers.core.base import Provider
from translation.core.result import Translation


class PluginConfigProvider(Provider[CustomObject]):
    """Owns plugin configs."""

    kind = "ApisixPluginConfig"

    def translate(self, item: CustomObject, view: View) -> Translation:
        """Return the plugin config of an ApisixPluginConfig."""
        from translation.plugin_config import translate_plugin_config

        return translate_plugin_config(item, view, self._options)
