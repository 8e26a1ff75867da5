"""Triggers status updates of objects with a new report, and of objects whose records changed their state.

This is the only path from a gateway's response to a condition: see "From a rejected record to a condition" in
docs/architecture.md. `kube/status/writer.py` decides when and what is written.
"""

from __future__ import annotations

from typing import Protocol

from apisix_ingress.gateway.sync.observer import RecordState, SyncObserver
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.kinds.table import has_status
from providers.cluster_config import ClusterConfigProvider
from providers.status.conditions import Conditions

_OWN_FAILURES = ("rejected", "waiting")
"""States of a record with a cause of its own, unlike an outage of the cluster."""


class StatusUpdater(Protocol):
    """Keeps the status of objects up to date."""

    def wake(self, key: ObjectKey, *, urgent: bool = False) -> None:
        """Check the status of an object soon; an urgent one before others."""


class StatusTrigger(SyncObserver):
    """Queues the status of objects. Failures are urgent: thousands of successes do not delay them.

    Args:
        conditions: Finds the objects that depend on a record.
        status: Receives the objects.
    """

    def __init__(self, conditions: Conditions, status: StatusUpdater) -> None:
        self._conditions = conditions
        self._status = status
        self._broken: set[ObjectKey] = set()
        """Hosts with problems that their Ingresses report."""
        self._last: dict[tuple[str, RecordKey], RecordState] = {}

    def reported(self, owner: ObjectKey) -> None:
        """Queue an object that was translated, and the Ingresses of a host that has problems, or had some before."""
        is_broken = self._conditions.is_broken(owner)
        self._status.wake(owner, urgent=is_broken)
        named = list(self._conditions.ingresses_of(owner)) if is_broken or owner in self._broken else []
        for each in named:
            self._status.wake(each, urgent=is_broken)
        if named and is_broken:
            self._broken.add(owner)
        else:
            self._broken.discard(owner)

    def outcome(self, cluster: str, key: RecordKey, state: RecordState) -> None:
        """Queue the owners of a record and the objects waiting for it; claimants only if its state changed.

        Owners without a status are queued like claimants: a check of them could only send an Event about the state.
        """
        waiting = self._conditions.take_waiting(key)
        owners = self._conditions.owners(key)
        if not owners:
            self._last.pop((cluster, key), None)
            return
        before, self._last[cluster, key] = self._last.get((cluster, key)), state
        changed = before != state
        woken = self._conditions.interested(key) if changed else [each for each in owners if has_status(each.kind)]
        # Many Ingresses may share a host. While a record is pending, those whose condition needs it are waiting for it.
        failed = changed and any(each is not None and each.kind in _OWN_FAILURES for each in (before, state))
        named = self._conditions.ingresses(key) if failed else ()
        for owner in dict.fromkeys((*woken, *named, *waiting)):
            self._status.wake(owner, urgent=state.kind == "rejected")

    def compared(self, cluster: str, ok: bool) -> None:
        """Queue the object that configures the cluster."""
        self._wake_config(cluster)

    def breaker(self, cluster: str, is_open: bool) -> None:
        """Queue the object that configures the cluster."""
        self._wake_config(cluster)

    def _wake_config(self, cluster: str) -> None:
        self._status.wake(ObjectKey(ClusterConfigProvider.kind, "", cluster))
