"""Records that are to have what a gateway lets one alone have: a plugin of global rules, a credential of consumers.

A gateway looks for another one that has it in its memory, which lags behind its store: of writes at one time it would
take all. So they are sent one after the other, the one of the oldest owner first. Whom the gateway refuses then, and
what follows from it, is not decided here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from apisix_ingress.gateway.sync.ordering.write_order import WriteOrder
from apisix_ingress.gateway.sync.plan import Wanted
from apisix_ingress.gateway.sync.records.observed import ObservedState
from apisix_ingress.model.keys import RecordKey, RecordKind
from apisix_ingress.model.records import Record

MEMORY_SECONDS = 0.5
"""After so long what was written is in a gateway's memory, which most often takes milliseconds."""


class UniqueKeys:
    """Which writes wait for others, and for how long after those.

    Args:
        cluster: Name of the cluster.
        wanted: The desired records.
        holdings: Knows what is under way.
        agenda: Knows what is about to be.
    """

    def __init__(self, cluster: str, wanted: Wanted, holdings: ObservedState, agenda: WriteOrder) -> None:
        self._cluster = cluster
        self._wanted = wanted
        self._holdings = holdings
        self._agenda = agenda
        self._line: set[RecordKey] = set()
        # By what one record of a kind alone may have: to whom it was given, and when.
        self._given: dict[tuple[RecordKind, tuple[str, str]], dict[RecordKey, float]] = {}

    def ahead(self, record: Record) -> RecordKey | None:
        """Return a record whose write has to end before the one of this record may begin, or None.

        Those that are not under way yet wait in a line, each for the one before it: when a write ends, one record is
        looked at again, not each of thousands that are to have the same.
        """
        for other, flight in self._holdings.flying.items():
            # Also one that is to have something else by now, or nothing.
            is_rival = flight is not None and flight.takes & record.takes
            if other.kind == record.key.kind and other != record.key and (is_rival or self._is_rival(other, record)):
                return other
        for other in self._wanted.older_takers(record.key, self._cluster):
            if (other in self._line or self._agenda.is_under_way(other)) and self._is_rival(other, record):
                return other
        return None

    def wait(self, key: RecordKey) -> None:
        """Note that a record waits for the one ahead of it."""
        self._line.add(key)

    def proceed(self, key: RecordKey) -> None:
        """Note that a record is looked at again."""
        self._line.discard(key)

    def _is_rival(self, other: RecordKey, record: Record) -> bool:
        wanted = self._wanted.get(other, self._cluster)
        return wanted is not None and bool(wanted.takes & record.takes)

    def delay(self, record: Record, now: float) -> float:
        """Return the seconds until the gateway knows what others were given."""
        # Also to who is to have something else by now: it may not get that, and then it keeps what it has.
        given = (self._given.get((record.key.kind, each), {}) for each in record.takes)
        times = (at for each in given for other, at in each.items() if other != record.key)
        return max(times, default=-math.inf) + MEMORY_SECONDS - now

    def landed(self, record: Record, now: float) -> None:
        """Note that a record was written, or may have been."""
        for each in record.takes:
            self._given.setdefault((record.key.kind, each), {})[record.key] = now

    def prune(self, now: float) -> None:
        """Forget the writes that a gateway knows of."""
        self._given = {each: young for each, given in self._given.items() if (young := _young(given, now))}


def _young(written: Mapping[RecordKey, float], now: float) -> dict[RecordKey, float]:
    return {key: at for key, at in written.items() if at + MEMORY_SECONDS > now}
