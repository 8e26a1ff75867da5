"""ApisixGlobalRule: translated when it, a Secret it uses, or another rule with one of its plugins changes."""

from __future__ import annotations

from apisix_ingress.model.objects import CustomObject
from providers.core.base import Provider


class GlobalRuleProvider(Provider[CustomObject]):
    """Owns global rules."""

    kind = "ApisixGlobalRule"
