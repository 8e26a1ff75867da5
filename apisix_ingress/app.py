"""The composition root: builds every object, owns the one task group. Read it to see the whole program."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import random
import signal
import socket
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from apisix_ingress import __version__
from apisix_ingress.errors import IngressError, LeadershipLost
from apisix_ingress.gateway.ledger import Ledger
from apisix_ingress.gateway.sync.cluster_sync import ClusterSync
from apisix_ingress.gateway.sync.comparison.adoption import IdAdoption
from apisix_ingress.gateway.sync.observer import SyncObserver, SyncObservers
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.observability.certificate_expiry import expiries
from apisix_ingress.observability.http_server import HttpServer, Readiness
from apisix_ingress.observability.log import setup_logging
from apisix_ingress.observability.metrics import Metrics
from apisix_ingress.runtime.clock import Clock, MonotonicClock
from apisix_ingress.runtime.loop_errors import LoopErrors
from apisix_ingress.runtime.loop_lag import LoopLagWatch
from apisix_ingress.runtime.open_files import raise_limit
from apisix_ingress.runtime.tasks import cancel
from apisix_ingress.runtime.term import Term
from apisix_ingress.settings import HttpSettings, Settings, WebhookSettings, split_address
from apisix_ingress.settings.warnings import cautions
from apisix_ingress.startup.allocator import keep_large_blocks_apart, read_small_pieces
from apisix_ingress.state.world import World
from apisix_ingress.statuspage.history import History
from apisix_ingress.wiring.clusters import GatewayCluster, GatewayClusters, Wiring, connect_all
from apisix_ingress.wiring.fanout import Fanout
from apisix_ingress.wiring.metric_adapters import AdminMetrics, ReconcileMetrics, SyncLag, SyncMetrics
from apisix_ingress.wiring.options import translation_options
from apisix_ingress.wiring.sources import Parts, Source, new_identity, open_source
from apisix_ingress.wiring.standby_probe import StandbyProbe
from apisix_ingress.wiring.status_trigger import StatusTrigger
from providers.cluster_config import ClusterConfigProvider
from providers.core.base import ChangeSink
from providers.core.conditions import Conditions
from providers.core.incumbents import adopt_hosts
from providers.core.registry import Registry, resources
from translation.core.options import Options

if TYPE_CHECKING:
    from apisix_ingress.statuspage.service import StatusPage
    from apisix_ingress.webhook.service import Webhook

log = structlog.get_logger()

DRAIN_SECONDS = 5.0
"""At shutdown, for each step: translations end, writes that are queued go out, status is written."""

LAND_SECONDS = 6.0
"""At shutdown, for writes in flight: a second more than they take by default (`sync.timeout`).

