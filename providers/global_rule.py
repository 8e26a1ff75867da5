"""ApisixGlobalRule: translated when it, a Secret it takes values from, or another one with a plugin of it, changes."""

from __future__ import annotations

from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from providers.core.base import Provider
from translation.core.result import Translation


class GlobalRuleProvider(Provider[CustomObject]):
    """Owns global rules."""

    kind = "ApisixGlobalRule"

    def translate(self, item: CustomObject, view: View) -> Translation:
        """Return the global rule of an ApisixGlobalRule."""
        from translation.global_rule import translate_global_rule

        return translate_global_rule(item, view, self._options)
