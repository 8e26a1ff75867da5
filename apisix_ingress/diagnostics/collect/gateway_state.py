"""The gateway clusters, read once: their records compared with the desired ones, their responses and their plugins."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from pydantic import SecretStr

from apisix_ingress import __version__
from apisix_ingress.diagnostics.collect.live_records import Snapshot, snapshot_of, with_gateway_defaults
from apisix_ingress.diagnostics.doctor.clock_skew import skew_seconds
from apisix_ingress.errors import GatewayError, GatewayUnauthorized, GatewayUnavailable, IngressError
from apisix_ingress.gateway.adminapi.admin_key import Fields
from apisix_ingress.gateway.adminapi.client import AdminClient, AdminKey
from apisix_ingress.gateway.backend import ClusterListing
from apisix_ingress.gateway.ledger import Ledger
from apisix_ingress.gateway.sync.observer import APPLIED, PENDING, RecordState
from apisix_ingress.model.admin_address import AdminAddress
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.observability.log import register_secret
from apisix_ingress.runtime.clock import Clock, MonotonicClock
from apisix_ingress.settings import Settings
from apisix_ingress.state.desired import Desired
from apisix_ingress.webhook.schemas.book import SchemaBook
from apisix_ingress.webhook.schemas.cache import SchemaCache
from apisix_ingress.wiring.clusters import connect, ledger_name


@dataclass(frozen=True, slots=True)
class Counts:
    """Records of one cluster, by state.

    Attributes:
        wanted: Records that it should have.
        there: Desired ones that it has in the desired form.
        differing: Desired ones that it has in another form.
        missing: Desired ones that it does not have.
        extra: Managed records without an object.
        foreign: Of other owners.
    """

    wanted: int = 0
    there: int = 0
    differing: int = 0
    missing: int = 0
    extra: int = 0
    foreign: int = 0

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left to write."""
        return not (self.differing or self.missing or self.extra)


class SeenGateway:
    """The state of one gateway cluster; conditions treat it like a live cluster.

    Args:
        name: In the settings.
        url: Of its Admin API.
        desired: The desired records.
    """

    def __init__(self, name: str, url: str, desired: Desired | None) -> None:
        self.name = name
        self.url = url
        self.trouble = ""
        """Why it could not be read; empty if it was."""
        self.is_refused = False
        """Whether it rejects the admin key."""
        self.is_away = False
        """Whether it does not respond at present: the failure may be temporary."""
        self.snapshot: Snapshot | None = None
        self.listing: ClusterListing | None = None
        self.latency: float | None = None
        """Seconds of its fastest response."""
        self.skew: float | None = None
        """Seconds that its clock is ahead of this machine's."""
        self.book: SchemaBook | None = None
        """What it publishes about plugins, if requested."""
        self._desired = desired

    @property
    def taken_over(self) -> bool:
        """Whether it was compared with the desired records."""
        return self.listing is not None

    @property
    def version(self) -> str:
        """The version in its Server header, or empty."""
        return self.snapshot.version if self.snapshot else ""

    def failed(self, error: Exception) -> None:
        """Record why it could not be read."""
        self.trouble = str(error)
        self.is_refused, self.is_away = isinstance(error, GatewayUnauthorized), isinstance(error, GatewayUnavailable)

    def timed(self, method: str, path: str, status: int | None, seconds: float) -> None:
        """Record the duration of a response."""
        if status is not None:
            self.latency = min(seconds, self.latency or seconds)

    def record_state(self, key: RecordKey) -> RecordState:
        """Return the sync state of a record."""
        if self.listing is None:
            return RecordState("unreachable", self.trouble, self.is_away)
        if key in self.listing.foreign:
            return RecordState("rejected", "the gateway has a record with this id that belongs to another owner")
        found = self.listing.owned.get(key) or self.listing.unclaimed.get(key)
        wanted = self._desired.get(key, self.name) if self._desired else None
        if found is None:
            return APPLIED if wanted is not None and wanted.existing_only else PENDING
        return APPLIED if wanted is None or found.digest == wanted.digest else PENDING

    def counts(self) -> Counts:
        """Return the number of records per state."""
        if self.listing is None or self._desired is None:
            return Counts()
        there, held = {**self.listing.unclaimed, **self.listing.owned}, self._desired.is_held
        all_wanted = self._desired.records(self.name)
        wanted = {key: each for key, each in all_wanted.items() if key in there or not each.existing_only}
        equal = sum(key in there and there[key].digest == each.digest for key, each in wanted.items())
        missing = sum(key not in there for key in wanted)
        owned = self.listing.owned
        extra = sum(key not in wanted and not held(key, found.name) for key, found in owned.items())
        strangers = len(self.listing.foreign) + sum(key not in wanted for key in self.listing.unclaimed)
        return Counts(len(wanted), equal, len(wanted) - equal - missing, missing, extra, strangers)


