"""Everything that one gateway cluster has, read once for a command: bodies, owners, and disabled kinds.

Only reads. The commands interpret and print it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from apisix_ingress import __version__
from apisix_ingress.errors import ConfigError, GatewayRejected, GatewayUnavailable
from apisix_ingress.gateway.adminapi.client import AdminClient
from apisix_ingress.gateway.adminapi.responses import found_of
from apisix_ingress.gateway.backend import ClusterListing, ObservedRecord
from apisix_ingress.gateway.sync.comparison.gateway_defaults import Defaults, adds_defaults
from apisix_ingress.model.json import FrozenJson
from apisix_ingress.model.keys import RECORD_KINDS, RecordKey, RecordKind
from apisix_ingress.model.names import CONTROLLER_LABEL, DEFAULT_CONTROLLER, MANAGED_BY, MANAGED_BY_VALUE, is_owned
from apisix_ingress.model.records import UNLABELLED
from apisix_ingress.runtime.clock import MonotonicClock
from apisix_ingress.settings import Settings
from apisix_ingress.state.desired import Desired
from apisix_ingress.wiring.clusters import connect

OTHER_KINDS: tuple[Any, ...] = ("services", "consumer_groups")
"""Kinds that this program never writes, but that records of other owners refer to."""


@dataclass(frozen=True)
class Snapshot:
    """The records of one gateway cluster.

    Attributes:
        cluster: Its name in the settings.
        url: Of its Admin API.
        controller: The controller whose records count as managed.
        bodies: Every record as the gateway returns it, including kinds that this program never writes (`services`).
        disabled: Kinds that the gateway does not serve.
        version: The version in its Server header, or empty.
        kept: Record → the digests of the desired body: as this gateway stores it, with its defaults, and unchanged.
        rejected: Desired record → why the gateway would reject it, as far as it was asked.
    """

    cluster: str
    url: str
    controller: str
    bodies: Mapping[RecordKey, FrozenJson]
    disabled: frozenset[RecordKind] = frozenset()
    version: str = ""
    kept: Mapping[RecordKey, tuple[bytes, bytes]] = field(default_factory=dict, repr=False)
    rejected: Mapping[RecordKey, str] = field(default_factory=dict)

    @cached_property
    def owned(self) -> frozenset[RecordKey]:
        """The records whose labels name this controller."""
        return frozenset(
            key for key in self.of_our_kinds() if is_owned(self.bodies[key].get("labels"), self.controller)
        )

    def listing(self, ledger: Collection[RecordKey] = ()) -> ClusterListing:
        """Return it as the sync engine sees it, given the known records without labels."""
        found = {key: self._found(key) for key in self.of_our_kinds()}
        ours = {key for key in found if key in self.owned or key in ledger}
        return ClusterListing(
            owned={key: found[key] for key in ours},
            foreign=frozenset(key for key in found if key not in ours and key.kind not in UNLABELLED),
            unclaimed={key: found[key] for key in found if key not in ours and key.kind in UNLABELLED},
            disabled=self.disabled,
            version=self.version,
        )

    def _found(self, key: RecordKey) -> ObservedRecord:
        """Return a record for comparison: one that differs only by the gateway's defaults equals the desired one."""
        found = found_of(key.kind, self.bodies[key])
        filled, plain = self.kept.get(key, (None, b""))
        return replace(found, digest=plain) if found.digest == filled else found

    def holder(self, key: RecordKey) -> str:
        """Return the name of the controller in a record's labels; empty if there is none."""
        labels = self.bodies[key].get("labels")
        if not isinstance(labels, dict) or labels.get(MANAGED_BY) != MANAGED_BY_VALUE:
            return ""
        return str(labels.get(CONTROLLER_LABEL, DEFAULT_CONTROLLER))

    def of_our_kinds(self) -> Iterator[RecordKey]:
        """Yield the records of kinds that this program writes, whatever their owner."""
        return (key for key in self.bodies if key.kind in RECORD_KINDS)


def find_cluster(settings: Settings, name: str = "") -> int:
    """Return the index of a cluster in the settings, of the first one if no name is given.

    Raises:
        ConfigError: No cluster has the name.
    """
    names = [cluster.name for cluster in settings.clusters]
    if not name:
        return 0
    if name not in names:
        raise ConfigError(f"--cluster {name}: unknown gateway cluster; the settings have {', '.join(names)}")
    return names.index(name)


@asynccontextmanager
async def admin_api(settings: Settings, cluster: str = "") -> AsyncIterator[AdminClient]:
    """Provide the client of a cluster's Admin API; nothing is sent yet.

    Raises:
        ConfigError: No cluster has the name, or its key or certificate is invalid.
    """
    index, controller = find_cluster(settings, cluster), settings.kubernetes.controller_name
    agent = f"apisix-ingress/{__version__} (command line)"
    backend = connect(settings, index, controller, clock=MonotonicClock(), agent=agent)
    try:
        yield backend
    finally:
        await backend.aclose()


async def read_snapshot(settings: Settings, cluster: str = "", desired: Desired | None = None) -> Snapshot:
    """Read every record of a gateway cluster, and the defaults that it adds to the desired ones, if those are given.

    Raises:
        ConfigError: No cluster has the name, or its key or certificate is invalid.
        GatewayError: It did not respond, or rejected the request; the message names the setting to correct.
    """
    async with admin_api(settings, cluster) as backend:
        found = await snapshot_of(backend, settings, cluster)
        return found if desired is None else await with_gateway_defaults(found, desired, backend)


async def snapshot_of(backend: AdminClient, settings: Settings, cluster: str = "") -> Snapshot:
    """Read every record through an open client.

    Raises:
        GatewayError: It did not respond, or rejected the request.
    """
    index = find_cluster(settings, cluster)
    chosen, kinds = settings.clusters[index], (*RECORD_KINDS, *OTHER_KINDS)
    try:
        lists = [await backend.bodies(kind) for kind in kinds]
    except GatewayUnavailable as error:
        where = f"cannot reach the Admin API of cluster {chosen.name} at {chosen.admin_url}"
        advice = f"check that it runs, and correct --admin-url or clusters[{index}].admin_url"
        raise GatewayUnavailable(f"{where}: {error}; {advice}", status=error.status) from None
    if all(found is None for found in lists):
        raise GatewayRejected(404, f"{chosen.admin_url} serves no kind of record: check admin_url")
    bodies = {
        RecordKey(kind, id_): body
        for kind, found in zip(kinds, lists, strict=True)
        for id_, body in sorted((found or {}).items())
    }
    disabled = frozenset(kind for kind, found in zip(RECORD_KINDS, lists, strict=False) if found is None)
    controller = settings.kubernetes.controller_name
    return Snapshot(chosen.name, chosen.admin_url, controller, bodies, disabled, backend.version)


async def with_gateway_defaults(snapshot: Snapshot, desired: Desired, backend: AdminClient) -> Snapshot:
    """Return a snapshot that knows the gateway's defaults in the desired records; they are read only if needed."""
    if not adds_defaults(snapshot.version):
        return snapshot
    found = {key: found_of(key.kind, snapshot.bodies[key]).digest for key in snapshot.of_our_kinds()}
    wanted = [record for key in found if (record := desired.get(key, snapshot.cluster)) is not None]
    differing = [record for record in wanted if found[record.key] != record.digest]
    defaults = Defaults(snapshot.cluster, backend.read, clock=MonotonicClock())
    await defaults.load_schemas(differing)
    kept = {each.key: (defaults.filled(each, found[each.key]), each.digest) for each in differing}
    return replace(snapshot, kept=kept)
