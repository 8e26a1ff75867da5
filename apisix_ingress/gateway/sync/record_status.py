"""How far a record is in one cluster, by all that the engine knows: for conditions, metrics and the status page.

It is worked out when it is asked for. Nothing here changes anything, and nothing is decided by it.
"""

from __future__ import annotations

from apisix_ingress.errors import GatewayUnavailable
from apisix_ingress.gateway.backend import DependencyPending, NotTried
from apisix_ingress.gateway.sync.circuit_breaker import CircuitBreaker
from apisix_ingress.gateway.sync.observer import APPLIED, PENDING, RecordState
from apisix_ingress.gateway.sync.ordering.write_order import WriteOrder
from apisix_ingress.gateway.sync.plan import Wanted
from apisix_ingress.gateway.sync.records.observed import ObservedState
from apisix_ingress.gateway.sync.records.quarantine import Quarantine
from apisix_ingress.gateway.sync.records.retries import RetryTracker, is_crash, told
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Record


class RecordStatus:
    """The states of the records of one cluster.

    Args:
        cluster: Its name.
        wanted: The desired records.
        holdings: What the cluster is known to hold.
        agenda: Which records wait for others.
        gate: Whether the cluster is written to.
        quarantine: Which records were rejected.
        setbacks: Which records keep failing.
    """

    def __init__(
        self,
        cluster: str,
        wanted: Wanted,
        holdings: ObservedState,
        *,
        agenda: WriteOrder,
        gate: CircuitBreaker,
        quarantine: Quarantine,
        setbacks: RetryTracker,
    ) -> None:
        self._cluster = cluster
        self._wanted = wanted
        self._holdings = holdings
        self._agenda = agenda
        self._gate = gate
        self._quarantine = quarantine
        self._setbacks = setbacks

    def state(self, key: RecordKey) -> RecordState:
        """Return how far a record is."""
        record = self._wanted.get(key, self._cluster)
        applied = self._holdings.applied.get(key)
        if record is None:
            return APPLIED if self._holdings.get(key) is None else PENDING
        if applied is not None and applied.matches(record):
            return APPLIED
        if key in self._holdings.foreign:
            return RecordState("rejected", f"the gateway has another record {key}, which is not ours: remove it there")
        if (words := self._quarantine.words(key, record)) is not None:
            return RecordState("rejected", words)
        if (outage := self._gate.outage) is not None and not self._gate.is_open:
            return RecordState("unreachable", outage.cause, self._gate.is_away)
        return self._outstanding(key, record)

    def _outstanding(self, key: RecordKey, record: Record) -> RecordState:
        """Return the state of a record that is wanted, not applied and not rejected."""
        parked = self._agenda.parked(key)
        if parked is not None:
            # One that it does not name is before it in a line for what one alone may have: its turn will come.
            return self._parked(parked.on) if parked.on in record.refs else PENDING
        if parked is None and not self._agenda.is_under_way(key) and self._holdings.is_of_another(key, record.name):
            return RecordState("waiting", f"the gateway has the record {key} of another object, whose id is the same")
        error = self._setbacks.lasting(key)
        if isinstance(error, DependencyPending | NotTried):
            return RecordState("waiting", str(error))
        if error is not None:
            # A gateway that crashes at a record answers: to wait for it may be in vain.
            is_away = isinstance(error, GatewayUnavailable) and not is_crash(error)
            return RecordState("unreachable", told(error), is_away)
        if record.existing_only and self._holdings.get(key) is None:
            return APPLIED  # not there, and not to be created: nothing is outstanding
        return PENDING

    def _parked(self, on: RecordKey) -> RecordState:
        """Return the state of a record that waits for another one: under way, as long as that one is under way."""
        record = self._wanted.get(on, self._cluster)
        if record is None:
            return RecordState("waiting", f"waits for {on}, which does not exist")
        if words := self._quarantine.words(on, record):
            return RecordState("waiting", f"waits for {on}, which the gateway rejected: {words}")
        state = self.state(on)
        if state == PENDING or (state == APPLIED and self._holdings.get(on) is not None):
            return PENDING
        why = f": {state.message}" if state.message else ", which is not there"
        return RecordState("waiting", f"waits for {on}{why}", state.is_away)
