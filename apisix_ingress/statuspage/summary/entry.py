"""One desired record with its owners and its state in each gateway cluster."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from apisix_ingress.diagnostics.shortfalls import is_empty
from apisix_ingress.gateway.sync.observer import RecordState
from apisix_ingress.model.json import FrozenJson
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.records import Record
from apisix_ingress.model.states import RECORD_STATUSES, RecordStatus

NOT_COMPARED = RecordState("unknown", "not compared with this cluster by this replica")
"""The state of a record for a follower, or for a leader that has just started."""

SERVES_LAST = "If the gateway still runs, it serves its last records"
"""What is known about a gateway cluster that does not respond."""

UNVERIFIED = RecordState("unknown", f"the cluster does not respond. {SERVES_LAST}")
"""The state of a record that was applied, or closed, in a cluster that does not respond now."""


_AWAY: frozenset[RecordStatus] = frozenset({"unknown", "unreachable"})


@dataclass(frozen=True, slots=True)
class Entry:
    """One record that should exist.

    Attributes:
        owners: The objects that define it, the winner first.
        states: Cluster → its state there.
    """

    record: Record
    owners: tuple[ObjectKey, ...]
    states: tuple[tuple[str, RecordState], ...]

    @property
    def key(self) -> RecordKey:
        """The record's key."""
        return self.record.key

    @property
    def owner(self) -> ObjectKey:
        """Its owner."""
        return self.owners[0]

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts of a route, or the server names of a certificate."""
        return _texts(self.record.body, "host", "hosts", "sni", "snis")

    @property
    def paths(self) -> tuple[str, ...]:
        """The uris of a route."""
        return _texts(self.record.body, "uri", "uris")

    @property
    def priority(self) -> int:
        """The priority of a route; 0 unless given."""
        return int(self.record.body.get("priority") or 0)

    @property
    def settled(self) -> bool:
        """Whether every cluster has the desired version."""
        return all(state.kind == "applied" for _, state in self.states)

    @property
    def status(self) -> RecordStatus:
        """The worst of its states; `partial` if it is applied in some clusters and others do not respond."""
        kinds: set[RecordStatus] = {state.kind for _, state in self.states}
        if "applied" in kinds and not kinds.isdisjoint(_AWAY):
            kinds = (kinds - _AWAY) | {"partial"}
        return next((each for each in reversed(RECORD_STATUSES) if each in kinds), "applied")

    @property
    def closed(self) -> str:
        """Why a gateway responds with 503 in its place; empty if none does."""
        return next((state.message for _, state in self.states if state.is_closed), "")

    @property
    def is_empty(self) -> bool:
        """Whether it is an upstream without nodes: its requests get 503."""
        return is_empty(self.record)

    def matches(self, words: Iterable[str]) -> bool:
        """Return whether its names contain each of the words, in lower case."""
        shown = (self.record.name, self.key.id, *map(str, self.owners), *self.hosts, *self.paths)
        text = "\n".join(shown).lower()
        return all(word in text for word in words)


def _texts(body: FrozenJson, *names: str) -> tuple[str, ...]:
    for name in names:
        if value := body.get(name):
            return (str(value),) if isinstance(value, str) else tuple(map(str, value))
    return ()
