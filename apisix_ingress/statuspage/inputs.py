"""The inputs of the page: the live parts of the program behind a few read-only methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from apisix_ingress.gateway.sync.observer import Outage
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
        """Since when and why it is not written to; None while it is."""

    @property
    def audit_failure(self) -> str:
        """Why it could not be compared the last time; empty: it could."""

    @property
    def version(self) -> str:
        """What the gateway called itself when it was read last, or empty."""

    @property
    def backlog(self) -> int:
        """How many records are queued for sync."""

    def holds(self, key: RecordKey) -> bool:
        """Return whether the gateway is known to have the record, in whatever version."""


class ControllerInfo(Protocol):
    """The controller, as far as the page looks at it."""

    @property
    def leads(self) -> bool:
        """Whether this replica leads."""

    @property
    def leader(self) -> str:
        """The identity of the leader that was seen last; empty: none was."""

    @property
    def is_ready(self) -> bool:
        """Whether every object was translated once."""

    @property
    def watches(self) -> Mapping[str, float]:
        """Kind → seconds since the API server last sent anything about it."""

    @property
    def problems(self) -> Mapping[str, str]:
        """What keeps objects from being up to date: what is read → why."""

    @property
    def refused(self) -> Mapping[str, str]:
        """Cluster that rejects the admin key of this replica, which follows → the error."""


@dataclass(frozen=True, slots=True)
class PageInputs:
    """What the page is made from.

    Attributes:
        world: Stores, desired records, reports; only read.
        options: What objects are translated with.
        clusters: Every gateway cluster.
        journal: What happened in them.
        clock: Where time comes from.
        identity: Of this process; another one after a restart.
        version: Of the controller.
        controller: Who leads, and what is wrong now.
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
        """The revision of the journal; the beginning and the end of terms are noted in it here, and only here."""
        self.journal.stands((self.controller.leads, *(cluster.taken_over for cluster in self.clusters)))
        return self.journal.revision

    def outage(self, cluster: PageCluster) -> Outage | None:
        """Return the outage of a cluster; None while there is none, and where another replica has to find out."""
        return cluster.outage if self.controller.leads else None
