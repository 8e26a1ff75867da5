"""ApisixGlobalRule: translated when it, a Secret it takes values from, or another one with a plugin of it, changes."""

from __future__ import annotations

from apisix_ingress.model.objects import CustomObject
from providers.core.base import Provider


class GlobalRuleProvider(Provider[CustomObject]):
    """Owns global rules."""

    kind = "ApisixGlobalRule"
