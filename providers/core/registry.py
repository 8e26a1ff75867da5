"""All providers, and the routing of changed reads to their queues. The table of kinds lists the providers.

A provider imports the translation of its kind when the first object arrives: most clusters use few kinds, and building
every model would slow down the start.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from apisix_ingress.model.keys import IndexKey, ObjectKey, Read
from apisix_ingress.model.kinds.gateway_api import GATEWAY_KINDS
from apisix_ingress.model.kinds.indexes import NGINX_HOST_INDEX, NGINX_INDEXES, OWNERSHIP_INDEXES
from apisix_ingress.model.kinds.resource import DERIVED_PROVIDERS, Resource, imported
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.queue.fair_rests import FairRests
from apisix_ingress.runtime.queue.workqueue import QueueObserver, WorkQueue
from apisix_ingress.runtime.tasks import run_workers
from apisix_ingress.state.ids.id_table import HASHED
from apisix_ingress.state.world import World
from providers.core.base import Provider
from providers.core.dependency import DependencyProvider
from providers.core.deps import ChangeSink, ProviderDeps, limiter
from providers.core.offload import Offloader
from providers.core.problems import log_problems
from translation.core.options import Options
from translation.nginx.options import CATCH_ALL, host_key

URGENT_KINDS = frozenset(kind for kind, row in RESOURCES.items() if row.urgent)
"""Kinds whose changes are processed first, so that a dead Pod is removed from the gateways immediately."""

UNREAD = {"endpointslices": "Endpoints", "endpoints": "EndpointSlice"}
"""Endpoint source → the kind that is not watched."""

LARGE_OBJECTS = "large-objects"
"""Name of the queue of objects that are translated in a thread."""

SETTLE_LIMIT = 100
"""Number of translations per object after which an offline pass is considered an endless loop."""


def resources(options: Options) -> tuple[Resource, ...]:
    """Return the kinds to watch with these options."""
    source = options.plugin_metadata
    table = {kind: resource for kind, resource in RESOURCES.items() if kind != UNREAD[options.endpoint_source]}
    if not options.gateway_api:
        table = {kind: resource for kind, resource in table.items() if kind not in GATEWAY_KINDS}
    if options.cross_namespace != "grant":
        if options.gateway_api:
            table["ReferenceGrant"] = replace(table["ReferenceGrant"], needs="Gateway", may_be_forbidden=True)
        else:
            del table["ReferenceGrant"]
    on_demand = options.secrets == "referenced"
    table["Secret"] = replace(
        table["Secret"], labels=options.secret_selector, on_demand=on_demand, may_be_forbidden=on_demand
    )
    if options.external_addresses != "refuse-internal":
        # The index of addresses is used only to reject internal ones.
        table["Service"] = replace(table["Service"], indexes={})
    if options.host_ownership == "shared":
        table = {kind: resource.without(OWNERSHIP_INDEXES) for kind, resource in table.items()}
    if options.nginx is not None:
        return tuple(table.values())
    table = {kind: resource.without(NGINX_INDEXES) for kind, resource in table.items()}
    config_maps = table.pop("ConfigMap")
    return (*table.values(), *([config_maps.restricted(source)] if source else ()))


def provider_classes() -> Iterator[type[Provider[Any] | DependencyProvider]]:
    """Yield the provider class of each kind that has a provider."""
    named = (row.provider for row in RESOURCES.values() if row.provider)
    return map(imported, (*named, *DERIVED_PROVIDERS.values()))


async def nothing_to_load() -> bool:
    """Return False: every object is read, whether or not translations refer to it."""
    return False


class Registry:
    """The providers by kind.

    `loaded` waits for objects that are read because translations refer to them; it returns whether any was missing.
    """

    def __init__(
        self,
        world: World,
        options: Options,
        sink: ChangeSink,
        *,
        clock: Clock,
        rng: random.Random,
        observer: Callable[[str], QueueObserver | None] = lambda kind: None,
        outcome: Callable[[str, bool], None] = lambda kind, well: None,
        loaded: Callable[[], Awaitable[bool]] = nothing_to_load,
    ) -> None:
        self._loaded = loaded
        queue: WorkQueue[ObjectKey] = WorkQueue(
            clock=clock,
            limiter=limiter(rng),
            name=LARGE_OBJECTS,
            group=lambda key: self.providers[key.kind].namespace_of(key),
            observer=observer(LARGE_OBJECTS),
        )
        self._offloader = offloader = Offloader(world, queue)
        rests = FairRests(clock=clock)
        deps = ProviderDeps(world, options, sink, self, clock, rests, rng, observer, offloader, outcome)
        self._world = world
        self._live = self._has_logged = False
        self._waiting = 0
        built = [cls(deps) for cls in provider_classes() if cls.kind in world.stores or cls.kind not in GATEWAY_KINDS]
        self.providers: Mapping[str, Provider[Any]] = {each.kind: each for each in built if isinstance(each, Provider)}
        self._dependencies = {each.kind: each for each in built if isinstance(each, DependencyProvider)}
        self.queues: Mapping[str, WorkQueue[Any]] = {each.kind: each.queue for each in built} | {LARGE_OBJECTS: queue}
        world.listen(self._changed)
        if options.nginx:
            self.enqueue(host_key(CATCH_ALL))

    @property
    def live(self) -> bool:
        """Whether the first pass over all objects is done."""
        return self._live

    @property
    def may_rest(self) -> bool:
        """Whether namespaces rest after long work; false while a caller waits for all translations."""
        return self._live and not self._waiting

    def enqueue(self, owner: ObjectKey, *, urgent: bool = False, since: float | None = None) -> None:
        """Queue an owner at the provider of its kind; `since` is when the change was seen, if not now."""
        self.providers[owner.kind].queue.add(owner, urgent=urgent, since=since)

    async def run(self) -> None:
        """Run all providers until their queues are shut down and drained, then drain the offloaded objects."""
        async with asyncio.TaskGroup() as offloading:
            offloading.create_task(self._run_offloaded(), name=LARGE_OBJECTS)
            async with asyncio.TaskGroup() as group:
                for provider in self.all():
                    group.create_task(provider.run(), name=f"provider-{provider.kind}")
            self._offloader.queue.shut_down()

    async def drained(self) -> None:
        """Wait until all queues are idle at the same time, ignoring keys that wait for a retry.

        The first call ends the first pass over all objects and logs the remaining problems.
        """
        self._waiting += 1
        try:
            for provider in self.providers.values():
                provider.resume()
            while not all(queue.is_idle for queue in self.queues.values()) or await self._loaded():
                for queue in self.queues.values():
                    await queue.idle()
        finally:
            self._waiting -= 1
        self._live = True
        if not self._has_logged:
            self._has_logged = True
            reports = self._world.reports.items()
            for owner, problems in sorted((owner, each.problems) for owner, each in reports if each.problems):
                log_problems(owner, problems)

    async def _run_offloaded(self) -> None:
        async def handle(key: ObjectKey) -> None:
            await self.providers[key.kind].reconcile_offloaded(key)

        def failed(key: ObjectKey, error: Exception) -> None:
            self.providers[key.kind].failed(key, error)

        await run_workers(self._offloader.queue, handle, workers=1, name=LARGE_OBJECTS, on_error=failed)

    def shut_down(self) -> None:
        """Stop accepting keys; the queues are drained."""
        for provider in self.all():
            provider.queue.shut_down()

    def settle(self) -> None:
        """Translate until nothing is queued, without an event loop. The first call ends the first pass.

        Raises:
            RuntimeError: Translations keep causing each other.
        """
        budget = SETTLE_LIMIT * (1 + sum(len(store) for store in self._world.stores.values()))
        while busy := [provider for provider in self.all() if self._step(provider)]:
            for provider in busy:
                while self._step(provider) and budget > 0:
                    budget -= 1
            budget -= len(busy)
            if budget < 0:
                raise RuntimeError("translations keep causing each other")
        self._live = True

    def all(self) -> tuple[Provider[Any] | DependencyProvider, ...]:
        """Return the providers of all kinds that have one."""
        return (*self._dependencies.values(), *self.providers.values())

    def _step(self, provider: Provider[Any] | DependencyProvider) -> bool:
        queue: WorkQueue[Any] = provider.queue
        key = queue.take()
        if key is None:
            return False
        provider.settle_one(key)
        queue.done(key)
        return True

    def _changed(self, read: Read) -> None:
        if (dependency := self._dependencies.get(read.kind)) is not None:
            dependency.changed(read)
            return
        urgent = self._live and read.kind in URGENT_KINDS
        owners = self._world.dependents.of(read)
        if read.kind in HASHED and isinstance(read, IndexKey):
            owners = (*owners, *self._world.ids.owners_of(read))  # an invalid object may no longer read it
        if isinstance(read, IndexKey) and read.by == NGINX_HOST_INDEX:
            owners = (*owners, host_key(read.value))
        if isinstance(read, ObjectKey) and (own := self.providers.get(read.kind)) and own.concerns(read):
            owners = (read, *owners)
        # Deleted objects last, so that their replacements are written before the deletes.
        for owner in sorted(owners, key=self._is_gone):
            self.enqueue(owner, urgent=urgent)

    def _is_gone(self, owner: ObjectKey) -> bool:
        return self._world.stores[owner.kind].get(owner) is None
