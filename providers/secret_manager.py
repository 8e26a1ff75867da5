"""ApisixSecretManager: translated when it or its Secret changes."""

from __future__ import annotations

from apisix_ingress.model.objects import CustomObject
from providers.core.base import Provider


class SecretManagerProvider(Provider[CustomObject]):
    """Owns the records of secret managers."""

    kind = "ApisixSecretManager"
