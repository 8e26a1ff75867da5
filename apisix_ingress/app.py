"""The composition root: builds every object, owns the one task group. Read it to see the whole program."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import random
import signal
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from apisix_ingress import __version__
from apisix_ingress.errors import IngressError, KubeError, LeadershipLost
from apisix_ingress.gateway.ledger import Ledger
from apisix_ingress.gateway.sync.cluster_sync import ClusterSync
from apisix_ingress.gateway.sync.comparison.adoption import IdAdoption
from apisix_ingress.gateway.sync.observer import SyncObserver, SyncObservers
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.observability.http_server import HttpServer
from apisix_ingress.observability.log import setup_logging
from apisix_ingress.observability.metrics import Metrics
from apisix_ingress.runtime.clock import MonotonicClock
from apisix_ingress.runtime.loop_errors import LoopErrors
from apisix_ingress.runtime.loop_lag import WatchedLoop, watch_running_loop
from apisix_ingress.runtime.open_files import raise_limit
from apisix_ingress.runtime.tasks import bounded, cancel, first_of
from apisix_ingress.runtime.term import Term
from apisix_ingress.settings import HttpSettings, Settings, WebhookSettings, split_address
from apisix_ingress.settings.warnings import cautions
from apisix_ingress.state.world import World
from apisix_ingress.statuspage.history import History
from apisix_ingress.statuspage.lazy_page import LazyStatusPage
from apisix_ingress.wiring.clusters import GatewayClusters, Wiring, connect_all, connect_target
from apisix_ingress.wiring.controller_state import ControllerState
from apisix_ingress.wiring.fanout import Fanout
from apisix_ingress.wiring.metric_adapters import AdminMetrics, ReconcileMetrics, SyncLag, SyncMetrics
from apisix_ingress.wiring.options import translation_options
from apisix_ingress.wiring.scraped_metrics import ScrapedMetrics
from apisix_ingress.wiring.sources import Parts, Source, new_identity, open_source
from apisix_ingress.wiring.standby_probe import StandbyProbe
from apisix_ingress.wiring.status_trigger import StatusTrigger
from providers.core.current_nodes import CurrentNodes
from providers.core.deps import ChangeSink
from providers.core.incumbents import adopt_hosts
from providers.core.registry import Registry, resources
from providers.status.conditions import Conditions
from translation import closing
from translation.core.options import Options
from translation.nginx.classes import is_served
from translation.plugins.exposure import exposure

if TYPE_CHECKING:
    from apisix_ingress.webhook.service import Webhook

log = structlog.get_logger()

DRAIN_SECONDS = 5.0
"""Timeout in seconds of each step of a shutdown: translations end, queued writes are sent, statuses are written."""

LAND_SECONDS = 6.0
"""Timeout in seconds of the writes in flight at shutdown: one second more than the default of `sync.timeout`.

