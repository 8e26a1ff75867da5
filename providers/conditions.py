"""From reports and record states to the condition of an object: what its status may say, and when.

A condition is True only once every gateway cluster has confirmed every record of the generation that was translated.
While that is under way nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from apisix_ingress.gateway.states import RecordState
from apisix_ingress.model.condition import Condition, aborted, synced
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.records import Record
from apisix_ingress.state.world import World


class Cluster(Protocol):
    """A gateway cluster, as far as conditions look at it."""

    @property
    def name(self) -> str:
        """The name in the settings."""

    def record_state(self, key: RecordKey) -> RecordState:
        """Return how far a wanted record is."""


class Conditions:
    """Computes conditions on demand; holds nothing but who was told nothing yet, because a record was under way.

    Args:
        world: Reports, desired records, claims.
        clusters: Every gateway cluster.
    """

    def __init__(self, world: World, clusters: Sequence[Cluster]) -> None:
        self._world = world
        self._clusters = clusters
        self._waiting: dict[RecordKey, dict[ObjectKey, None]] = {}

    def of(self, owner: ObjectKey) -> Condition | None:
        """Return what the status of an object should say, or None while there is nothing to say."""
        report = self._world.reports.get(owner)
        if report is None:
            return None
        broken = [str(problem) for problem in report.problems if problem.severity != "warning"]
        if broken:
            return aborted(report.generation, "; ".join(broken))
        failures, pending = self._progress(owner)
        for key in pending:
            self._waiting.setdefault(key, {})[owner] = None
        if failures:
            return aborted(report.generation, "; ".join(failures))
        return None if pending else synced(report.generation)

    def owners(self, key: RecordKey) -> tuple[ObjectKey, ...]:
        """Return the objects that want a record."""
        return self._world.desired.owners_of(key)

    def take_waiting(self, key: RecordKey) -> tuple[ObjectKey, ...]:
        """Return, once, the objects that were asked about while a record was under way.

        It may end in the state it had before, so a comparison of states would miss them.
        """
        return tuple(self._waiting.pop(key, ()))

    def interested(self, key: RecordKey) -> tuple[ObjectKey, ...]:
        """Return the objects whose condition may change with a record's state: owners, and those that refer to them."""
        owners = self.owners(key)
        claimants = (claimant.owner for owner in owners for claimant, _ in self._world.claims.of(owner))
        readers = (reader for owner in owners for reader in self._world.dependents.of(owner))
        return tuple(dict.fromkeys((*owners, *claimants, *readers)))

    def _progress(self, owner: ObjectKey) -> tuple[list[str], list[RecordKey]]:
        """Return what failed, by cluster, and which records are still under way."""
        failures: list[str] = []
        pending: list[RecordKey] = []
        for cluster in self._clusters:
            for key in self._keys(self._world.desired.of_owner(owner), cluster.name):
                state = cluster.record_state(key)
                if state.kind == "pending":
                    pending.append(key)
                elif state.kind != "applied":
                    failures.append(f"cluster {cluster.name}: {key}: {state.message}")
        return list(dict.fromkeys(failures)), pending

    def _keys(self, records: Mapping[RecordKey, Record], cluster: str) -> Iterator[RecordKey]:
        """Yield the records of an owner that a cluster should have, and those that they name."""
        wanted = [record for record in records.values() if record.clusters is None or cluster in record.clusters]
        yield from dict.fromkeys((*(record.key for record in wanted), *_refs(wanted)))


def _refs(records: Iterable[Record]) -> Iterator[RecordKey]:
    for record in records:
        yield from sorted(record.refs)