async def see_gateways(
    settings: Settings,
    desired: Desired | None,
    *,
    moved: Mapping[str, AdminAddress] | None = None,
    ledger: Ledger | None = None,
    plugins: bool = False,
) -> tuple[SeenGateway, ...]:
    """Read every gateway cluster; one that cannot be read has a reason.

    Args:
        settings: As configured for the controller.
        desired: The desired records; None if unknown.
        moved: Cluster → its address if that is not the one in the settings.
        ledger: The records without labels that belong to this installation.
        plugins: Whether to read the published plugins.
    """
    sight = _Sight(settings, desired, moved or {}, ledger, plugins)
    return tuple([await sight.see(index) for index in range(len(settings.clusters))])


@dataclass(frozen=True, slots=True)
class _Sight:
    """What to read from every gateway."""

    settings: Settings
    desired: Desired | None
    moved: Mapping[str, AdminAddress]
    ledger: Ledger | None
    plugins: bool
    clock: Clock = field(default_factory=MonotonicClock)

    async def see(self, index: int) -> SeenGateway:
        """Read one gateway cluster."""
        cluster, controller = self.settings.clusters[index], self.settings.kubernetes.controller_name
        address = self.moved.get(cluster.name)
        seen = SeenGateway(cluster.name, address.url if address else cluster.admin_url, self.desired)
        agent = f"apisix-ingress/{__version__} (command line)"
        try:
            home = connect(self.settings, index, controller, clock=self.clock, agent=agent, on_request=seen.timed)
        except IngressError as error:
            seen.trouble = str(error)
            return seen
        try:
            noted = await _noted(self.ledger, ledger_name(cluster.name, seen.url, home=cluster.admin_url))
            await self._read(seen, _moved(home, address), noted)
        finally:
            await home.aclose()
        return seen

    async def _read(self, seen: SeenGateway, backend: AdminClient, noted: Collection[RecordKey]) -> None:
        try:
            await backend.probe()
            snapshot = await snapshot_of(backend, self.settings, seen.name)
            seen.snapshot = await with_gateway_defaults(snapshot, self.desired, backend) if self.desired else snapshot
        except GatewayError as error:
            seen.failed(error)
            return
        except BaseExceptionGroup as errors:
            failed, others = errors.split(GatewayError)
            if failed is None or others is not None:
                raise
            seen.failed(failed.exceptions[0])
            return
        seen.skew = skew_seconds(backend.date, self.clock.now())
        seen.listing = seen.snapshot.listing(noted)
        if self.plugins:
            cache = SchemaCache(seen.name, backend.read, clock=self.clock, rng=random.Random(0))
            await cache.refresh()
            seen.book = cache.book


async def _noted(ledger: Ledger | None, cluster: str) -> Collection[RecordKey]:
    """Return the content of a ledger; an unreadable one is empty."""
    try:
        return await ledger.keys(cluster) if ledger else ()
    except IngressError:
        return ()


def _moved(home: AdminClient, address: AdminAddress | None) -> AdminClient:
    if address is None:
        return home
    register_secret(address.key)
    fields = Fields("spec.admin.baseURL of its ApisixClusterConfig", "spec.admin.adminKey of its ApisixClusterConfig")
    return home.elsewhere(address.url, AdminKey(lambda: SecretStr(address.key)), fields)
