"""The records that an Ingress of ingress-nginx shares with others: its hosts own them, so it reports their failures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from apisix_ingress.model.json import list_in, mapping_in
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.kinds.indexes import NGINX_HOST_INDEX, nginx_hosts
from apisix_ingress.model.names import nginx_prefix, short_id
from apisix_ingress.model.objects import CustomObject, IngressClass
from apisix_ingress.model.problem import Problem
from apisix_ingress.model.records import Record
from apisix_ingress.state.world import World
from translation.nginx.options import CONTROLLER
from translation.safety.faults import SECRET_REFUSED, UNSAFE
from translation.safety.records import record_in

HOST = "NginxHost"

_OF_HOSTS = frozenset({UNSAFE, SECRET_REFUSED, "TooLarge"})
"""Codes of problems that only the translation of a host finds; the others are also found in its Ingresses."""

_MOST_INDEXED = 16
"""Number of hosts whose records are indexed at the same time."""

_ROOT = ("Prefix", "/")
"""The location for requests that match no path of an Ingress."""


class _Index(NamedTuple):
    """The records of one host: by the id of their location; `common` are the others, which belong to the whole host."""

    records: Mapping[RecordKey, Record]
    located: dict[str, list[Record]]
    common: list[Record]


class HostRecords:
    """Finds the records of Ingresses without records of their own."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._indexes: dict[str, _Index] = {}
        self._owners: dict[ObjectKey, dict[RecordKey, tuple[ObjectKey, ...]]] = {}

    def of(self, owner: ObjectKey) -> dict[RecordKey, Record]:
        """Return the records of the hosts of an Ingress that its paths, or all Ingresses of the host, have."""
        store = self._world.stores.get("Ingress") if owner.kind == "Ingress" else None
        item = store.get(owner) if store is not None else None
        if item is None or self._world.desired.of_owner(owner):
            return {}
        found: dict[RecordKey, Record] = {}
        for host in nginx_hosts(item):
            index = self._index(host)
            for location in dict.fromkeys(_locations(item, host)):
                found |= {record.key: record for record in index.located.get(location, ())}
            found |= {record.key: record for record in index.common}
        return found

    def problems(self, owner: ObjectKey) -> list[Problem]:
        """Return the problems of the hosts of an Ingress: those of the whole host, and of the records of its paths."""
        store = self._world.stores.get("Ingress") if owner.kind == "Ingress" else None
        item = store.get(owner) if store is not None else None
        reports = (self._world.reports.get(ObjectKey(HOST, "", host)) for host in (nginx_hosts(item) if item else ()))
        found = [each for report in reports if report for each in report.problems if each.code in _OF_HOSTS]
        if not found:
            return []  # nearly always
        own = {record.name for record in self.of(owner).values()}
        return [each for each in found if (name := record_in(each)) == "" or name in own]

    def ingresses(self, owner: ObjectKey) -> Iterator[ObjectKey]:
        """Yield the Ingresses that name a host."""
        store = self._world.stores.get("Ingress") if owner.kind == HOST else None
        if store is not None:
            yield from (item.meta.key for item in store.by_index(NGINX_HOST_INDEX, owner.name))

    def owners(self, key: RecordKey, owner: ObjectKey) -> tuple[ObjectKey, ...]:
        """Return the objects that users wrote for a record: instead of a host of ingress-nginx, its Ingresses.

        These are the Ingresses that have the path of the record; for a record of the whole host, all Ingresses of it;
        for the default server, the IngressClass.
        """
        if owner.kind != HOST:
            return (owner,)
        if owner not in self._owners:
            named = list(self.ingresses(owner))
            held = [(each, self.of(each)) for each in named]
            records = self._world.desired.of_owner(owner)
            self._owners[owner] = {
                record: tuple(each for each, its in held if record in its) or tuple(named) for record in records
            }
        return self._owners[owner].get(key) or tuple(self._classes()) or (owner,)

    def _classes(self) -> Iterator[ObjectKey]:
        """Yield the classes of ingress-nginx, which stand for its default server: no Ingress names that host."""
        store = self._world.stores.get("IngressClass")
        for item in store.values() if store is not None else ():
            if isinstance(item, IngressClass) and item.controller == CONTROLLER:
                yield item.meta.key

    def _index(self, host: str) -> _Index:
        records = self._world.desired.of_owner(ObjectKey(HOST, "", host))
        known = self._indexes.get(host)
        if known is not None and known.records is records:
            return known
        located: dict[str, list[Record]] = {}
        common: list[Record] = []
        for record in records.values():
            location = _location_of(record, host)
            (located.setdefault(location, []) if location else common).append(record)
        if len(self._indexes) >= _MOST_INDEXED:
            self._indexes.clear()
        self._indexes[host] = _Index(records, located, common)
        return self._indexes[host]


def _locations(item: CustomObject, host: str) -> Iterator[str]:
    """Yield the ids of the locations that the paths of an Ingress at a host may have, see `nginx.servers`."""
    yield short_id(" ".join(_ROOT))
    for rule in map(mapping_in, list_in(item.spec.get("rules"))):
        if (str(rule.get("host") or "").lower() or "_") != host:
            continue
        for path in map(mapping_in, list_in(mapping_in(rule.get("http")).get("paths"))):
            text = str(path.get("path") or "/")
            for location in (f"Exact {text}", f"Prefix {text}", f"Prefix {text.rstrip('/')}/"):
                yield short_id(location)


def _location_of(record: Record, host: str) -> str:
    """Return the id of the location of a route; empty for other records, and for routes of the host as a whole."""
    head, dash, _ = record.name.removeprefix(nginx_prefix(host)).partition("-")
    is_location = record.key.kind == "routes" and dash and head not in ("app", "www", "slash")
    return head if is_location else ""
