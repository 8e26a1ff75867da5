"""The words for states and severities: one list each, for the page, the commands, JSON documents, metrics and docs."""

from __future__ import annotations

from typing import Literal, get_args

Severity = Literal["critical", "error", "degraded", "warning"]
"""critical: a whole gateway cluster, or the API server. error: requests fail, or nothing new is published. degraded: in
effect in part. warning: in effect, but should be changed."""

SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""The most urgent first."""

RecordStatus = Literal["applied", "unknown", "pending", "waiting", "partial", "unreachable", "rejected"]
"""The state of a record. applied: every gateway cluster has it as desired. unknown: not compared, or the cluster that
has it does not respond. pending: queued or in flight. waiting: for another record. partial: applied in some clusters.
unreachable: it is to be written to a cluster that does not respond. rejected: by a gateway."""

RECORD_STATUSES: tuple[RecordStatus, ...] = get_args(RecordStatus)
"""The best first."""

HostStatus = Literal[
    "not used", "redirect", "live", "unknown", "pending", "waiting", "rejected", "partial", "not published", "closed"
]
"""The state of a host or a route. not used: other routes get its requests. redirect: every request is redirected. live:
its requests are answered. unknown: a gateway cluster does not respond, or was not compared. pending, waiting: as of its
record. rejected: by a gateway; an earlier version answers. partial: a part of its requests, clusters or objects. not
published: no version of an object is. closed: the gateway itself responds with an error."""

HOST_STATUSES: tuple[HostStatus, ...] = get_args(HostStatus)
"""The best first."""

HEALTHY_HOSTS: frozenset[HostStatus] = frozenset({"live", "redirect", "not used"})
"""States of hosts and routes that need no attention."""

FAILING_HOSTS: frozenset[HostStatus] = frozenset({"not published", "closed"})
"""States of hosts and routes in which requests fail."""

ObjectStatus = Literal["ok", "failed", "waiting", "pending"]
"""The state of an object. waiting: for a gateway that does not respond. pending: its records are being written."""

OBJECT_STATUSES: tuple[ObjectStatus, ...] = get_args(ObjectStatus)

ClusterStatus = Literal[
    "in sync",
    "writing",
    "starting",
    "incomplete",
    "audit failed",
    "unreachable",
    "failing",
    "unauthorized",
    "redirected",
    "admin key rejected",
    "not written by this replica",
]
"""The state of a gateway cluster."""

CLUSTER_STATUSES: tuple[ClusterStatus, ...] = get_args(ClusterStatus)

RETIRED = {"unreadable": "unreachable", "differs": "incomplete", "no endpoints": "closed"}
"""Word for the state of a cluster, a record or a host that earlier versions used → the word that replaces it."""
