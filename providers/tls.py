"""ApisixTls: translated when it, or one of its Secrets, changes, so that a renewed certificate goes out at once."""

from __future__ import annotations

from apisix_ingress.model.kube import CustomObject
from apisix_ingress.state.view import View
from providers.base import Provider, Surroundings
from translation.result import Translation
from translation.tls import translate_tls


class TlsProvider(Provider[CustomObject]):
    """Owns ssl records."""

    kind = "ApisixTls"

    def __init__(self, surroundings: Surroundings) -> None:
        super().__init__(surroundings)
        self._clock = surroundings.clock

    def translate(self, item: CustomObject, view: View) -> Translation:
        """Return the ssl record of an ApisixTls."""
        return translate_tls(item, view, self._options, now=self._clock.now())
