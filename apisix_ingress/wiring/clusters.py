"""Builds gateway clusters: for each, the client of its Admin API, its ledger and its sync engine.

The address is the one in the settings, unless an ApisixClusterConfig moves the cluster while the program runs.
`gateway/sync` decides what to do at an address.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import structlog
from pydantic import SecretStr

from apisix_ingress.errors import ConfigError
from apisix_ingress.gateway.adminapi.admin_key import Fields
from apisix_ingress.gateway.adminapi.client import AdminClient, AdminKey
from apisix_ingress.gateway.adminapi.request_sender import RequestHook
from apisix_ingress.gateway.adminapi.tls import TlsContext, TlsFiles
from apisix_ingress.gateway.backend import Backend
from apisix_ingress.gateway.ledger import Ledger, LedgeredBackend
from apisix_ingress.gateway.standalone.admin import StandaloneAdmin
from apisix_ingress.gateway.standalone.endpoint import Endpoint
from apisix_ingress.gateway.standalone.fleet import Fleet
from apisix_ingress.gateway.standalone.group import StandaloneGroup
from apisix_ingress.gateway.standalone.resolver import urls_of_gateways
from apisix_ingress.gateway.sync.cluster_sync import ClusterSync
from apisix_ingress.gateway.sync.comparison.adoption import IdAdoption
from apisix_ingress.gateway.sync.config import Closing, CurrentNodes, NoClosing, SyncConfig, open_always
from apisix_ingress.gateway.sync.observer import SyncObserver
from apisix_ingress.gateway.sync.ordering.exposure_order import ExposureOf
from apisix_ingress.gateway.sync.plan import Wanted
from apisix_ingress.kube.status.interface import Load
from apisix_ingress.model.admin_address import PUBLISHED_KEY, PUBLISHED_KEYS, AdminAddress, is_exposed
from apisix_ingress.model.records import TARGET_MARK
from apisix_ingress.model.target import STANDALONE, Target
from apisix_ingress.observability.log import register_secret
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.tasks import cancel
from apisix_ingress.settings import MULTI_TENANT, ClusterSettings, Settings, TlsSettings
from providers.cluster_config import ClusterConfigProvider

log = structlog.get_logger()

CHANGE_SECONDS = 2.0
"""Seconds after a change of a record for which the gateways count as being changed: changes come in groups, and a burst
of statuses between two of them would delay the second one."""

STANDALONE_WRITES = 2000
"""Number of records that a document for standalone gateways may add: a document always contains all records."""

# The URL of a client for standalone gateways as long as there are none. It is never used.
_NO_URL = "http://no-gateway.invalid/apisix/admin"

BULK_BACKLOG = 64
"""Number of records queued for sync above which a cluster is in a bulk."""


@dataclass(frozen=True, slots=True)
class Wiring:
    """Dependencies of every cluster."""

    ledger: Ledger
    wanted: Wanted
    clock: Clock
    rng: random.Random
    agent: str
    """The name of this process in the access log of gateways."""
    on_request: RequestHook
    observer: SyncObserver
    adoptions: IdAdoption
    nodes: CurrentNodes | None = None
    closing: Closing = field(default_factory=NoClosing)
    exposure: ExposureOf = open_always


class GatewayCluster:
    """One gateway cluster."""

    def __init__(self, home: AdminClient, url: str, settings: ClusterSettings, wiring: Wiring) -> None:
        self.name = settings.name
        self._home = home
        self._home_url = url
        self._ledger = wiring.ledger
        self._current = home
        self.urls = (settings.admin_url, *settings.more_admin_urls)
        """The URLs of standalone gateways; they may change at any time."""
        self._settings = settings
        self._clock = wiring.clock
        config = SyncConfig(
            self.name,
            wiring.wanted,
            clock=wiring.clock,
            rng=wiring.rng,
            observer=wiring.observer,
            concurrency=STANDALONE_WRITES if settings.mode == STANDALONE else settings.sync.concurrency,
            audit_interval=settings.sync.audit_interval,
            check_interval=settings.sync.check_interval,
            adopt=wiring.adoptions.adopt,
            report_version=wiring.adoptions.report_version,
            nodes=wiring.nodes,
            closing=wiring.closing,
            exposure=wiring.exposure,
        )
        self.sync = ClusterSync(config, self._ledgered(url))
        wiring.adoptions.add(self.sync)

    async def read(self, path: str) -> bytes:
        """Return the response of the Admin API, at its current address, for a path that is not a record.

        Raises:
            GatewayError: It did not respond, or rejected the request.
        """
        return await self._current.read(path)

    async def probe(self) -> None:
        """Check cheaply whether the Admin API, at its current address, answers and accepts the key.

        Raises:
            GatewayError: It did not respond, or rejected the key; see its class.
        """
        await self._current.probe()

    async def aclose(self) -> None:
        """Close every connection."""
        await self._home.aclose()

    def move(self, address: AdminAddress | None) -> None:
        """Use another address from now on; None restores the address in the settings."""
        if address is None:
            self._current, url = self._home, self._home_url
        else:
            self._current, url = self._elsewhere(address), address.url
        by = "settings" if address is None else ClusterConfigProvider.kind
        log.info("cluster.moved", cluster=self.name, url=url, by=by)
        self.sync.move(self._ledgered(url))

    def _elsewhere(self, address: AdminAddress) -> AdminClient:
        register_secret(address.key)
        whose = f"of ApisixClusterConfig {self.name}"
        if address.key in PUBLISHED_KEYS:
            log.warning("settings.caution", caution=f"spec.admin.adminKey {whose}: {PUBLISHED_KEY}")
        if is_exposed(address.url):
            log.warning("settings.caution", caution=f"spec.admin.baseURL {whose}: plain http to another machine")
        largest = f"sync.largest_list of cluster {self.name}"
        fields = Fields(f"spec.admin.baseURL {whose}", f"spec.admin.adminKey {whose}", largest)
        return self._home.elsewhere(address.url, AdminKey(lambda: SecretStr(address.key)), fields)

    def _ledgered(self, url: str) -> LedgeredBackend:
        return LedgeredBackend(self._backend(url), self._ledger, ledger_name(self.name, url, home=self._home_url))

    def _backend(self, url: str) -> Backend:
        admin, settings, clock = self._current, self._settings, self._clock
        if not isinstance(admin, StandaloneAdmin):
            return admin

        def connect_to(url: str) -> Endpoint:
            return Endpoint(admin.elsewhere(url, admin.requests.key, admin.requests.fields))

        async def resolve() -> list[str]:
            return await urls_of_gateways(self.urls if url == self._home_url else (url,))

        fleet = Fleet(self.name, connect_to, resolve, seconds=admin.timeout, clock=clock)
        return StandaloneGroup(
            self.name, fleet, controller=admin.controller, timeout=settings.sync.timeout, clock=clock
        )


class GatewayClusters:
    """Every gateway cluster: those of the settings, in their order, then the clusters that GatewayProxies describe."""

    def __init__(self) -> None:
        self.syncs: list[ClusterSync] = []
        """The sync engine of each."""
        self.connect: Callable[[str, Target], GatewayCluster] | None = None
        """Connects the gateways of a GatewayProxy; set once the program is built."""
        self._clusters: dict[str, GatewayCluster] = {}
        self._targets: dict[str, Target] = {}
        self._connected: dict[str, Target] = {}
        self._start: Callable[[ClusterSync], asyncio.Task[None]] | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def __iter__(self) -> Iterator[GatewayCluster]:
        return iter(self._clusters.values())

    def add(self, cluster: GatewayCluster) -> None:
        """Add a cluster."""
        self._clusters[cluster.name] = cluster
        self.syncs.append(cluster.sync)

    def move(self, name: str, address: AdminAddress | None) -> None:
        """Use another address of a cluster from now on; None restores the address in the settings."""
        self._clusters[name].move(address)

    def set_target(self, proxy: str, target: Target | None) -> None:
        """Connect the gateways of a GatewayProxy, instead of former ones; None disconnects them.

        Several GatewayProxies may describe the same gateways; the first one determines the key. Disconnected gateways
        keep their records.
        """
        before = self._targets.pop(proxy, None)
        if target is not None:
            self._targets[proxy] = target
        for name in {each.name for each in (before, target) if each is not None}:
            self._use(name, next((each for each in self._targets.values() if each.name == name), None))

    def _use(self, name: str, target: Target | None) -> None:
        """Connect, change or disconnect the gateways with a name."""
        former, before = self._clusters.get(name), self._connected.pop(name, None)
        if target is not None:
            self._connected[name] = target
        if former is not None and before is not None and target is not None:
            if before == target:
                return
            if target.mode == STANDALONE and replace(before, urls=target.urls) == target:
                former.urls = target.urls
                return
        if former is not None:
            del self._clusters[name]
            self.syncs.remove(former.sync)
            closing = asyncio.create_task(self._disconnect(former), name=f"disconnect-{name}")
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
        if target is None or self.connect is None:
            return
        log.info("target.connected", cluster=name)
        cluster = self.connect(name, target)
        self.add(cluster)
        if self._start is not None:
            self._tasks[name] = self._start(cluster.sync)

    @contextmanager
    def started(self, start: Callable[[ClusterSync], asyncio.Task[None]]) -> Iterator[None]:
        """Start the engines with `start`, also those of gateways that are connected within the context."""
        self._start, self._tasks = start, {sync.name: start(sync) for sync in self.syncs}
        try:
            yield
        finally:
            self._start = None

    async def aclose(self) -> None:
        """Close every connection."""
        await asyncio.gather(*self._closing, *(cluster.aclose() for cluster in self._clusters.values()))

    async def _disconnect(self, cluster: GatewayCluster) -> None:
        log.info("target.disconnected", cluster=cluster.name)
        if (task := self._tasks.pop(cluster.name, None)) is not None:
            await cancel(task)
        await cluster.aclose()

    @property
    def load(self) -> Load:
        """How much is being written to the clusters."""
        if any(_is_in_bulk(sync) for sync in self.syncs):
            return "bulk"
        return "changes" if any(sync.quiet_for < CHANGE_SECONDS for sync in self.syncs) else "idle"


def _is_in_bulk(sync: ClusterSync) -> bool:
    """Return whether many records are queued for a cluster that accepts writes."""
    return sync.taken_over and sync.reachable and not sync.closed and sync.backlog > BULK_BACKLOG


def ledger_name(cluster: str, url: str, *, home: str) -> str:
    """Return the name of a cluster's ledger for a URL: records created at one URL do not exist at another."""
    if TARGET_MARK in cluster:  # the URL of a target is not valid as a key of a ConfigMap
        cluster = f"target-{hashlib.sha256(cluster.encode()).hexdigest()[:16]}"
    return cluster if url == home else f"{cluster}.{hashlib.sha256(url.encode()).hexdigest()[:8]}"


