"""Passes changes of desired records from the providers to every gateway cluster, and reports to their listeners.

This is the only way from a translation to the sync engines: see "From an endpoint to a write" in docs/architecture.md.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from apisix_ingress.model.admin_address import AdminAddress
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.records import Former
from apisix_ingress.model.target import Target
from apisix_ingress.wiring.clusters import GatewayClusters
from providers.core.deps import ChangeSink


class ReportListener(Protocol):
    """Receives new reports of objects."""

    def reported(self, owner: ObjectKey) -> None:
        """Handle a new report of an object."""


class Fanout(ChangeSink):
    """Passes the results of translations on; calls return immediately.

    Args:
        clusters: Every gateway cluster.
        listeners: Receive the owner of each new report.
    """

    def __init__(self, clusters: GatewayClusters, listeners: Sequence[ReportListener]) -> None:
        self._clusters = clusters
        self._listeners = listeners

    def mark_dirty(self, keys: Collection[RecordKey], *, urgent: bool, former: Former, since: float) -> None:
        """Mark the records in every cluster."""
        for sync in self._clusters.syncs:
            sync.mark_dirty(keys, urgent=urgent, former=former, since=since)

    def reported(self, owner: ObjectKey) -> None:
        """Pass a new report on."""
        for listener in self._listeners:
            listener.reported(owner)

    def cluster_moved(self, name: str, address: AdminAddress | None) -> None:
        """Move a cluster to another address."""
        self._clusters.move(name, address)

    def target_changed(self, name: str, target: Target | None) -> None:
        """Connect the gateways of a GatewayProxy, or disconnect them."""
        self._clusters.set_target(name, target)
