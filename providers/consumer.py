"""ApisixConsumer: translated when it, or a Secret with its credentials, changes."""

from __future__ import annotations

from apisix_ingress.model.objects import CustomObject
from providers.core.base import Provider


class ConsumerProvider(Provider[CustomObject]):
    """Owns consumers. What takes a credential back goes ahead, whoever else has much to write."""

    kind = "ApisixConsumer"
    urgent = True
