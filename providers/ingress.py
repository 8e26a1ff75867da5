"""Ingress: translated when it, or anything it refers to, changes."""

from __future__ import annotations

from apisix_ingress.model.kube import CustomObject
from apisix_ingress.state.view import View
from providers.base import Provider, Surroundings
from translation.result import Translation


class IngressProvider(Provider[CustomObject]):
    """Owns routes and the certificates of `spec.tls`; claims upstreams."""

    kind = "Ingress"

    def __init__(self, surroundings: Surroundings) -> None:
        super().__init__(surroundings)
        self._clock = surroundings.clock

    def translate(self, item: CustomObject, view: View) -> Translation:
        """Return the records and claims of an Ingress."""
        from translation.ingress import translate_ingress

        return translate_ingress(item, view, self._options, now=self._clock.now())
