"""Pod: its labels select the subsets of an ApisixUpstream, and its addresses identify the owner of an endpoint.

A Pod without addresses has terminated. Changes are urgent, so that gateways stop using a dead Pod immediately. Usually
the EndpointSlice changes first; its change goes directly to the provider of the Service.
"""

from __future__ import annotations

from providers.core.dependency import DependencyProvider


class PodProvider(DependencyProvider):
    """Queues the owners whose translations read a Pod."""

    kind = "Pod"
    workers = 2
