"""Pod: its labels select the subsets of an ApisixUpstream, its addresses say whose they are; without, it has ended.

A change goes ahead of everything else, so that the gateways drop a dead pod at once. Usually the EndpointSlice is
first: its change takes the direct path to the provider of the Service.
"""

from __future__ import annotations

from providers.core.dependency import DependencyProvider


class PodProvider(DependencyProvider):
    """Queues the owners whose translations read a Pod."""

    kind = "Pod"
    workers = 2
