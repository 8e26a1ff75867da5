"""Service: owns the upstreams that routes claim, so that an endpoint change takes one translation and one write."""

from __future__ import annotations

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import Service
from apisix_ingress.state.view import View
from providers.core.base import Provider
from translation.core.outcome import NOT_SERVED, Outcome
from translation.service import translate_service


class EndpointsProvider(Provider[Service]):
    """Owns the upstreams generated from Services, their endpoints and their settings.

    A Service without claims is not translated. A deleted Service that is still claimed keeps its upstreams, without
    nodes.
    """

    kind = "Service"
    workers = 4
    urgent = True
    names_hosts = False

    def concerns(self, key: ObjectKey) -> bool:
        """Return whether a Service is claimed, or was: at a start, Services are listed before routes claim them."""
        world = self._world
        return world.claims.is_target(key) or key in world.reports or bool(world.desired.of_owner(key))

    def evaluate(self, key: ObjectKey, item: Service | None, view: View) -> Outcome:
        """Return the upstreams for the claims on a Service, whether or not the Service exists."""
        return translate_service(key, item, view, self._options) if view.claims_on(key) else NOT_SERVED

    def translate(self, item: Service, view: View) -> Outcome:
        """Return the upstreams of an existing Service."""
        return translate_service(item.meta.key, item, view, self._options)
