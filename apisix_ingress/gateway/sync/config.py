"""What all sessions of one gateway cluster have in common."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from apisix_ingress.gateway.backend import ObservedRecord
from apisix_ingress.gateway.sync.observer import SyncObserver
from apisix_ingress.gateway.sync.ordering.exposure_order import ExposureOf
from apisix_ingress.gateway.sync.plan import Wanted
from apisix_ingress.model.exposure import Exposure
from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Record
from apisix_ingress.runtime.clock import Clock

Adopt = Callable[[str, Mapping[RecordKey, ObservedRecord]], Awaitable[None]]
"""Called with the name of a cluster and its records that are, or may be, owned; returns once ids follow them."""


class Closing(Protocol):
    """What is known about routes: how to refuse their requests if the gateway rejects them."""

    def closings(self, record: Record) -> Iterable[Record]:
        """Return the records that may replace a rejected one, the best one first; empty if none may."""

    def is_closed(self, body: FrozenJson) -> bool:
        """Return whether a record in a gateway only refuses requests, as closing records do."""

    def requests_of(self, body: FrozenJson) -> str:
        """Return which requests a record matches, for a message."""


def open_always(body: FrozenJson, config: FrozenJson | None) -> Exposure:
    """Return that a route serves every request."""
    return Exposure.OPEN


class NoClosing:
    """Nothing replaces a rejected record."""

    def closings(self, record: Record) -> Iterable[Record]:
        """Return nothing."""
        return ()

    def is_closed(self, body: FrozenJson) -> bool:
        """Return False."""
        return False

    def requests_of(self, body: FrozenJson) -> str:
        """Return nothing."""
        return ""


class CurrentNodes(Protocol):
    """The nodes of upstreams, as far as they are certain before everything has been translated."""

    async def wait_until_listed(self) -> bool:
        """Return, once what nodes depend on is listed, whether no cluster may have another address."""

    def changed(self, name: str, nodes: Sequence[JsonObject], upstreams: int) -> Sequence[Mapping[str, object]] | None:
        """Return the current nodes of an upstream; None if they have not changed, or are not certain.

        Args:
            name: The name of the upstream.
            nodes: Its nodes in the gateway.
            upstreams: The number of upstreams of its Service.
        """


async def adopt_nothing(cluster: str, held: Mapping[RecordKey, ObservedRecord]) -> None:
    """Leave ids as they are."""


def ignore_version(cluster: str, version: str) -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class SyncConfig:
    """The settings and collaborators of a cluster.

    Attributes:
        name: The cluster's name in the settings.
        wanted: The desired records.
        clock: Measures every wait.
        rng: Randomizes retries and checks.
        observer: Called with every outcome.
        concurrency: Maximum number of writes in flight.
        audit_interval: Seconds between two audits.
        check_interval: Seconds between two spot checks; 0: none.
        adopt: Makes ids follow what the cluster holds, before the first comparison.
        report_version: Called with the name of the cluster and the version that it reports, each time it is read.
        nodes: For the updates before everything has been translated (`early_updates`); None: there are none.
        closing: How to refuse the requests of a route that the gateway rejects.
        exposure: How much a route lets through, which determines the order of creations.
    """

    name: str
    wanted: Wanted
    clock: Clock
    rng: random.Random = field(default_factory=random.Random)
    observer: SyncObserver = field(default_factory=SyncObserver)
    concurrency: int = 16
    audit_interval: float = 60.0
    check_interval: float = 4.0
    adopt: Adopt = adopt_nothing
    report_version: Callable[[str, str], None] = ignore_version
    nodes: CurrentNodes | None = None
    closing: Closing = field(default_factory=NoClosing)
    exposure: ExposureOf = open_always
