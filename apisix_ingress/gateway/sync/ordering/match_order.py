"""Make before break for matches: a route keeps its match until the route that takes it over has it.

An edit may move matches between records: a rule that is inserted in front of others moves the match of each rule to the
next record. Without an order, no record would have a match between two writes, and requests for a guarded path would
reach a shorter one without its guard. So a route that loses its match, by a write or by a delete, waits until the route
that is to have this match has it. If the gateway rejects that route, the match stays where it was.

While a write is in flight, or if its response was lost, a route may have either match: others cannot rely on it, and it
may lose both.

If routes exchange their matches in a cycle, the most exposed one is written first: what guards a path is not lost. An
edit that arrives during another one often causes a cycle. Only routes of one namespace wait for each other. A delete
only waits for routes that its owner had or has, so that a mistake in one object does not keep the routes of another.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import NamedTuple

from apisix_ingress.gateway.sync.records.slot import RecordSlot
from apisix_ingress.gateway.sync.records.table import RecordTable
from apisix_ingress.model.exposure import Exposure
from apisix_ingress.model.json import FrozenJson, canonical
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Record

_MATCH = ("host", "hosts", "uri", "uris", "methods", "vars", "remote_addr", "remote_addrs", "filter_func")
"""The fields of a route that determine which requests it matches, except its priority."""

_Scope = tuple[str, bytes]
"""A namespace and a match."""


class _Wait(NamedTuple):
    """What a route waits for: another one is to take over a match."""

    taker: RecordKey
    match: bytes


class MatchOrder:
    """The order in which matches pass from one route of a cluster to another.

    Args:
        table: What the cluster has.
        wanted_at: Returns the record that the cluster should have under a key, or None.
        namespace_of: Returns the namespace of the owner of a record that the cluster should have.
        level_of: Classifies the body of a route.
    """

    def __init__(
        self,
        table: RecordTable,
        wanted_at: Callable[[RecordKey], Record | None],
        namespace_of: Callable[[RecordKey], str],
        level_of: Callable[[FrozenJson], Exposure],
    ) -> None:
        self._table = table
        self._wanted_at = wanted_at
        self._namespace_of = namespace_of
        self._level_of = level_of
        self._scopes: dict[RecordKey, _Scope | None] = {}
        # Built by the first route that loses its match: usually, even in a sync of thousands of routes, none does.
        self._takers: dict[_Scope, dict[RecordKey, None]] | None = None
        # `RecordSlot.blocked_on` is empty each time when a route is considered again.
        self._waits: dict[RecordKey, _Wait] = {}
        self._due: dict[RecordKey, None] = {}

    @property
    def is_idle(self) -> bool:
        """Whether no route has to wait."""
        return not self._scopes

    def ordered(self, key: RecordKey, record: Record | None) -> None:
        """Note that a route was ordered to be written, or deleted (None)."""
        if key in self._scopes:
            self._forget(key)
        if self._waits:
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
        if slot.observed is None or (len(self._scopes) == 1 and slot.key in self._scopes):
            return None
        self._waits.pop(slot.key, None)
        for before in _lost(slot, record):
            for taker in self._takers_of((namespace, before)):
                if taker == slot.key or (among is not None and taker not in among):
                    continue
                wait = _Wait(taker, before)
                if self._is_pending(wait) and not self._is_first(slot, wait):
                    self._waits[slot.key] = wait
                    return taker
        return None

    def due(self) -> list[RecordKey]:
        """Return, once, the routes that need not wait any longer because of a cycle."""
        if not self._due:
            return []
        found, self._due = [*self._due], {}
        return found

    def _is_first(self, slot: RecordSlot, wait: _Wait) -> bool:
        """Return whether a wait would complete a cycle, of which this route is the one to be written first."""
        cycle = self._cycle(slot.key, wait.taker)
        if not cycle:
            return False
        first = max(cycle, key=self._level)
        if self._level(first) > self._level(slot.key):
            # If something else blocks it, it is considered again after that.
            if self._table.get(first).blocked_on == self._waits[first].taker:
                self._due[first] = None
            return False
        return True

    def _cycle(self, key: RecordKey, taker: RecordKey) -> list[RecordKey]:
        """Return the routes that would wait for each other if a route waited for a taker; empty if they would not."""
        found = [key]
        while taker != key:
            found.append(taker)
            wait = self._waits.get(taker)
            if wait is None or wait.taker in found[1:] or not self._is_pending(wait):
                return []
            taker = wait.taker
        return found

    def _level(self, key: RecordKey) -> Exposure:
        known = self._table.get(key).applied
        return self._level_of(known.body) if known is not None else Exposure.OPEN

    def _takers_of(self, scope: _Scope) -> list[RecordKey]:
        if self._takers is None:
            self._takers = {}
            for key in self._scopes:
                self._enter(self._takers, key)
        return [*self._takers.get(scope, ())]

    def _is_pending(self, wait: _Wait) -> bool:
        """Return whether a route is to have a match, and may not have it yet."""
        record, slot = self._wanted_at(wait.taker), self._table.get(wait.taker)
        if record is None or slot.is_foreign or (record.existing_only and not slot.exists):
            return False
        if _match(record.body) != wait.match:
            return False
        bodies = slot.bodies
        return not bodies or any(body is None or _match(body) != wait.match for body in bodies)

    def _is_as_wanted(self, slot: RecordSlot) -> bool:
        record = self._wanted_at(slot.key)
        if record is None:
            return True
        return slot.flight is None and slot.applied is not None and slot.applied.matches(record)

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


def _lost(slot: RecordSlot, record: Record | None) -> list[bytes]:
    """Return the matches that a route has, or may have, and loses by a write or a delete (None)."""
    bodies = [body for body in slot.bodies if body is not None]
    if record is not None:
        bodies = [body for body in bodies if any(body.get(name) != record.body.get(name) for name in _MATCH)]
    if not bodies:
        return []
    kept = _match(record.body) if record is not None else b""
    return [found for found in dict.fromkeys(map(_match, bodies)) if found and found != kept]


def _match(body: FrozenJson) -> bytes:
    """Return the match of a route as text; empty without a path, or if it is nested too deeply to be sent."""
    if "uri" not in body and "uris" not in body:
        return b""
    try:
        return canonical({name: body[name] for name in _MATCH if name in body})
    except TypeError:
        return b""
