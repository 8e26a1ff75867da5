"""The sync state of a record in one cluster, for conditions, metrics and the status page; derived from its slot."""

from __future__ import annotations

from dataclasses import replace

from apisix_ingress.errors import GatewayUnavailable
from apisix_ingress.gateway.backend import DependencyPending, NotTried
from apisix_ingress.gateway.sync.circuit_breaker import CircuitBreaker
from apisix_ingress.gateway.sync.closing import Closings
from apisix_ingress.gateway.sync.observer import APPLIED, PENDING, RecordState
from apisix_ingress.gateway.sync.ordering.write_order import WriteOrder
from apisix_ingress.gateway.sync.plan import Wanted
from apisix_ingress.gateway.sync.records.retries import is_crash, with_remedy
from apisix_ingress.gateway.sync.records.slot import RecordSlot
from apisix_ingress.gateway.sync.records.table import RecordTable
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Record


class RecordStatus:
    """The states of the records of one cluster."""

    def __init__(
        self,
        cluster: str,
        wanted: Wanted,
        table: RecordTable,
        order: WriteOrder,
        breaker: CircuitBreaker,
        closings: Closings,
    ) -> None:
        self._cluster = cluster
        self._wanted = wanted
        self._table = table
        self._order = order
        self._breaker = breaker
        self._closings = closings
        self.is_filling = False
        """Whether the gateways do not have the records yet whose writes have ended."""

    def state(self, slot: RecordSlot) -> RecordState:
        """Return the sync state of a record."""
        found = self._state(slot)
        if not found.message:
            return found
        note = self._closings.note(slot)
        return replace(found, message=f"{found.message}; {note}", is_closed=True) if note else found

    def _state(self, slot: RecordSlot) -> RecordState:
        key = slot.key
        record = self._wanted.get(key, self._cluster)
        if record is None:
            return APPLIED if slot.observed is None else PENDING
        applied = slot.applied
        if applied is not None and applied.matches(record):
            return PENDING if self.is_filling else APPLIED
        if slot.is_foreign:
            return RecordState("rejected", f"another client created {key}: delete it in the gateway")
        if (message := slot.rejected(record)) is not None:
            return RecordState("rejected", message)
        if (outage := self._breaker.outage) is not None and self._breaker.is_tripped:
            return RecordState("unreachable", outage.cause, outage.is_away)
        return self._outstanding(slot, record)

    def _outstanding(self, slot: RecordSlot, record: Record) -> RecordState:
        """Return the state of a record that is desired, not applied and not rejected."""
        key, on = slot.key, slot.blocked_on
        if on is not None:
            # Records with the same exclusive key are written one after the other, so this wait is short.
            return self._blocked(on) if on in record.refs or key.kind == "routes" else PENDING
        if not self._order.is_counted(slot.key) and slot.is_of_another(record.name):
            return RecordState("waiting", f"the gateway has the record {key} of another object, whose id is the same")
        error = slot.persistent_error
        if isinstance(error, DependencyPending | NotTried):
            return RecordState("waiting", str(error))
        if error is not None:
            # A gateway that replies 500 to this record is reachable, so the failure may be permanent.
            is_away = isinstance(error, GatewayUnavailable) and not is_crash(error)
            # The wording of an outage: no condition changes only because the breaker trips later.
            message = (is_away and error.cause) or with_remedy(error)
            return RecordState("unreachable", message, is_away)
        if record.existing_only and slot.observed is None:
            return APPLIED  # it does not exist and must not be created
        return PENDING

    def _blocked(self, on: RecordKey) -> RecordState:
        """Return the state of a record that waits for another one: pending as long as the other one is."""
        record, slot = self._wanted.get(on, self._cluster), self._table.get(on)
        if record is None:
            return RecordState("waiting", f"waits for {on}, which does not exist")
        if message := slot.rejected(record):
            return RecordState("waiting", f"waits for {on}, which the gateway rejected: {message}")
        state = self._state(slot)
        if state == PENDING or (state == APPLIED and slot.observed is not None):
            return PENDING
        why = f": {state.message}" if state.message else ", which does not exist"
        return RecordState("waiting", f"waits for {on}{why}", state.is_away)
