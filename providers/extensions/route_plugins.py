"""PluginConfig: translated when it or a Secret that it uses changes."""

from __future__ import annotations

from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from providers.gateway.base import GatewayApiProvider


class RoutePluginsProvider(GatewayApiProvider):
    """Owns the plugin configs that filters of routes refer to."""

    kind = "PluginConfig"

    def is_ours(self, item: CustomObject, view: View) -> bool:
        """Return True: a PluginConfig names neither a class nor a Gateway."""
        return True
