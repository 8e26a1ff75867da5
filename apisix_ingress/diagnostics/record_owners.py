"""The objects that users wrote for records: an Ingress instead of the host of ingress-nginx that owns its records."""

from __future__ import annotations

from collections.abc import Mapping

from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.state.world import World
from providers.status.host_records import HostRecords


def written_owners(world: World, owners: Mapping[RecordKey, ObjectKey]) -> dict[RecordKey, ObjectKey]:
    """Return record → the object that a user wrote for it; the first one if several Ingresses have its path."""
    hosts = HostRecords(world)
    return {key: hosts.owners(key, owner)[0] for key, owner in owners.items()}
