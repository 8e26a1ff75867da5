"""Closed before open: routes that refuse or guard requests are created before, and deleted after, routes that serve.

Between two writes a gateway serves what it has. If `/` of a host existed before `/admin`, which requires a password,
requests for `/admin` would reach the backend without one. So a route that is to be created, or that becomes more
exposed, waits until every less exposed route of its host was created or closed, or failed permanently. A delete waits
until the deletes of more exposed routes are done. Only requests of the same batch, or of an earlier one, count.

Only routes of the same namespace wait for each other: a namespace guards its own backends, and its writes must not
delay those of others, even if it uses their hosts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from apisix_ingress.gateway.sync.ordering.blockers import Blockers
from apisix_ingress.gateway.sync.ordering.scopes import Scope
from apisix_ingress.gateway.sync.records.slot import RecordSlot
from apisix_ingress.gateway.sync.records.table import RecordTable
from apisix_ingress.model.exposure import Exposure
from apisix_ingress.model.json import FrozenJson
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Record

ExposureOf = Callable[[FrozenJson, FrozenJson | None], Exposure]
"""Body of a route, and that of the plugin config that it refers to → how much it lets through."""

_CLASSES = tuple(Exposure)

_ANY = "*"
"""The scope of all routes of a namespace, in which routes for wildcards and for every host wait."""


class _Entry(NamedTuple):
    """A route that others wait for: its class and batch, and the namespace and hosts that they must have as well."""

    level: Exposure
    batch: int
    namespace: str
    hosts: tuple[str, ...]

    def scopes(self) -> tuple[Scope, ...]:
        """Return the scopes in which others wait for it."""
        return tuple([(self.level, self.namespace, host) for host in self.hosts])


class _Waits:
    """Routes that others wait for. The index over them is built by the first one that may have to wait."""

    def __init__(self) -> None:
        self.entries: dict[RecordKey, _Entry] = {}
        self._levels: Counter[Exposure] = Counter()
        self.blockers: Blockers | None = None

    def enter(self, key: RecordKey, entry: _Entry) -> None:
        """Add a route that has no entry."""
        self.entries[key] = entry
        self._levels[entry.level] += 1
        if self.blockers is not None:
            self.blockers.enter(key, entry.batch, entry.scopes())

    def leave(self, key: RecordKey) -> None:
        """Remove a route."""
        entry = self.entries.pop(key, None)
        if entry is not None:
            self._levels[entry.level] -= 1
            if self.blockers is not None:
                self.blockers.leave(key)

    def present(self, levels: Iterable[Exposure]) -> list[Exposure]:
        """Return in which of these classes there are routes that others wait for."""
        return [level for level in levels if self._levels[level]]

    def defer(self, key: RecordKey, waits: _Entry, levels: Iterable[Exposure]) -> bool:
        """Let a route wait for the routes of some classes; return whether it has to."""
        if self.blockers is None:
            self.blockers = Blockers()
            for other, entry in self.entries.items():
                self.blockers.enter(other, entry.batch, entry.scopes())
        scopes = ((level, waits.namespace, host) for level in levels for host in waits.hosts)
        return self.blockers.defer(key, waits.batch, scopes)

    def freed(self) -> Sequence[RecordKey]:
        """Return, once, the routes that no longer have to wait."""
        if self.blockers is None:
            return ()
        found = self.blockers.freed()
        if not self.entries and not self.blockers.deferred:
            self.blockers = None
        return found

    @property
    def is_clear(self) -> bool:
        """Whether no route waits."""
        return self.blockers is None or not self.blockers.deferred


class ExposureOrder:
    """The order of the creations and deletions of routes in one cluster.

    Args:
        table: What the cluster has.
        wanted_at: Returns the record that the cluster should have under a key, or None.
        exposure: Classifies a route.
    """

    def __init__(
        self, table: RecordTable, wanted_at: Callable[[RecordKey], Record | None], exposure: ExposureOf
    ) -> None:
        self._table = table
        self._wanted_at = wanted_at
        self._exposure = exposure
        self._levels: dict[RecordKey, tuple[FrozenJson, Exposure]] = {}
        """The bodies of the routes that are to be created, and their classes."""
        self._creations = _Waits()
        self._deletions = _Waits()

    def ordered(self, slot: RecordSlot, record: Record | None, namespace: str) -> None:
        """Note that a route was ordered to be written, or deleted (None)."""
        key, order = slot.key, slot.order if slot.flight is None else slot.next_order
        if order is None:
            return
        if key in self._levels:
            self._creations.leave(key)
        if self._deletions.entries:
            self._deletions.leave(key)
        if record is not None:
            if not slot.exists and (level := self._level_to_create(key, record.body)) < Exposure.OPEN:
                self._creations.enter(key, _Entry(level, order.batch, namespace, (*record.hosts, _ANY)))
        elif (level := max(self._levels_of(slot), default=Exposure.REFUSES)) > Exposure.REFUSES:
            self._deletions.enter(key, _Entry(level, order.batch, namespace, _exact(_hosts_of(slot))))

    def written(self, key: RecordKey, record: Record | None) -> None:
        """Note that a route was written, or deleted (None)."""
        if record is None:
            self._deletions.leave(key)
        elif self._levels.pop(key, None) is not None:
            self._creations.leave(key)

    def settled(self, slot: RecordSlot) -> None:
        """Note that a record exists, is gone, or is not going to change soon."""
        if self._levels.pop(slot.key, None) is not None:
            self._creations.leave(slot.key)
        if self._deletions.entries:
            self._deletions.leave(slot.key)

    def is_last(self, record: Record) -> bool:
        """Return whether a route that is to be written is new and without any guard, so that it may have to wait."""
        key = record.key
        return not self._table.get(key).exists and self._level_to_create(key, record.body) is Exposure.OPEN

    def is_awaited(self, key: RecordKey) -> bool:
        """Return whether other routes may wait for the creation of a route."""
        return key in self._creations.entries

    def may_write(self, slot: RecordSlot, record: Record, namespace: str) -> bool:
        """Return whether a route may be written now; if not, `due` will return its key when it may."""
        if not self._creations.entries:
            return True
        level = self.level(record.body) if slot.exists else self._level_to_create(slot.key, record.body)
        lower = self._creations.present(_CLASSES[:level])
        if not lower or ((known := slot.applied) is not None and self.level(known.body) >= level):
            return True
        waits = _Entry(level, _batch(slot), namespace, _exact(record.hosts))
        return not self._creations.defer(slot.key, waits, lower)

    def may_delete(self, slot: RecordSlot, namespace: str) -> bool:
        """Return whether a route may be deleted now; if not, `due` will return its key when it may."""
        known = slot.applied
        if not self._deletions.entries or known is None:
            return True
        entry = self._deletions.entries.get(slot.key)
        level = entry.level if entry is not None else self.level(known.body)  # its plugin config may be gone by now
        higher = self._deletions.present(_CLASSES[level + 1 :])
        waits = _Entry(level, _batch(slot), namespace, (*(known.hosts or ()), _ANY))
        return not (higher and self._deletions.defer(slot.key, waits, higher))

    def due(self) -> list[RecordKey]:
        """Return the records that may be written or deleted now."""
        if self._creations.blockers is None and self._deletions.blockers is None:
            return []
        return [*self._creations.freed(), *self._deletions.freed()]

    @property
    def is_idle(self) -> bool:
        """Whether no route has to wait, since none that others may wait for is outstanding."""
        return not (self._creations.entries or self._deletions.entries)

    @property
    def is_clear(self) -> bool:
        """Whether no route waits."""
        return self._creations.is_clear and self._deletions.is_clear

    def _levels_of(self, slot: RecordSlot) -> Iterator[Exposure]:
        return (self.level(body) for body in slot.bodies if body is not None)

    def _level_to_create(self, key: RecordKey, body: FrozenJson) -> Exposure:
        """Return the class of a route that does not exist; it is the same until the route is created or changed."""
        found = self._levels.get(key)
        if found is None or found[0] is not body:
            found = self._levels[key] = body, self.level(body)
        return found[1]

    def level(self, body: FrozenJson) -> Exposure:
        """Return how much a route lets through."""
        config = None
        if id_ := body.get("plugin_config_id"):
            key = RecordKey("plugin_configs", str(id_))
            wanted, known = self._wanted_at(key), self._table.get(key).applied
            config = wanted.body if wanted is not None else known.body if known is not None else None
        return self._exposure(body, config)


def _batch(slot: RecordSlot) -> int:
    return slot.order.batch if slot.order is not None else 0


def _hosts_of(slot: RecordSlot) -> tuple[str, ...] | None:
    """Return the hosts of a route as it will be after its flight; None if they are not known."""
    if slot.flight is not None and slot.flight.record is not None:
        return slot.flight.record.hosts
    return slot.observed.hosts if slot.observed is not None else None


def _exact(hosts: Iterable[str] | None) -> tuple[str, ...]:
    """Return the hosts of a route; a route with a wildcard may concern every route of its namespace."""
    found = tuple(hosts or ())
    return found if found and "*" not in "".join(found) else (_ANY,)
