"""ApisixProto: translated when it changes."""

from __future__ import annotations

from apisix_ingress.model.objects import CustomObject
from providers.core.base import Provider


class ProtoProvider(Provider[CustomObject]):
    """Owns Protobuf definitions."""

    kind = "ApisixProto"
