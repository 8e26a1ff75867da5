"""Records that are to have what a gateway lets one alone have: a plugin of global rules, a credential of consumers.

A gateway looks for another one that has it in its memory, which lags behind its store: of writes at one time it would
take all. So they are sent one after the other, the one of the oldest owner first. Whom the gateway refuses then, and
what follows from it, is not decided here.
"""

from __future__ import annotations

from apisix_ingress.gateway.agenda import Agenda
from apisix_ingress.gateway.holdings import Holdings
from apisix_ingress.gateway.plan import Wanted
from apisix_ingress.model.keys import RecordKey

MEMORY_SECONDS = 0.5
"""After so long what was written is in a gateway's memory, which most often takes milliseconds."""


class Contention:
    """Which writes wait for others, and for how long after those.

    Args:
        cluster: Name of the cluster.
        wanted: The desired records.
        holdings: Knows what is under way.
        agenda: Knows what is about to be.
    """

    def __init__(self, cluster: str, wanted: Wanted, holdings: Holdings, agenda: Agenda) -> None:
        self._cluster = cluster
        self._wanted = wanted
        self._holdings = holdings
        self._agenda = agenda
        self._landed_at: dict[RecordKey, float] = {}

    def ahead(self, key: RecordKey) -> RecordKey | None:
        """Return a record whose write has to end before the one of this record may begin, or None."""
        is_older = True
        for other in self._wanted.takers(key, self._cluster):
            if other == key:
                is_older = False
            elif other in self._holdings.flying or (is_older and self._agenda.is_under_way(other)):
                return other
        return None

    def delay(self, key: RecordKey, now: float) -> float:
        """Return the seconds until the gateway knows what the others were given."""
        others = (other for other in self._wanted.takers(key, self._cluster) if other != key)
        return max(
            (self._landed_at[other] + MEMORY_SECONDS - now for other in others if other in self._landed_at), default=0.0
        )

    def landed(self, key: RecordKey, now: float) -> None:
        """Note that a record was written."""
        self._landed_at[key] = now

    def prune(self, now: float) -> None:
        """Forget the writes that a gateway knows of."""
        self._landed_at = {key: at for key, at in self._landed_at.items() if at + MEMORY_SECONDS > now}
