"""ApisixTls: translated when it or one of its Secrets changes, and when its certificate expires.

A renewed certificate is sent immediately, and one that was not renewed in time is reported.
"""

from __future__ import annotations

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import CustomObject
from providers.core.base import Provider
from translation.core.outcome import Outcome, records_of
from translation.tls import expiry_of


class TlsProvider(Provider[CustomObject]):
    """Owns ssl records."""

    kind = "ApisixTls"

    def publish(self, key: ObjectKey, item: CustomObject | None, outcome: Outcome) -> None:
        """Publish an outcome, and queue the object again for the time when its certificate expires."""
        super().publish(key, item, outcome)
        for record in records_of(outcome):
            left = (expiry_of(record.body["cert"]) - self._clock.now()).total_seconds()
            if left > 0:
                self.queue.add_after(key, left)