Kubernetes kills the process after 30 s, which is enough for all steps and the release of the lease.
"""

SERVE_SECONDS = 0.8
"""Maximum seconds from the start until the HTTP server responds; earlier requests wait."""

FIRST_WRITES_SECONDS = 0.2
"""Delay in seconds of the HTTP server after the first pass over all objects: the first writes have priority."""

EARLY_SECONDS = 5.0
"""Maximum seconds from the start for which translation waits for early updates, if lists are not complete earlier."""

STATUS_SECONDS = 15.0
"""Maximum seconds from the start of a term until statuses are written, if not everything was translated earlier."""

TAKEOVER_SECONDS = 3.0
"""Maximum seconds for which statuses then wait for the comparison with the gateways: one of them may hang."""

GC_THRESHOLDS = (50_000, 50, 100)
"""With `gc.freeze`, a collection takes about 10 ms instead of nearly half a second with 10,000 objects."""


def run_controller(settings: Settings, manifests: Path | None, config: str = "") -> int:
    """Run until SIGTERM, SIGINT or SIGHUP; return the exit status. `config` is the settings file, for the log.

    Raises:
        IngressError: The start failed; the message says what to fix.
    """
    setup_logging(settings.log.level, settings.log.format)
    for line in cautions(settings):
        log.warning("settings.caution", caution=line)
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    raise_limit()
    try:
        with asyncio.Runner(loop_factory=WatchedLoop) as runner:
            runner.run(_serve(settings, manifests, config))
    except BaseExceptionGroup as errors:
        raise _cause(errors) from None
    return 0


async def _serve(settings: Settings, manifests: Path | None, config: str) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().set_exception_handler(LoopErrors(MonotonicClock()))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # Under nohup, the process must outlive its terminal.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with AsyncExitStack() as held:
        controller = await build(settings, manifests, held)
        _log_start(settings, config)
        await controller.run(stop)
    log.info("controller.stopped")


def _log_start(settings: Settings, config: str) -> None:
    clusters = {cluster.name: cluster.admin_url for cluster in settings.clusters}
    log.info("controller.started", version=__version__, config=config, http=settings.http.listen, clusters=clusters)


async def build(settings: Settings, manifests: Path | None, held: AsyncExitStack) -> Controller:
    """Build all parts and listen for probes; nothing is sent yet. `held` closes them.

    Raises:
        ConfigError: A setting, a file or an address cannot be used.
    """
    options, clusters = translation_options(settings), GatewayClusters()
    parts = _parts(options, clusters)
    history, lag = History(parts.clock, parts.world.reports), SyncLag(parts.metrics, parts.clock)
    source = await open_source(settings.kubernetes, manifests, parts, held)
    trigger = StatusTrigger(parts.conditions, source.status)
    registry = _registry(options, parts, Fanout(clusters, (trigger, history)), source)
    observer = SyncObservers(history, SyncMetrics(parts.metrics), lag, trigger)
    owned = partial(adopt_hosts, parts.world, options) if options.host_ownership == "namespace" else None
    adoptions = IdAdoption(
        parts.world.ids,
        parts.world.desired,
        registry.drained,
        clock=parts.clock,
        incumbents=owned,
        versions=parts.world.learn_version,
    )
    _connect(settings, clusters, _wiring(parts, source.ledger, observer, adoptions))
    held.push_async_callback(clusters.aclose)
    standby = StandbyProbe(clusters, source.election, clock=parts.clock, observer=history)
    state = ControllerState(parts.world, options, clusters, source, standby, parts.clock, parts.identity)
    webhook = await _open_webhook(settings.webhook, state, parts, held)
    server = await held.enter_async_context(_http_server(settings.http, state, parts.metrics, history))
    return Controller(state, registry, adoptions, parts.metrics, lag, history, server, webhook)


def _parts(options: Options, clusters: GatewayClusters) -> Parts:
    """Build the dependencies of sources: the state, metrics, and the inputs of conditions."""
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
    return Parts(kinds, options, world, conditions, metrics, clock, rng, identity, clusters, leaves_alone)


def _has_other_status(world: World, options: Options, key: ObjectKey) -> bool:
    """Return whether ingress-nginx writes the status of an Ingress: until `update_status` hands it over."""
    nginx, item = options.nginx, world.stores[key.kind].get(key)
    if nginx is None or nginx.update_status or item is None or key.kind != "Ingress":
        return False
    return is_served(item, world.view(), options, nginx)


def _registry(options: Options, parts: Parts, sink: ChangeSink, source: Source) -> Registry:
    return Registry(
        parts.world,
        options,
        sink,
        clock=parts.clock,
        rng=parts.rng,
        observer=parts.metrics.queue,
        outcome=ReconcileMetrics(parts.metrics),
        loaded=source.loaded,
    )


def _connect(settings: Settings, clusters: GatewayClusters, wiring: Wiring) -> None:
    """Build every gateway cluster of the settings, and allow GatewayProxies to add others."""
    name = settings.kubernetes.controller_name
    for cluster in connect_all(settings, name, wiring):
        clusters.add(cluster)
    clusters.connect = partial(connect_target, settings, name, wiring)


def _wiring(parts: Parts, ledger: Ledger, observer: SyncObserver, adoptions: IdAdoption) -> Wiring:
    """Return the dependencies of gateway clusters."""
    return Wiring(
        ledger,
        parts.world.desired,
        parts.clock,
        parts.rng,
        agent=f"apisix-ingress/{__version__} ({parts.identity})",
        on_request=AdminMetrics(parts.metrics),
        observer=observer,
        adoptions=adoptions,
        nodes=CurrentNodes(parts.world, parts.options),
        closing=closing,
        exposure=exposure,
    )


def _http_server(settings: HttpSettings, state: ControllerState, metrics: Metrics, history: History) -> HttpServer:
    host, port = split_address(settings.listen)
    audience = settings.status_page
    return HttpServer(
        host,
        port,
        readiness=state.readiness(),
        metrics=metrics,
        gateways=state.unhealthy_gateways,
        pages=LazyStatusPage(state, history, audience) if audience != "none" else None,
        clock=state.clock,
    )


async def _open_webhook(
    settings: WebhookSettings, state: ControllerState, parts: Parts, held: AsyncExitStack
) -> Webhook | None:
    if not settings.enabled:
        return None
    from apisix_ingress.webhook.service import open_webhook  # it costs memory, and few use it

    return await open_webhook(
        settings,
        state.world,
        state.options,
        {cluster.name: cluster.read for cluster in state.clusters},
        ready=state.ready.is_set,
        metrics=parts.metrics,
        clock=state.clock,
        rng=parts.rng,
        held=held,
    )


@dataclass(frozen=True, slots=True)
class Controller:
    """Every part of the program, wired."""

    state: ControllerState
    registry: Registry
    adoptions: IdAdoption
    metrics: Metrics
    lag: SyncLag
    history: History
    server: HttpServer
    webhook: Webhook | None

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set, then end everything in order; the lease is released last."""
        state, source = self.state, self.state.source
        ScrapedMetrics(self.metrics, state, self.registry, lag=self.lag, loop_lag=watch_running_loop())
        async with asyncio.TaskGroup() as tasks:
            objects = tasks.create_task(source.run(), name="source")
            providers = tasks.create_task(self._translate(stop), name="providers")
            leader = tasks.create_task(source.election.lead(self._lead), name="leader")
            prepare = tasks.create_task(self._prepare(), name="prepare")
            standby = tasks.create_task(state.standby.run(state.ready), name="standby")
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
            await asyncio.gather(*map(_finish, state.clusters.syncs))
            await source.status.flush(DRAIN_SECONDS)
            await cancel(leader)
            if webhook:
                await cancel(webhook)

    async def _serve(self) -> None:
        """Serve HTTP, after the first objects and writes: loading the server would delay them."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SERVE_SECONDS):
                await self.state.ready.wait()
                await self.state.clock.sleep(FIRST_WRITES_SECONDS)
        await self.server.serve()
        await self.server.run()

    async def _translate(self, stop: asyncio.Event) -> None:
        """Run the providers. At a start, wait for early updates first: translating would compete for the CPU."""
        state = self.state
        await first_of(state.source.synced(), self._updated_early(), state.clock.sleep(EARLY_SECONDS), stop.wait())
        if not stop.is_set():
            await self.registry.run()

    async def _updated_early(self) -> None:
        for sync in self.state.clusters.syncs:
            await sync.updated_early.wait()

    async def _prepare(self) -> None:
        """Allow writes once every object is known and translated."""
        world, source = self.state.world, self.state.source
        await source.synced()
        await self.registry.drained()
        world.ids.settle()
        world.host_holders.settle()
        self.state.ready.set()
        self.history.ready()
        source.status.review()
        log.info("world.ready", objects={kind: len(store) for kind, store in world.stores.items() if len(store)})
        # No collection first: it finds nothing and delays the first writes by 0.1 ms per object.
        gc.freeze()

    async def _lead(self, term: Term) -> None:
        """Write to gateways and statuses until the term ends."""
        state, source = self.state, self.state.source
        source.ledger.renew()
        self.adoptions.renew()
        self.history.leading()
        state.standby.forget()
        try:
            async with asyncio.TaskGroup() as writers:

                def start(sync: ClusterSync) -> asyncio.Task[None]:
                    return writers.create_task(sync.run(term, state.ready), name=f"sync-{sync.name}")

                writers.create_task(self._sync_clusters(start), name="clusters")
                writers.create_task(self._write_statuses(term), name="status")
                writers.create_task(self._read_times(), name="times")
        except BaseExceptionGroup as errors:
            if errors.split(LeadershipLost)[1] is not None:
                raise
            raise LeadershipLost("the lease may have run out: writing stopped") from None
        finally:
            self.lag.forget()

    async def _sync_clusters(self, start: Callable[[ClusterSync], asyncio.Task[None]]) -> None:
        """Keep every gateway cluster in sync until cancelled, also clusters that appear later."""
        with self.state.clusters.started(start):
            await asyncio.Event().wait()

    async def _read_times(self) -> None:
        """Read since when Ingresses fail; without the permission, the page counts from the start of this process."""
        with contextlib.suppress(KubeError):
            self.history.announced(await self.state.source.status.failing_since())

    async def _write_statuses(self, term: Term) -> None:
        """Write statuses after the first writes to gateways: before that, their conditions would change again."""
        state = self.state
        with contextlib.suppress(TimeoutError):
            await bounded(state.ready.wait(), STATUS_SECONDS, clock=state.clock)
            outcomes = asyncio.gather(*(sync.first_outcome() for sync in state.clusters.syncs))
            await bounded(outcomes, TAKEOVER_SECONDS, clock=state.clock)
        await state.source.status.run(term)


async def _finish(sync: ClusterSync) -> None:
    """End writing to a cluster: requests in flight get their responses before the next leader may write."""
    await sync.drain(DRAIN_SECONDS)
    await sync.close(LAND_SECONDS)


def _cause(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the error that says what to fix, or the whole group if there are several."""
    first: BaseException = errors
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return first if isinstance(first, IngressError) else errors
