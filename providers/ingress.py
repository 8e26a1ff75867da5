"""Ingress: translated when it, or anything it refers to, changes."""

from __future__ import annotations

from apisix_ingress.model.objects import CustomObject
from providers.core.base import Provider


class IngressProvider(Provider[CustomObject]):
    """Owns routes and the certificates of `spec.tls`; claims upstreams."""

    kind = "Ingress"
