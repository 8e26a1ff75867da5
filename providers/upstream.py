"""ApisixUpstream: translated when it, or a claim on it, changes.

As settings of a Service it is read by that Service's provider.
"""

from __future__ import annotations

from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from providers.core.base import Provider
from translation.core.result import Translation


class UpstreamProvider(Provider[CustomObject]):
    """Owns the upstreams with external nodes or discovery that routes claim by name."""

    kind = "ApisixUpstream"

    def translate(self, item: CustomObject, view: View) -> Translation:
        """Return the upstream of an ApisixUpstream, if a route claims it."""
        from translation.upstream import translate_upstream

        return translate_upstream(item, view, self._options)
