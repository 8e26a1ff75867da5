"""ApisixRoute: translated when it or anything it refers to changes."""

from __future__ import annotations

from apisix_ingress.model.objects import CustomObject
from providers.core.base import Provider


class RouteProvider(Provider[CustomObject]):
    """Owns routes and stream routes; claims upstreams."""

    kind = "ApisixRoute"
