"""Carries desired records from the providers to every gateway cluster, and reports to whoever shows them.

This is the only way from a translation to the sync engines: see "From an endpoint to a write" in docs/architecture.md.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from apisix_ingress.gateway.sync.cluster_sync import ClusterSync
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.records import Former
from providers.core.base import ChangeSink


class ReportListener(Protocol):
    """Shows what the report of an object says."""

    def reported(self, owner: ObjectKey) -> None:
        """Note that an object has a new report."""


class Fanout(ChangeSink):
    """Passes the results of translations on; each call returns at once.

    Args:
        clusters: The sync engine of every gateway cluster.
        listeners: Get the owner of each new report.
    """

    def __init__(self, clusters: Sequence[ClusterSync], listeners: Sequence[ReportListener]) -> None:
        self._clusters = clusters
        self._listeners = listeners

    def mark_dirty(self, keys: Collection[RecordKey], *, urgent: bool, former: Former, since: float) -> None:
        """Mark the records in every cluster."""
        for cluster in self._clusters:
            cluster.mark_dirty(keys, urgent=urgent, former=former, since=since)

    def reported(self, owner: ObjectKey) -> None:
        """Pass a new report on."""
        for listener in self._listeners:
            listener.reported(owner)
