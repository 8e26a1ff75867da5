"""ApisixConsumerGroup: translated when it or a Secret it uses changes. Consumers refer to it by id only."""

from __future__ import annotations

from apisix_ingress.model.objects import CustomObject
from providers.core.base import Provider


class ConsumerGroupProvider(Provider[CustomObject]):
    """Owns consumer groups."""

    kind = "ApisixConsumerGroup"
