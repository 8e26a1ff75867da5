"""Why requests for an object fail although every gateway has its records: no ready Pod, or an expired certificate."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from apisix_ingress.model.formats.certificates import read_chain
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.objects import Service
from apisix_ingress.model.problem import Problem
from apisix_ingress.model.records import Record
from apisix_ingress.state.world import World
from providers.status.host_records import HostRecords

NO_ENDPOINTS = "NoEndpoints"
EXPIRED = "CertificateExpired"
"""Codes of `model.problem_codes`."""


class Shortfalls:
    """Finds what a condition does not say.

    Args:
        world: Objects, reports and desired records.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._host_records = HostRecords(world)

    def of(self, owner: ObjectKey) -> Problem | None:
        """Return why requests for an object fail, or None."""
        for upstream in self.idle_upstreams(owner):
            return Problem(NO_ENDPOINTS, idle(self._world.desired.owners_of(upstream)[0]))
        report = self._world.reports.get(owner)
        return next((each for each in report.problems if each.code == EXPIRED), None) if report else None

    def expired_at(self, owner: ObjectKey) -> datetime | None:
        """Return when the first certificate of an object ended, or will end; None if it has none."""
        return min((end for each in self.records(owner).values() for end in _ends(each)), default=None)

    def records(self, owner: ObjectKey) -> dict[RecordKey, Record]:
        """Return the records of an object, or for an Ingress of ingress-nginx those of its hosts that it has."""
        return dict(self._world.desired.of_owner(owner)) or self._host_records.of(owner)

    def idle_upstreams(self, owner: ObjectKey) -> Iterator[RecordKey]:
        """Yield the upstreams of an object that have no nodes, although their Service exists."""
        desired = self._world.desired
        for key in dict.fromkeys(ref for record in self.records(owner).values() for ref in sorted(record.refs)):
            owners = desired.owners_of(key)
            record = desired.of_owner(owners[0]).get(key) if owners else None
            if record is not None and is_empty(record) and exists(self._world, owners[0]):
                yield key


def _ends(record: Record) -> Iterator[datetime]:
    if record.key.kind == "ssls":
        yield read_chain(str(record.body["cert"]).encode())[0].not_valid_after_utc


def is_empty(record: Record) -> bool:
    """Return whether a record is an upstream without nodes: its requests get 503."""
    body = record.body
    return record.key.kind == "upstreams" and not body.get("nodes") and not body.get("service_name")


def exists(world: World, owner: ObjectKey) -> bool:
    """Return whether the owner of an upstream exists; without it, the objects that name it report that."""
    store = world.stores.get(owner.kind)
    return store is None or store.get(owner) is not None


def idle(owner: ObjectKey) -> str:
    """Return that no endpoint of a Service is ready."""
    what = f"{owner} has no ready Pod" if owner.kind == Service.__name__ else f"the upstream of {owner} has no nodes"
    return f"{what}, so its requests get the response 503"
