"""Make before break for matches: a route keeps its match until the route that takes it over has it.

An edit may move matches between records: a rule that is inserted in front of others moves the match of each rule to the
next record. Without an order, no record would have a match between two writes, and requests for a guarded path would
reach a shorter one without its guard. So a route that loses its match, by a write or by a delete, waits until the route
that is to have this match has it. If the gateway rejects that route, the match stays where it was.

If routes exchange their matches in a cycle, the last one that would have to wait is written first. Only routes of one
namespace wait for each other. A delete only waits for routes that its owner had as well, so that a mistake in one
object does not keep the routes of another one.
"""

from __future__ import annotations

from collections.abc import Callable, Container

from apisix_ingress.gateway.sync.records.slot import RecordSlot
from apisix_ingress.gateway.sync.records.table import RecordTable
from apisix_ingress.model.json import FrozenJson, canonical
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Record

_MATCH = ("host", "hosts", "uri", "uris", "methods", "vars", "remote_addr", "remote_addrs", "filter_func")
"""The fields of a route that determine which requests it matches, except its priority."""

_Scope = tuple[str, bytes]
"""A namespace and a match."""


class MatchOrder:
    """The order in which matches pass from one route of a cluster to another.

    Args:
        table: What the cluster has.
        wanted_at: Returns the record that the cluster should have under a key, or None.
        namespace_of: Returns the namespace of the owner of a record that the cluster should have.
    """

    def __init__(
        self,
        table: RecordTable,
        wanted_at: Callable[[RecordKey], Record | None],
        namespace_of: Callable[[RecordKey], str],
    ) -> None:
        self._table = table
        self._wanted_at = wanted_at
        self._namespace_of = namespace_of
        self._scopes: dict[RecordKey, _Scope | None] = {}
        # Built by the first route that loses its match: usually, even in a sync of thousands of routes, none does.
        self._takers: dict[_Scope, dict[RecordKey, None]] | None = None
        # Route → the one that it waits for. `RecordSlot.blocked_on` is empty each time when it is considered again.
        self._waits: dict[RecordKey, RecordKey] = {}

    @property
    def is_idle(self) -> bool:
        """Whether no route has to wait."""
        return not self._scopes

    def ordered(self, key: RecordKey, record: Record | None) -> None:
        """Note that a route was ordered to be written, or deleted (None)."""
        self._forget(key)
        self._waits.pop(key, None)
        if record is not None:
            self._scopes[key] = None
            if self._takers is not None:
                self._enter(self._takers, key)

    def settled(self, slot: RecordSlot) -> None:
        """Forget a route that is as desired. One that the gateway rejected may still take over a match."""
        if slot.key in self._scopes and self._is_as_wanted(slot):
            self._forget(slot.key)

    def awaited(
        self, slot: RecordSlot, record: Record | None, namespace: str, among: Container[RecordKey] | None = None
    ) -> RecordKey | None:
        """Return the route that a write, or a delete (None), of a route has to wait for; None if it need not wait.

        Args:
            slot: The route.
            record: The record to be written.
            namespace: The namespace of its owner.
            among: The routes that it may wait for; None: all of the namespace.
        """
        self._waits.pop(slot.key, None)
        known = slot.applied
        if known is None:
            return None
        before = _match(known.body)
        if not before or (record is not None and _match(record.body) == before):
            return None
        if self._takers is None:
            self._takers = {}
            for key in self._scopes:
                self._enter(self._takers, key)
        takers = (key for key in self._takers.get((namespace, before), ()) if among is None or key in among)
        found = next((key for key in takers if key != slot.key and self._may_wait(slot.key, key, before)), None)
        if found is not None:
            self._waits[slot.key] = found
        return found

    def _may_wait(self, key: RecordKey, taker: RecordKey, match: bytes) -> bool:
        """Return whether a route is to take over a match that it does not have yet, and does not wait for the other."""
        record, slot = self._wanted_at(taker), self._table.get(taker)
        if record is None or slot.is_foreign or (record.existing_only and not slot.exists):
            return False
        has = slot.applied is not None and _match(slot.applied.body) == match
        return not has and not self._waits_for(taker, key)

    def _waits_for(self, key: RecordKey | None, other: RecordKey) -> bool:
        seen: set[RecordKey] = set()
        while key is not None and key not in seen:
            if key == other:
                return True
            seen.add(key)
            key = self._waits.get(key)
        return False

    def _is_as_wanted(self, slot: RecordSlot) -> bool:
        record = self._wanted_at(slot.key)
        return record is None or (slot.applied is not None and slot.applied.matches(record))

    def _enter(self, takers: dict[_Scope, dict[RecordKey, None]], key: RecordKey) -> None:
        record = self._wanted_at(key)
        if record is not None and not self._is_as_wanted(self._table.get(key)):
            scope = (self._namespace_of(key), _match(record.body))
            self._scopes[key] = scope
            takers.setdefault(scope, {})[key] = None

    def _forget(self, key: RecordKey) -> None:
        scope = self._scopes.pop(key, None)
        if scope is not None and self._takers is not None:
            del self._takers[scope][key]
            if not self._takers[scope]:
                del self._takers[scope]
        if not self._scopes:
            self._takers = None


def _match(body: FrozenJson) -> bytes:
    """Return the match of a route as text; empty without a path, or if it is nested too deeply to be sent."""
    if "uri" not in body and "uris" not in body:
        return b""
    try:
        return canonical({name: body[name] for name in _MATCH if name in body})
    except TypeError:
        return b""
