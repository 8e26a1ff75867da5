"""The inputs of `explain`: a gateway's records, and what objects desire that the gateway does not have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from apisix_ingress.diagnostics.claimants import claimants
from apisix_ingress.diagnostics.collect.cluster_state import ClusterState, Step, api_server, look
from apisix_ingress.diagnostics.collect.gateway_state import SeenGateway
from apisix_ingress.diagnostics.collect.live_records import find_cluster, read_snapshot
from apisix_ingress.diagnostics.record_owners import written_owners
from apisix_ingress.diagnostics.reports.status import wellness
from apisix_ingress.diagnostics.wanted_certificates import missing_texts, wanted_certificates
from apisix_ingress.errors import GatewayError, GatewayUnavailable, IngressError
from apisix_ingress.explain.answer import Claimant, Unapplied
from apisix_ingress.model.json import FrozenJson
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.model.record_owner import origin
from apisix_ingress.settings import Settings
from translation.closing import is_closed

NO_OBJECTS = "objects were not read, so unpublished objects are not listed; add --config or --kubeconfig to read them"


@dataclass(frozen=True, slots=True)
class Evidence:
    """Inputs of `explain.report.explain`.

    Attributes:
        records: Bodies of the gateway's records.
        owners: Record → its owner, if known.
        unapplied: Records that should exist in a version that the gateway does not have.
        claimants: Objects with problems, or that are not served.
        missing: Host → why a certificate for it is missing.
        note: What could not be read; empty if everything was.
    """

    records: Mapping[RecordKey, FrozenJson]
    owners: Mapping[RecordKey, str]
    unapplied: Mapping[RecordKey, Unapplied] = field(default_factory=dict)
    claimants: tuple[Claimant, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)
    note: str = ""


Found = dict[str, Evidence | GatewayError]
"""Gateway cluster → its inputs, or why it could not be read."""


async def of_gateways(settings: Settings, cluster: str) -> Found:
    """Read one or all gateway clusters, without objects.

    Raises:
        ConfigError: No cluster has the name, or its key or certificate cannot be used.
    """
    return {name: await _of_gateway(settings, name, NO_OBJECTS) for name in _names(settings, cluster)}


async def of_everything(settings: Settings, cluster: str, step: Step) -> Found:
    """Read objects and one or all gateway clusters; these alone if the API server cannot be read.

    Raises:
        ConfigError: No cluster has the name, or its key or certificate cannot be used.
    """
    names = _names(settings, cluster)
    try:
        async with api_server(settings) as api:
            seen = await look(api, settings, step=step)
    except IngressError as error:
        return {name: await _of_gateway(settings, name, f"objects were not read: {error}") for name in names}
    return {each.name: _evidence(seen, each) for each in seen.gateways if each.name in names}


def _names(settings: Settings, cluster: str) -> list[str]:
    if cluster:
        return [settings.clusters[find_cluster(settings, cluster)].name]
    return [each.name for each in settings.clusters]


async def _of_gateway(settings: Settings, cluster: str, note: str) -> Evidence | GatewayError:
    try:
        records = dict((await read_snapshot(settings, cluster)).bodies)
    except GatewayError as error:
        return error
    return Evidence(records, _origins(records), note=note)


def _evidence(seen: ClusterState, gateway: SeenGateway) -> Evidence | GatewayError:
    if gateway.snapshot is None:
        return GatewayUnavailable(f"cluster {gateway.name} at {gateway.url}: {gateway.trouble}")
    records, inventory = gateway.snapshot.bodies, seen.inventory
    unapplied = dict(_unapplied(seen, gateway, records))
    keys = {*records, *unapplied}
    owned = {key: owner for key in keys if (owner := inventory.owner_of(key)) is not None}
    owners = {key: str(owner) for key, owner in written_owners(inventory.world, owned).items()}
    asking = tuple(claimants(inventory.world, inventory.options))
    problems = {owner: report.problems for owner, report in inventory.world.reports.items() if report.problems}
    missing = missing_texts(wanted_certificates(inventory.world, problems))
    return Evidence(records, {**_origins(records), **owners}, unapplied, asking, missing)


def _origins(records: Mapping[RecordKey, FrozenJson]) -> dict[RecordKey, str]:
    return {key: str(owner) for key, body in records.items() if (owner := origin(key, body))}


def _unapplied(
    seen: ClusterState, gateway: SeenGateway, records: Mapping[RecordKey, FrozenJson]
) -> list[tuple[RecordKey, Unapplied]]:
    wanted = seen.inventory.world.desired.records(gateway.name)
    return [
        (key, _unapplied_record(seen, key, record.body, records.get(key)))
        for key, record in wanted.items()
        if key.kind == "routes" and gateway.record_state(key).kind != "applied"
    ]


def _unapplied_record(seen: ClusterState, key: RecordKey, body: FrozenJson, there: FrozenJson | None) -> Unapplied:
    is_there_closed = there is not None and is_closed(there) and not is_closed(body)
    has_earlier = there is not None and not is_there_closed
    return Unapplied(body, _reason(seen, key), has_earlier=has_earlier, is_closed=is_there_closed)


def _reason(seen: ClusterState, key: RecordKey) -> str:
    """Return why a record is not applied, by the condition of its object."""
    own = seen.inventory.owner_of(key)
    owner = written_owners(seen.inventory.world, {key: own})[key] if own is not None else None
    item = _object(seen, owner) if owner is not None else None
    if item is None:
        return "it is not applied yet"
    well = wellness(item, seen)
    if well.state == "ok":
        return f"{owner} is reported as synced, but the gateway differs; the controller's next audit repairs it"
    return f"{well.reason}: {well.message}"


def _object(seen: ClusterState, owner: ObjectKey) -> CustomObject | None:
    store = seen.inventory.world.stores.get(owner.kind)
    item = store.get(owner) if store is not None else None
    return item if isinstance(item, CustomObject) else None
