"""The state of the running controller as properties, for health checks, status page, webhook and metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from apisix_ingress.gateway.sync.observer import Outage
from apisix_ingress.observability.http_server import Readiness
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.state.world import World
from apisix_ingress.wiring.clusters import GatewayClusters
from apisix_ingress.wiring.sources import Source
from apisix_ingress.wiring.standby_probe import StandbyProbe
from translation.core.options import Options


@dataclass(frozen=True, slots=True)
class ControllerState:
    """The current state of the controller; reading it changes nothing.

    Attributes:
        world: Stores, desired records and reports.
        options: The options of translations.
        clusters: Every gateway cluster.
        source: The source of objects, and the election.
        standby: What a follower knows about the gateways.
        clock: The clock.
        identity: Of this process.
        ready: Set once every store is complete and every object was translated: writing may begin.
    """

    world: World
    options: Options
    clusters: GatewayClusters
    source: Source
    standby: StandbyProbe
    clock: Clock
    identity: str
    ready: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_ready(self) -> bool:
        """Whether this replica is able to lead."""
        return self.ready.is_set()

    @property
    def leads(self) -> bool:
        """Whether this replica leads."""
        return self.source.election.leading

    @property
    def leader(self) -> str:
        """The identity of the last observed leader, or empty."""
        return self.identity if self.leads else self.source.election.holder

    @property
    def problems(self) -> Mapping[str, str]:
        """Why objects are incomplete or outdated: what is read → the reason."""
        return self.source.problems()

    @property
    def watches(self) -> Mapping[str, float]:
        """Kind → seconds since the API server last sent anything about it."""
        return self.source.watches()

    @property
    def outages(self) -> Mapping[str, Outage]:
        """Unreachable cluster → its outage. Only a leader knows: a follower does not probe."""
        syncs = self.clusters.syncs if self.leads else ()
        return {sync.name: sync.outage for sync in syncs if sync.outage is not None}

    @property
    def refused(self) -> Mapping[str, str]:
        """Cluster that rejects the admin key of this follower → the error."""
        return self.standby.refused

    def unhealthy_gateways(self) -> str | None:
        """Return the clusters that this replica cannot, or as the leader could not, write to, with reasons; or None."""
        outages = {name: outage.headline for name, outage in self.outages.items()}
        found = outages if self.leads else self.refused
        return "; ".join(f"cluster {name}: {why}" for name, why in sorted(found.items())) or None

    def incomplete_objects(self) -> str | None:
        """Return why objects are incomplete or outdated; None if they are not."""
        return "; ".join(f"{what}: {why}" for what, why in self.problems.items()) or None

    def untranslated(self) -> str | None:
        """Return a reason if not every object was translated yet, else None."""
        return None if self.is_ready else "not every object was translated yet"

    def readiness(self) -> Readiness:
        """Return the checks of /readyz: a follower is ready as soon as it is able to lead; gateways are only a note."""
        readiness = Readiness()
        readiness.add("objects", self.incomplete_objects)
        readiness.add("translated", self.untranslated)
        readiness.add_note("clusters", self.unhealthy_gateways)
        return readiness
