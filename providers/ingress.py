"""Ingress: translated when it, or anything it refers to, changes."""

from __future__ import annotations

from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from providers.core.base import Provider, ProviderDeps
from translation.core.result import Translation


class IngressProvider(Provider[CustomObject]):
    """Owns routes and the certificates of `spec.tls`; claims upstreams."""

    kind = "Ingress"

    def __init__(self, surroundings: ProviderDeps) -> None:
        super().__init__(surroundings)
        self._clock = surroundings.clock

    def translate(self, item: CustomObject, view: View) -> Translation:
        """Return the records and claims of an Ingress."""
        from translation.ingress import translate_ingress

        return translate_ingress(item, view, self._options, now=self._clock.now())
