"""Service: owns the upstreams that routes claim, so that a change of endpoints costs one translation and one write."""

from __future__ import annotations

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import Service
from apisix_ingress.state.view import View
from providers.core.base import Provider
from translation.core.result import Translation
from translation.service import translate_service


class EndpointsProvider(Provider[Service]):
    """Owns the upstreams made from Services, their endpoints and their settings.

    A Service that nobody claims costs nothing; one that is gone but claimed keeps its upstreams, without nodes.
    """

    kind = "Service"
    workers = 4
    urgent = True

    def evaluate(self, key: ObjectKey, item: Service | None, view: View) -> Translation | None:
        """Return the upstreams for the claims on a Service, whether or not it exists."""
        return translate_service(key, item, view, self._options) if view.claims_on(key) else None

    def translate(self, item: Service, view: View) -> Translation:
        """Return the upstreams of a Service that exists."""
        return translate_service(item.meta.key, item, view, self._options)
