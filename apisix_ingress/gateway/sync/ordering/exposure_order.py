"""Closed before open: routes that refuse or guard requests are created before, and deleted after, routes that serve.

Between two writes a gateway serves what it has. If `/` of a host existed before `/admin`, which requires a password,
requests for `/admin` would reach the backend without one. So a route that is to be created, or that becomes more
exposed, waits until every less exposed route of its host was created or closed, or failed for good. A delete waits
until the deletes of more exposed routes are done. Only requests of the same batch, or of an earlier one, count.

Only routes of the same namespace wait for each other: a namespace guards its own backends, and its writes must not
delay those of others, even if it uses their hosts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from apisix_ingress.gateway.sync.ordering.blockers import Blockers
from apisix_ingress.gateway.sync.ordering.scopes import Scope, patterns
from apisix_ingress.gateway.sync.records.slot import RecordSlot
from apisix_ingress.gateway.sync.records.table import RecordTable
from apisix_ingress.model.exposure import Exposure
from apisix_ingress.model.json import FrozenJson
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.network.host_claims import EVERY_HOST
from apisix_ingress.model.records import Record

ExposureOf = Callable[[FrozenJson, FrozenJson | None], Exposure]
"""Body of a route, and that of the plugin config that it refers to → how much it lets through."""


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
        self._creations = Blockers()
        self._deletions = Blockers()

    def ordered(self, slot: RecordSlot, record: Record | None, namespace: str) -> None:
        """Note that a record was ordered to be written, or deleted (None)."""
        key, order = slot.key, slot.order if slot.flight is None else slot.next_order
        if key.kind != "routes" or order is None:
            return
        if record is None:
            self._creations.leave(key)
            if (known := slot.applied) is not None and (level := self._level(known.body)) > Exposure.REFUSES:
                self._deletions.enter(key, order.batch, _unique(_exposed(level, known.hosts, namespace)))
            return
        self._deletions.leave(key)
        if not slot.exists and (level := self._level(record.body)) < Exposure.OPEN:
            self._creations.enter(key, order.batch, _unique(_covered(level, record.hosts, namespace)))
        else:
            self._creations.leave(key)

    def settled(self, slot: RecordSlot) -> None:
        """Note that a record exists, is gone, or is not going to change soon."""
        self._creations.leave(slot.key)
        self._deletions.leave(slot.key)

    def is_awaited(self, key: RecordKey) -> bool:
        """Return whether other routes wait for the creation of a route."""
        return key in self._creations

    def may_write(self, slot: RecordSlot, record: Record, namespace: str) -> bool:
        """Return whether a route may be written now; if not, `due` will return its key when it may."""
        if not self._creations or slot.key.kind != "routes":
            return True
        level = self._level(record.body)
        if (known := slot.applied) is not None and self._level(known.body) >= level:
            return True
        lower = map(Exposure, range(level))
        scopes = (scope for each in lower for scope in _exposed(each, record.hosts, namespace))
        return not self._creations.defer(slot.key, _batch(slot), scopes)

    def may_delete(self, slot: RecordSlot, namespace: str) -> bool:
        """Return whether a route may be deleted now; if not, `due` will return its key when it may."""
        known = slot.applied
        if not self._deletions or slot.key.kind != "routes" or known is None:
            return True
        higher = map(Exposure, range(self._level(known.body) + 1, Exposure.OPEN + 1))
        scopes = (scope for each in higher for scope in _covered(each, known.hosts or (EVERY_HOST,), namespace))
        return not self._deletions.defer(slot.key, _batch(slot), scopes)

    def due(self) -> list[RecordKey]:
        """Return the records that may be written or deleted now."""
        return [*self._creations.freed(), *self._deletions.freed()]

    @property
    def is_clear(self) -> bool:
        """Whether nothing waits."""
        return not self._creations.deferred and not self._deletions.deferred

    def _level(self, body: FrozenJson) -> Exposure:
        config = None
        if id_ := body.get("plugin_config_id"):
            key = RecordKey("plugin_configs", str(id_))
            wanted, known = self._wanted_at(key), self._table.get(key).applied
            config = wanted.body if wanted is not None else known.body if known is not None else None
        return self._exposure(body, config)


def _unique(scopes: Iterator[Scope]) -> tuple[Scope, ...]:
    return tuple(dict.fromkeys(scopes))


def _batch(slot: RecordSlot) -> int:
    return slot.order.batch if slot.order is not None else 0


def _covered(level: Exposure, hosts: Iterable[str], namespace: str) -> Iterator[Scope]:
    """Yield the scopes of a less exposed route: its hosts, the wildcards that match them, and every host."""
    for host in hosts:
        yield from (f"{level} {pattern} {namespace}" for pattern in patterns(host))
    yield f"{level} {EVERY_HOST} {namespace}"


def _exposed(level: Exposure, hosts: Iterable[str] | None, namespace: str) -> Iterator[Scope]:
    """Yield the scopes in which a more exposed route waits, or is waited for."""
    return (f"{level} {host} {namespace}" for host in hosts or (EVERY_HOST,))
