"""ApisixConsumer: translated when it or a Secret with its credentials changes."""

from __future__ import annotations

from apisix_ingress.model.objects import CustomObject
from providers.core.base import Provider


class ConsumerProvider(Provider[CustomObject]):
    """Owns consumers. Its writes are urgent, so that a credential is revoked without waiting behind other writes."""

    kind = "ApisixConsumer"
    urgent = True
