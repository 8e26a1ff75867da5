"""The inputs of the page: read-only access to the running program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from apisix_ingress.gateway.sync.observer import HEADLINES, Outage, OutageReason
from apisix_ingress.model.json import FrozenJson
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.state.world import World
from apisix_ingress.statuspage.history import History
from providers.status.conditions import Cluster
from translation.core.options import Options


class PageCluster(Cluster, Protocol):
    """The parts of a gateway cluster that the page shows."""

    @property
    def outage(self) -> Outage | None:
        """The start and cause of an outage; None without one."""

    @property
    def audit_failure(self) -> str:
        """Why the last comparison failed; empty if it succeeded."""

    @property
    def version(self) -> str:
        """The name and version in the gateway's last response, or empty."""

    @property
    def backlog(self) -> int:
        """How many records are queued for sync."""

    def holds(self, key: RecordKey) -> bool:
        """Return whether the gateway is known to have the record in any version."""

    def body_of(self, key: RecordKey) -> FrozenJson | None:
        """Return the body that the gateway is known to have of a record; None without one."""

    def kept_routes(self) -> Iterable[tuple[RecordKey, FrozenJson]]:
        """Yield key and body of the routes that it has though they are not desired: their objects have errors."""


class ControllerInfo(Protocol):
    """The parts of the controller that the page shows."""

    @property
    def leads(self) -> bool:
        """Whether this replica leads."""

    @property
    def leader(self) -> str:
        """The identity of the last observed leader, or empty."""

    @property
    def is_ready(self) -> bool:
        """Whether every object has been translated."""

    @property
    def watches(self) -> Mapping[str, float]:
        """Kind → seconds since the API server last sent anything about it."""

    @property
    def problems(self) -> Mapping[str, str]:
        """Why objects are outdated: what is read → the reason."""

    @property
    def refused(self) -> Mapping[str, str]:
        """Cluster that rejects the admin key of this follower → the error."""


@dataclass(frozen=True, slots=True)
class ShownOutage:
    """An outage as the page shows it; `since` is None if it is not known."""

    reason: OutageReason
    cause: str
    since: datetime | None

    @property
    def headline(self) -> str:
        """The outage in one line."""
        since = f" since {self.since:%Y-%m-%dT%H:%M:%SZ}" if self.since is not None else ""
        return f"{HEADLINES[self.reason]}{since}: {self.cause}"


@dataclass(frozen=True, slots=True)
class PageInputs:
    """The inputs of the page.

    Attributes:
        world: Stores, desired records, reports; only read.
        options: The options of translations.
        clusters: Every gateway cluster.
        journal: Their history.
        clock: The clock.
        identity: Of this process; a new one after a restart.
        version: Of the controller.
        controller: The leader, and current problems.
    """

    world: World
    options: Options
    clusters: Sequence[PageCluster]
    journal: History
    clock: Clock
    identity: str
    version: str
    controller: ControllerInfo

    @property
    def revision(self) -> int:
        """The revision of the history; only this property records the start and end of terms there."""
        self.journal.stands((self.controller.leads, *(cluster.taken_over for cluster in self.clusters)))
        return self.journal.revision

    def outage(self, cluster: PageCluster) -> ShownOutage | None:
        """Return the outage of a cluster; None without one, or if this replica does not lead.

        It has no time if this replica has never read the cluster as leader: the outage may be older than the term.
        """
        found = cluster.outage if self.controller.leads else None
        return ShownOutage(found.reason, found.cause, found.since if cluster.taken_over else None) if found else None
