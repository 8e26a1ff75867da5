"""ApisixConsumer: translated when it, or a Secret with its credentials, changes."""

from __future__ import annotations

from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from providers.core.base import Provider
from translation.core.result import Translation


class ConsumerProvider(Provider[CustomObject]):
    """Owns consumers. What takes a credential back goes ahead, whoever else has much to write."""

    kind = "ApisixConsumer"
    urgent = True

    def translate(self, item: CustomObject, view: View) -> Translation:
        """Return the consumer of an ApisixConsumer."""
        from translation.consumer import translate_consumer

        return translate_consumer(item, view, self._options)
