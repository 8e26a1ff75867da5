"""ApisixTls: translated when it, or one of its Secrets, changes, and when its certificate expires.

So a renewed certificate goes out at once, and one that was not renewed is told.
"""

from __future__ import annotations

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from providers.core.base import Provider, ProviderDeps
from translation.core.result import Translation


class TlsProvider(Provider[CustomObject]):
    """Owns ssl records."""

    kind = "ApisixTls"

    def __init__(self, surroundings: ProviderDeps) -> None:
        super().__init__(surroundings)
        self._clock = surroundings.clock

    def translate(self, item: CustomObject, view: View) -> Translation:
        """Return the ssl record of an ApisixTls."""
        from translation.tls import translate_tls

        return translate_tls(item, view, self._options, now=self._clock.now())

    def follow_up(self, key: ObjectKey, translation: Translation) -> None:
        """See that an ApisixTls is looked at again when its certificate expires."""
        from translation.tls import expiry_of

        for record in translation.records:
            left = (expiry_of(record.body["cert"]) - self._clock.now()).total_seconds()
            if left > 0:
                self.queue.add_after(key, left)
