"""Sources of objects, with the places for their status and the ledger: an API server, or files."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from apisix_ingress.gateway.ledger import Ledger, MemoryLedger
from apisix_ingress.kube.client.api import KubeApi
from apisix_ingress.kube.config_map_ledger import ConfigMapLedger
from apisix_ingress.kube.election.elector import LeaderElector
from apisix_ingress.kube.election.interface import Election, LeaseOptions, NoElection
from apisix_ingress.kube.informer.referenced import ReferencedObjects
from apisix_ingress.kube.informer.reflector import Reflector
from apisix_ingress.kube.manifests.source import ManifestSource
from apisix_ingress.kube.status.event_times import Failure, failing_since
from apisix_ingress.kube.status.events import EventRecorder
from apisix_ingress.kube.status.interface import GatewayLoad
from apisix_ingress.kube.status.writer import WRITE_SECONDS, StatusWriter
from apisix_ingress.model.condition import Condition
from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.resource import Resource
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.objects import KubeObject
from apisix_ingress.observability.metrics import Metrics
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.term import Term
from apisix_ingress.settings import ElectionSettings, KubernetesSettings
from apisix_ingress.state.namespaced_store import Fillable, portions
from apisix_ingress.state.store import Store
from apisix_ingress.state.world import World
from apisix_ingress.wiring.metric_adapters import ReflectorMetrics, StatusMetrics
from providers.status.conditions import Conditions
from providers.status.gateway_status import GatewayStatus
from providers.status.status_addresses import Addresses
from translation.core.options import Options

_DOCUMENTED = tuple(kind for kind, row in RESOURCES.items() if row.status == "document")
"""Kinds whose status is computed as a whole."""

FLUSHED = 100
"""Maximum number of queued statuses that a stop waits for: they take a fifth of a second."""


class Status(Protocol):
    """Writes the status of objects."""

    def wake(self, key: ObjectKey, *, urgent: bool = False) -> None:
        """Check the status of an object soon; urgent ones first."""

    def noticed(self, item: KubeObject) -> None:
        """Check a version of an object that differs from the previous one at most in its status."""

    def review(self) -> None:
        """Check, once all objects are known, for changes of class while no controller was running."""

    async def run(self, term: Term) -> None:
        """Write until cancelled."""

    async def failing_since(self) -> Mapping[Failure, datetime]:
        """Return since when objects without conditions fail, as far as earlier leaders reported it.

        Raises:
            KubeError: It cannot be read.
        """

    async def flush(self, seconds: float) -> bool:
        """Wait up to this many seconds until all queued statuses are written; return whether they are."""


class Source(Protocol):
    """A source of objects, with its election and the writer of their status."""

    election: Election
    status: Status
    ledger: Ledger

    async def run(self) -> None:
        """Keep the stores up to date until cancelled."""

    async def synced(self) -> None:
        """Return once every store is complete."""

    async def loaded(self) -> bool:
        """Wait for objects that are read because translations refer to them; return whether any was missing."""

    def problems(self) -> dict[str, str]:
        """Return why stores are incomplete or outdated: kind → reason."""

    def watches(self) -> dict[str, float]:
        """Return the seconds since the last event of each kind: kind → the maximum of its watches."""


class NoStatus:
    """For sources without a status."""

    def wake(self, key: ObjectKey, *, urgent: bool = False) -> None:
        """Do nothing."""

    def noticed(self, item: KubeObject) -> None:
        """Do nothing."""

    def review(self) -> None:
        """Do nothing: nothing was ever written."""

    async def run(self, term: Term) -> None:
        """Do nothing until cancelled."""
        await asyncio.Event().wait()

    async def failing_since(self) -> Mapping[Failure, datetime]:
        """Return nothing: nothing was ever reported."""
        return {}

    async def flush(self, seconds: float) -> bool:
        """Return True: nothing is queued."""
        return True


@dataclass(frozen=True, slots=True)
class Parts:
    """Dependencies of a source."""

    resources: tuple[Resource, ...]
    options: Options
    world: World
    conditions: Conditions
    metrics: Metrics
    clock: Clock
    rng: random.Random
    identity: str
    gateways: GatewayLoad
    """The load of the gateways: statuses yield to their changes."""
    leaves_alone: Callable[[ObjectKey], bool]
    """Whether another controller writes the status of one of our Ingresses."""


class ApiStatus:
    """Writes conditions and Events to an API server."""

    def __init__(self, api: KubeApi, settings: KubernetesSettings, parts: Parts) -> None:
        clock, rng, gateways, observer = parts.clock, parts.rng, parts.gateways, StatusMetrics(parts.metrics)
        timeout = _write_seconds(settings.election)
        self._running = False
        self._api, self._namespaces = api, settings.watch_namespaces or ("",)
        self._conditions = parts.conditions
        published = settings.status.publish_service, settings.status.addresses
        nearby = parts.options.gateway_namespaces
        self._addresses = Addresses(parts.world, *published, namespaces=nearby, leaves_alone=parts.leaves_alone)
        self._events = EventRecorder(api, clock=clock, rng=rng, observer=observer, gateways=gateways, timeout=timeout)
        self._documents = GatewayStatus(parts.world, parts.conditions, self._addresses, parts.options)
        self._stores = parts.world.stores
        self._complete = False
        self._writer = StatusWriter(
            api,
            parts.world.stores,
            self,
            clock=clock,
            rng=rng,
            gateways=gateways,
            recorder=self._events,
            observer=observer,
            queue_observer=parts.metrics.queue("status"),
            manager=settings.controller_name,
            timeout=timeout,
        )
        self._addresses.follow(self._writer.wake)
        self._clock, self._metrics = clock, parts.metrics
        parts.metrics.on_scrape(self._scrape)

    def condition(self, key: ObjectKey) -> Condition | None:
        """Return the desired condition of an object; None leaves the current one unchanged."""
        return self._conditions.of(key)

    def addresses(self, key: ObjectKey) -> Sequence[JsonObject] | None:
        """Return the desired addresses of an Ingress; None leaves the current ones unchanged."""
        return self._addresses.of(key)

    def document(self, key: ObjectKey, status: FrozenJson, now: str) -> JsonObject:
        """Return the fields that have to be written to the status of an object of the Gateway API.

        Nothing is written before every object was translated: referenced objects may not have been listed yet.
        """
        return self._documents.change(key, status, now) if self._complete else {}

    def wake(self, key: ObjectKey, *, urgent: bool = False) -> None:
        """Check the status of an object soon; urgent ones first."""
        self._writer.wake(key, urgent=urgent)

    def noticed(self, item: KubeObject) -> None:
        """Check whether a status still has our values."""
        self._writer.noticed(item)

    def review(self) -> None:
        """Check Ingresses that left our class with our addresses, and every status of the Gateway API."""
        self._writer.review(self._addresses.published())
        self._complete = True
        for store in (self._stores[kind] for kind in _DOCUMENTED if kind in self._stores):
            for item in store.values():
                self._writer.wake(item.meta.key)

    async def failing_since(self) -> Mapping[Failure, datetime]:
        """Return since when Ingresses fail, according to Events."""
        return await failing_since(self._api, self._namespaces)

    async def run(self, term: Term) -> None:
        """Write until cancelled."""
        self._running = True
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._writer.run(term), name="status-writer")
                group.create_task(self._events.run(term), name="events")
        finally:
            self._running = False

    async def flush(self, seconds: float) -> bool:
        """Wait until the queued conditions are written; a follower writes none, so it does not wait.

        It does not wait for thousands of statuses that a start has queued either: the next leader checks every object
        anyway.
        """
        return self._running and await self._writer.flush(seconds, most=FLUSHED)

    def _scrape(self) -> None:
        self._metrics.queue_age.at("status").set(self._writer.queue.oldest_age(self._clock.monotonic()))


class ApiSource:
    """Objects from an API server."""

    def __init__(self, api: KubeApi, settings: KubernetesSettings, parts: Parts) -> None:
        clock, rng, stores = parts.clock, parts.rng, parts.world.stores
        observer = ReflectorMetrics(parts.metrics)
        self._api = api
        self._metrics = parts.metrics
        self.status: Status = ApiStatus(api, settings, parts) if settings.status.enabled else NoStatus()
        silent = self.status.noticed
        collections = [
            (resource, namespace, store)
            for resource in parts.resources
            if not resource.on_demand
            for namespace, store in _portions(resource, stores[resource.kind], settings.watch_namespaces).items()
        ]

        reflect = partial(Reflector, api=api, clock=clock, rng=rng, observer=observer, silent=silent)
        self._listed = [
            reflect(resource, store, namespace=namespace, collections=len(collections))
            for resource, namespace, store in collections
        ]
        self._referenced = [
            ReferencedObjects(resource, parts.world, settings.watch_namespaces, reflect)
            for resource in parts.resources
            if resource.on_demand
        ]
        namespace = settings.election.namespace or os.environ.get("POD_NAMESPACE") or api.namespace
        self.election: Election = _election(api, namespace, settings.election, parts)
        self.ledger: Ledger = ConfigMapLedger(api, namespace, settings.controller_name)

    async def run(self) -> None:
        """List and watch every kind until cancelled."""
        self._metrics.on_scrape(self._scrape)
        async with asyncio.TaskGroup() as group:
            for reflector in self._listed:
                group.create_task(reflector.run(), name=f"reflector-{_collection(reflector)}")
            for referenced in self._referenced:
                group.create_task(referenced.run(), name="reflectors-referenced")

    async def synced(self) -> None:
        """Return once every kind was listed."""
        for reflector in self._listed:
            await reflector.synced.wait()

    async def loaded(self) -> bool:
        """Wait until every referenced object was listed; return whether one was not."""
        return any([await each.loaded() for each in self._referenced])

    def problems(self) -> dict[str, str]:
        """Return what the API server rejects, and what was not listed yet; kinds it does not have are complete."""
        if self._api.outage:
            return {f"API server {self._api.host}": self._api.outage}
        found = {_collection(item): item.problem for item in self._reflectors if item.problem and not item.absent}
        waiting = {_collection(item): "not listed yet" for item in self._listed if not item.synced.is_set()}
        leases = {"leases": self.election.problem} if self.election.problem else {}
        return {**waiting, **found, **leases}

    def watches(self) -> dict[str, float]:
        """Return the seconds since the API server last sent anything about each kind."""
        ages: dict[str, float] = {}
        for reflector in self._reflectors:
            kind = reflector.resource.kind
            ages[kind] = max(ages.get(kind, 0.0), reflector.age())
        return ages

    @property
    def _reflectors(self) -> Sequence[Reflector]:
        return (*self._listed, *(item for each in self._referenced for item in each.reflectors.values()))

    def _scrape(self) -> None:
        for kind, age in self.watches().items():
            self._metrics.watch_age.at(kind).set(age)


class FileSource:
    """Objects from manifests in a folder, which is watched. There is a single process, and no status."""

    def __init__(self, folder: Path, parts: Parts) -> None:
        self._files = ManifestSource([folder], parts.world.stores, clock=parts.clock)
        self._files.check()
        self.election: Election = NoElection(clock=parts.clock, identity=parts.identity)
        self.status: Status = NoStatus()
        self.ledger: Ledger = MemoryLedger()

    async def run(self) -> None:
        """Watch the files until cancelled."""
        await self._files.run()

    async def synced(self) -> None:
        """Return once the folder has been read."""
        await self._files.synced.wait()

    async def loaded(self) -> bool:
        """Return False: every object is read."""
        return False

    def problems(self) -> dict[str, str]:
        """Return the problems of the files."""
        found = {"manifests": self._files.problem, "skipped objects in manifests": self._files.skipped}
        return {what: why for what, why in found.items() if why}

    def watches(self) -> dict[str, float]:
        """Return nothing: there are no watches that could stall."""
        return {}


async def open_source(
    settings: KubernetesSettings, manifests: Path | None, parts: Parts, held: AsyncExitStack
) -> Source:
    """Return the source for these settings; `held` closes it.

    Raises:
        ConfigError: There are no usable credentials for the API server, or the folder cannot be read.
    """
    if manifests is not None:
        return FileSource(manifests, parts)
    api = await held.enter_async_context(
        await KubeApi.connect(settings.kubeconfig, settings.context, clock=parts.clock)
    )
    return ApiSource(api, settings, parts)


def _portions(resource: Resource, store: Store[Any], namespaces: Sequence[str]) -> Mapping[str, Fillable]:
    """Return the parts that are filled separately: namespace → its part of the store, or "" → the whole."""
    if not namespaces or not resource.namespaced or resource.only is not None:
        return {"": store}
    return portions(store, namespaces)


def _collection(reflector: Reflector) -> str:
    """Return a description of what a reflector reads."""
    plural = reflector.resource.plural
    return f"{plural} in {reflector.namespace}" if reflector.namespace else plural


def new_identity() -> str:
    """Return a unique name of this process for the Lease and the access logs of gateways."""
    return f"{os.environ.get('POD_NAME') or socket.gethostname()}_{secrets.token_hex(4)}"


def _write_seconds(election: ElectionSettings) -> float:
    """Return the timeout of a write to the API server: what is left of the lease when a leader stops."""
    return min(WRITE_SECONDS, election.lease_duration - election.renew_deadline) if election.enabled else WRITE_SECONDS


def _election(api: KubeApi, namespace: str, settings: ElectionSettings, parts: Parts) -> Election:
    if not settings.enabled:
        return NoElection(clock=parts.clock, identity=parts.identity)
    options = LeaseOptions(
        name=settings.name,
        namespace=namespace,
        identity=parts.identity,
        lease_duration=settings.lease_duration,
        renew_deadline=settings.renew_deadline,
        retry_period=settings.retry_period,
    )
    return LeaderElector(api, options, clock=parts.clock, rng=parts.rng)
