"""ApisixUpstream: translated when it or a claim on it changes.

An ApisixUpstream that configures a Service is read by the provider of that Service.
"""

from __future__ import annotations

from apisix_ingress.model.objects import CustomObject
from providers.core.base import Provider


class UpstreamProvider(Provider[CustomObject]):
    """Owns the upstreams with external nodes or discovery that routes claim by name."""

    kind = "ApisixUpstream"