def connect_all(settings: Settings, controller_name: str, wiring: Wiring) -> Sequence[GatewayCluster]:
    """Build every cluster; nothing is sent yet.

    Raises:
        ConfigError: A file of an admin key or certificate cannot be used, or a published key is rejected.
    """
    found = []
    for index, cluster in enumerate(settings.clusters):
        agent, on_request = wiring.agent, wiring.on_request
        home = connect(settings, index, controller_name, clock=wiring.clock, agent=agent, on_request=on_request)
        found.append(GatewayCluster(home, cluster.admin_url, cluster, wiring))
    return found


def connect(
    settings: Settings,
    index: int,
    controller_name: str,
    *,
    clock: Clock,
    agent: str,
    on_request: RequestHook = lambda method, path, status, seconds: None,
) -> AdminClient:
    """Return the client of one cluster's Admin API at the address in the settings; nothing is sent yet.

    Raises:
        ConfigError: The file of its admin key or certificate cannot be used, or a published key is rejected.
    """
    cluster = settings.clusters[index]
    identity = Identity(controller_name, clock, agent, on_request)
    return _client(cluster, settings.preset, _fields(index, cluster), identity)


def connect_target(
    settings: Settings, controller_name: str, wiring: Wiring, name: str, target: Target
) -> GatewayCluster:
    """Build the cluster of a GatewayProxy, with the `sync` settings of the first cluster; nothing is sent yet."""
    register_secret(target.key)
    first = next(iter(target.urls), _NO_URL)
    cluster = ClusterSettings.model_construct(
        name=name,
        mode=target.mode,
        admin_url=first,
        more_admin_urls=target.urls[1:],
        admin_key=SecretStr(target.key),
        tls=TlsSettings(verify=target.verify),
        sync=settings.clusters[0].sync,
    )
    plane = f"spec.provider.controlPlane of the GatewayProxy for {name}"
    fields = Fields(f"endpoints in {plane}", f"auth in {plane}", "sync.largest_list of the first cluster")
    identity = Identity(controller_name, wiring.clock, wiring.agent, wiring.on_request)
    found = GatewayCluster(_client(cluster, settings.preset, fields, identity), first, cluster, wiring)
    found.urls = target.urls
    return found


