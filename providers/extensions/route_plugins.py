"""PluginConfig: translated when it or a Secret that it uses changes."""

from __future__ import annotations

from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from providers.gateway.base import GatewayApiProvider
from translation.core.outcome import Outcome


class RoutePluginsProvider(GatewayApiProvider):
    """Owns the plugin configs that filters of routes refer to."""

    kind = "PluginConfig"

    def translate(self, item: CustomObject, view: View) -> Outcome:
        """Return the plugin config."""
        from translation.gateway.extensions.route_plugins import translate_route_plugins

        return translate_route_plugins(item, view, self._options)

    def is_ours(self, item: CustomObject, view: View) -> bool:
        """Return True: a PluginConfig names neither a class nor a Gateway."""
        return True