Kubernetes kills after 30 s: that has room for each step, and for the lease.
"""

SERVE_SECONDS = 0.8
"""After the start, until probes and people are answered at the latest; who comes earlier waits for so long."""

FIRST_WRITES_SECONDS = 0.2
"""Until then what is written first has its way once there is a whole world."""

GC_THRESHOLDS = (50_000, 50, 100)
"""With `gc.freeze` they cut the longest stall at 10,000 objects from near half a second to about 10 ms."""


def run_controller(settings: Settings, manifests: Path | None) -> int:
    """Run until SIGTERM, SIGINT or SIGHUP; return the exit status.

    Raises:
        IngressError: The start failed; the message says what to fix.
    """
    setup_logging(settings.log.level, settings.log.format)
    for line in cautions(settings):
        log.warning("settings.caution", caution=line)
    gc.set_threshold(*GC_THRESHOLDS)
    raise_limit()
    keep_large_blocks_apart()
    read_small_pieces()
    try:
        asyncio.run(_serve(settings, manifests))
    except BaseExceptionGroup as errors:
        raise _cause(errors) from None
    return 0


async def _serve(settings: Settings, manifests: Path | None) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().set_exception_handler(LoopErrors(MonotonicClock()))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # Under nohup it is to outlive its terminal.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with AsyncExitStack() as held:
        controller = await build(settings, manifests, held)
        await controller.run(stop)
    log.info("controller.stopped")


async def build(settings: Settings, manifests: Path | None, held: AsyncExitStack) -> Controller:
    """Build all parts and listen for probes; nothing is sent yet. What has to be closed is closed by `held`.

    Raises:
        ConfigError: A setting, a file or an address can't be used.
    """
    options, clusters = translation_options(settings), GatewayClusters()
    parts = _parts(options, clusters)
    lag, journal = SyncLag(parts.metrics, parts.clock), History(parts.clock)
    source = await open_source(settings.kubernetes, manifests, parts, held)
    trigger = StatusTrigger(parts.conditions, source.status)
    registry = _registry(options, parts, Fanout(clusters.syncs, (trigger, journal)))
    observer = SyncObservers(journal, SyncMetrics(parts.metrics), lag, trigger)
    owned = partial(adopt_hosts, parts.world, options) if options.host_ownership == "namespace" else None
    adoptions = IdAdoption(parts.world.ids, parts.world.desired, registry.drained, clock=parts.clock, incumbents=owned)
    for cluster in _connected(settings, parts, source.ledger, observer, adoptions):
        held.push_async_callback(cluster.aclose)
        clusters.add(cluster)
    configs = registry.providers[ClusterConfigProvider.kind]
    assert isinstance(configs, ClusterConfigProvider)
    configs.follow(clusters.move)
    asks = {cluster.name: cluster.probe for cluster in clusters}
    standby = StandbyProbe(asks, lambda: source.election.leading, clock=parts.clock, changed=journal.breaker)
    ready = asyncio.Event()
    controller = Controller(
        parts.world, source, registry, clusters.syncs, adoptions, standby, parts.metrics, lag, parts.clock, ready
    )
    if settings.webhook.enabled:
        await _open_webhook(settings.webhook, controller, options, clusters, parts.rng, held)
    pages = partial(_status_page, settings, controller, options, journal, parts.identity)
    controller.server = await held.enter_async_context(_http_server(settings.http, controller, pages))
    return controller


def _parts(options: Options, clusters: GatewayClusters) -> Parts:
    """Build what sources are given: memory, metrics, and what conditions are computed from."""
    clock, rng, identity = MonotonicClock(), random.Random(), new_identity()
    metrics = Metrics(
        pod=os.environ.get("POD_NAME") or socket.gethostname(),
        namespace=os.getenv("POD_NAMESPACE", ""),
        names_secrets=options.cross_namespace == "allow",
    )
    kinds = resources(options)
    world = World(kinds, wide_ids=options.record_ids == "wide")
    conditions = Conditions(world, clusters.syncs)
    leaves_alone = partial(_has_other_status, world, options)
    return Parts(kinds, world, conditions, metrics, clock, rng, identity, clusters, leaves_alone)


def _has_other_status(world: World, options: Options, key: ObjectKey) -> bool:
    """Say whether ingress-nginx writes the status of an Ingress: until `update_status` hands it over."""
    nginx, item = options.nginx, world.stores[key.kind].get(key)
    if nginx is None or nginx.update_status or item is None:
        return False
    from translation.nginx.sources import is_served

    return is_served(item, world.view(), options, nginx)


def _registry(options: Options, parts: Parts, sink: ChangeSink) -> Registry:
    return Registry(
        parts.world,
        options,
        sink,
        clock=parts.clock,
        rng=parts.rng,
        observer=parts.metrics.queue,
        outcome=ReconcileMetrics(parts.metrics),
    )


def _connected(
    settings: Settings, parts: Parts, ledger: Ledger, observer: SyncObserver, adoptions: IdAdoption
) -> Sequence[GatewayCluster]:
    """Build every gateway cluster."""
    wiring = Wiring(
        ledger,
        parts.world.desired,
        parts.clock,
        parts.rng,
        agent=f"apisix-ingress/{__version__} ({parts.identity})",
        on_request=AdminMetrics(parts.metrics),
        observer=observer,
        adoptions=adoptions,
    )
    return connect_all(settings, settings.kubernetes.controller_name, wiring)


def _http_server(settings: HttpSettings, controller: Controller, pages: Callable[[], StatusPage | None]) -> HttpServer:
    host, port = split_address(settings.listen)
    readiness, gateways = controller.readiness(), controller.gateways
    return HttpServer(
        host,
        port,
        readiness=readiness,
        metrics=controller.metrics,
        gateways=gateways,
        pages=pages,
        clock=controller.clock,
    )


def _status_page(
    settings: Settings, controller: Controller, options: Options, journal: History, identity: str
) -> StatusPage | None:
    if settings.http.status_page == "none":
        return None
    from apisix_ingress.statuspage.inputs import (  # with its templates it costs memory, and some go without
        Leadership,
        PageInputs,
    )
    from apisix_ingress.statuspage.service import StatusPage

    election = controller.source.election
    facts = PageInputs(
        controller.world,
        options,
        controller.syncs,
        journal,
        controller.clock,
        identity,
        __version__,
        leadership=lambda: Leadership(election.leading, election.holder),
        ready=controller.ready.is_set,
        watches=controller.source.watches,
        problems=controller.source.problems,
        refused=lambda: controller.standby.refused,
    )
    return StatusPage(facts, settings.http.status_page)


async def _open_webhook(
    settings: WebhookSettings,
    controller: Controller,
    options: Options,
    clusters: GatewayClusters,
    rng: random.Random,
    held: AsyncExitStack,
) -> None:
    from apisix_ingress.webhook.service import open_webhook  # it costs time and memory, and most go without

    controller.webhook = await open_webhook(
        settings,
        controller.world,
        options,
        {cluster.name: cluster.read for cluster in clusters},
        ready=controller.ready.is_set,
        metrics=controller.metrics,
        clock=controller.clock,
        rng=rng,
        held=held,
    )


@dataclass(slots=True)
class Controller:
    """Every part of the program, wired."""

    world: World
    source: Source
    registry: Registry
    syncs: list[ClusterSync]
    adoptions: IdAdoption
    standby: StandbyProbe
    metrics: Metrics
    lag: SyncLag
    clock: Clock
    ready: asyncio.Event
    """Set once every store is complete and every object was translated once: writing may begin."""
    webhook: Webhook | None = None
    server: HttpServer | None = None

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set, then end everything in order: the lease goes last."""
        stalls = LoopLagWatch(self.clock)
        self.metrics.on_scrape(lambda: self._scrape(stalls))
        async with asyncio.TaskGroup() as tasks:
            watch = tasks.create_task(stalls.run(), name="stall-watch")
            objects = tasks.create_task(self.source.run(), name="source")
            providers = tasks.create_task(self.registry.run(), name="providers")
            leader = tasks.create_task(self.source.election.lead(self._lead), name="leader")
            prepare = tasks.create_task(self._prepare(), name="prepare")
            standby = tasks.create_task(self.standby.run(self.ready), name="standby")
            webhook = tasks.create_task(self.webhook.run(), name="webhook") if self.webhook else None
            serve = tasks.create_task(self._serve(), name="serve")
            await stop.wait()
            log.info("controller.stopping")
            await cancel(serve)
            await cancel(prepare)
            await cancel(standby)
            await cancel(objects)
            self.registry.shut_down()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DRAIN_SECONDS):
                    await providers
            await asyncio.gather(*map(_finish, self.syncs))
            await self.source.status.flush(DRAIN_SECONDS)
            await cancel(leader)
            await cancel(watch)
            if webhook:
                await cancel(webhook)

    async def _serve(self) -> None:
        """Answer probes, once the first objects and writes went ahead of what that loads."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SERVE_SECONDS):
                await self.ready.wait()
                await self.clock.sleep(FIRST_WRITES_SECONDS)
        if self.server is not None:
            await self.server.serve()
            await self.server.run()

    def readiness(self) -> Readiness:
        """Return what /readyz asks: a follower is ready as soon as it could take over; gateways are told of only."""
        readiness = Readiness()
        readiness.add("objects", lambda: "; ".join(f"{k}: {v}" for k, v in self.source.problems().items()) or None)
        readiness.add("translated", lambda: None if self.ready.is_set() else "not every object was translated yet")
        readiness.add_note("clusters", self.gateways)
        return readiness

    def gateways(self) -> str | None:
        """Return which clusters are not written to, or would not be by this replica, and why; or None."""
        # A gateway that an ended term found away is probed by nobody here any more: only who leads knows.
        leads = self.source.election.leading
        outages = {sync.name: sync.outage.headline for sync in self.syncs if sync.outage is not None}
        found = outages if leads else self.standby.refused
        return "; ".join(f"cluster {name}: {why}" for name, why in sorted(found.items())) or None

    async def _prepare(self) -> None:
        """Let writing begin once there is a whole world to write."""
        await self.source.synced()
        await self.registry.drained()
        self.world.ids.settle()
        self.world.host_holders.settle()
        self.ready.set()
        self.source.status.review()
        log.info("world.ready", objects={kind: len(store) for kind, store in self.world.stores.items() if len(store)})
        # Without a collection before: it finds nothing, and the first writes would wait for it (0.1 ms an object).
        gc.freeze()

    async def _lead(self, term: Term) -> None:
        """Write, for as long as the term lasts."""
        self.source.ledger.renew()
        self.adoptions.renew()
        self.standby.forget()
        try:
            async with asyncio.TaskGroup() as writers:
                for sync in self.syncs:
                    writers.create_task(sync.run(term, self.ready), name=f"sync-{sync.name}")
                writers.create_task(self.source.status.run(term), name="status")
        except BaseExceptionGroup as errors:
            if errors.split(LeadershipLost)[1] is not None:
                raise
            raise LeadershipLost("the lease may have run out: writing stopped") from None
        finally:
            self.lag.forget()

    def _scrape(self, stalls: LoopLagWatch) -> None:
        now = self.clock.monotonic()
        leads, refused = self.source.election.leading, self.standby.refused
        self.metrics.set_leader(leads)
        self.metrics.set_event_loop_lag(stalls.longest())
        self.metrics.set_certificates(expiries(self.world.desired))
        for name, queue in self.registry.queues.items():
            self.metrics.set_queue_age(name, queue.oldest_age(now))
        outages = [(sync.name, sync.outage) for sync in self.syncs if leads and sync.outage is not None]
        self.metrics.set_outages({(name, each.reason): each.since.timestamp() for name, each in outages})
        for sync in self.syncs:
            self.metrics.set_breaker_open(sync.name, not sync.reachable if leads else sync.name in refused)
            self.metrics.set_pending(sync.name, age=self.lag.oldest(sync.name), backlog=sync.backlog)
            for record_kind, tally in sync.tally().items():
                self.metrics.set_records(
                    sync.name,
                    record_kind,
                    desired=tally.desired,
                    applied=tally.applied,
                    quarantined=tally.rejected,
                )


async def _finish(sync: ClusterSync) -> None:
    """End writing to a cluster: what was sent gets its answer before the next leader may write."""
    await sync.drain(DRAIN_SECONDS)
    await sync.close(LAND_SECONDS)


def _cause(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the one error that says what to fix, or the whole group."""
    first: BaseException = errors
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return first if isinstance(first, IngressError) else errors