class Identity(NamedTuple):
    """What all clients have in common."""

    controller_name: str
    clock: Clock
    agent: str
    on_request: RequestHook


def _client(cluster: ClusterSettings, preset: str, fields: Fields, identity: Identity) -> AdminClient:
    is_standalone = cluster.mode == STANDALONE
    client = StandaloneAdmin if is_standalone else AdminClient
    return client(
        cluster.admin_url,
        AdminKey(partial(_read_key, cluster, preset), cluster.admin_key_file),
        # Standalone gateways have a client each.
        more_urls=() if is_standalone else cluster.more_admin_urls,
        controller=identity.controller_name,
        # A write to standalone gateways may have to wait for the one before.
        timeout=cluster.sync.timeout / 2 if is_standalone else cluster.sync.timeout,
        concurrency=cluster.sync.concurrency,
        tls=_tls(cluster, identity.clock),
        user_agent=identity.agent,
        on_request=identity.on_request,
        fields=fields,
        largest_list=cluster.sync.largest_list,
    )


def _read_key(cluster: ClusterSettings, preset: str) -> SecretStr:
    key = cluster.read_admin_key()
    register_secret(key.get_secret_value())
    if cluster.admin_key_file and key.get_secret_value() in PUBLISHED_KEYS:
        text = f"cluster {cluster.name}: admin_key_file {cluster.admin_key_file}: holds what {PUBLISHED_KEY}"
        if preset == MULTI_TENANT:
            raise ConfigError(f"{text} (preset: {preset})")
        log.warning("settings.caution", caution=text)
    return key


def _tls(cluster: ClusterSettings, clock: Clock) -> TlsContext:
    files = TlsFiles(cluster.tls.ca_file, cluster.tls.cert_file, cluster.tls.key_file, cluster.tls.verify)
    return TlsContext(files, clock=clock, lazy=not cluster.admin_url.startswith("https:"))


def _fields(index: int, cluster: ClusterSettings) -> Fields:
    where = f"clusters[{index}]"
    largest = f"{where}.sync.largest_list"
    if cluster.admin_key_file:
        return Fields(f"{where}.admin_url", f"{where}.admin_key_file ({cluster.admin_key_file})", largest)
    variable = f"$APISIX_INGRESS_CLUSTERS__{index}__ADMIN_KEY"
    return Fields(f"{where}.admin_url", f"{where}.admin_key, admin_key_file or {variable}", largest)
