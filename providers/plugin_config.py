"""ApisixPluginConfig: translated when it or a Secret it uses changes. Routes refer to it by id only."""

from __future__ import annotations

from apisix_ingress.model.objects import CustomObject
from providers.core.base import Provider


class PluginConfigProvider(Provider[CustomObject]):
    """Owns plugin configs."""

    kind = "ApisixPluginConfig"
