"""From reports and record states to the condition of an object: what its status may say, and when.

A condition is True only once every gateway cluster has confirmed every record of the generation that was translated.
While that is under way nothing is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from apisix_ingress.gateway.sync.observer import RecordState
from apisix_ingress.model.condition import Condition, aborted, synced
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.kinds.table import kinds_of_records
from apisix_ingress.model.names import object_name
from apisix_ingress.model.records import Record
from apisix_ingress.state.world import World
from providers.cluster_config import ClusterConfigProvider
from providers.core.base import SHARED_HOST

_TAKEN = re.compile(r"duplicate [a-z_]{1,64} of plugin (\S+) found with consumer: (\S+)")
"""What a gateway says of a credential that another consumer has already."""


_CONFIG_KINDS = kinds_of_records("plugin_configs")

_MOST = 10
"""Failures that a message tells one by one; it is cut at 1,024 characters anyway."""


class Cluster(Protocol):
    """A gateway cluster, as far as conditions look at it."""

    @property
    def name(self) -> str:
        """The name in the settings."""

    @property
    def taken_over(self) -> bool:
        """Whether it was compared with what is wanted."""

    @property
    def trouble(self) -> str:
        """Why it is not written to; empty while it is."""

    @property
    def is_away(self) -> bool:
        """Whether that is because it does not answer, or not now."""

    def record_state(self, key: RecordKey) -> RecordState:
        """Return how far a wanted record is."""


@dataclass(frozen=True, slots=True)
class _Progress:
    """How far an object is in one cluster.

    Attributes:
        failures: What went wrong, each once.
        is_away: Whether all of it is that the cluster does not answer.
        pending: Records that are under way.
        is_awaited: Whether something is under way, be it no record.
        is_concerned: Whether the object wants anything there.
    """

    cluster: str
    failures: tuple[str, ...]
    is_away: bool
    pending: tuple[RecordKey, ...]
    is_awaited: bool
    is_concerned: bool


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
        return aborted(report.generation, _joined(broken)) if broken else self.of_records(owner)

    def of_records(self, owner: ObjectKey) -> Condition | None:
        """Return what became of the records of an object, whatever is wrong with it; None while that is under way."""
        report = self._world.reports.get(owner)
        if report is None:
            return None
        progress = [self._progress(owner, cluster) for cluster in self._clusters]
        for each in progress:
            for key in each.pending:
                self._waiting.setdefault(key, {})[owner] = None
        if failed := [each for each in progress if each.failures]:
            message = _joined([_told(progress), *self._unpublished(owner)])
            return aborted(report.generation, message, away=all(each.is_away for each in failed))
        notes = [problem.message for problem in report.problems if problem.code == SHARED_HOST]
        return None if any(each.is_awaited for each in progress) else synced(report.generation, *notes)

    def is_broken(self, owner: ObjectKey) -> bool:
        """Say whether the translation of an object failed, wholly or in part."""
        report = self._world.reports.get(owner)
        return report is not None and any(problem.severity != "warning" for problem in report.problems)

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

    def _unpublished(self, owner: ObjectKey) -> list[str]:
        """Return which plugin configs to look at that were never published: the id of a record tells a user nothing."""
        wanted, ids = self._world.desired, self._world.ids
        missing = {key.id for key in _refs(wanted.of_owner(owner).values()) if not wanted.owners_of(key)}
        reads = self._world.dependents.reads_of(owner) if missing else ()
        configs = [read for read in reads if isinstance(read, ObjectKey) and read.kind in _CONFIG_KINDS]
        return [
            f"see the condition of {key}"
            for key in sorted(configs)
            if ids.known_id("plugin_configs", object_name(key.namespace, key.name)) in missing
        ]

    def _progress(self, owner: ObjectKey, cluster: Cluster) -> _Progress:
        keys = list(self._keys(self._world.desired.of_owner(owner), cluster.name))
        states = [(key, cluster.record_state(key)) for key in keys]
        failed = [(key, state) for key, state in states if state.kind not in ("applied", "pending")]
        failures = [f"{key}: {self._words(owner, state.message)}" for key, state in failed]
        is_away = all(state.is_away for _, state in failed)
        pending = tuple(key for key, state in states if state.kind == "pending")
        # An object that says where the cluster is may want no record: it is in effect once something answers there.
        is_its_own = owner.kind == ClusterConfigProvider.kind and owner.name == cluster.name
        if is_its_own and cluster.trouble and not failures:
            failures, is_away = [cluster.trouble], cluster.is_away
        is_awaited = bool(pending) or (is_its_own and not cluster.taken_over)
        is_concerned = bool(keys) or is_its_own
        return _Progress(cluster.name, tuple(dict.fromkeys(failures)), is_away, pending, is_awaited, is_concerned)

    def _words(self, owner: ObjectKey, message: str) -> str:
        """Return a gateway's words as an owner may know them.

        Only a consumer of the same namespace is named. Of all others the message is the same, so that whoever guesses
        credentials does not learn whose they are.
        """

        def told(found: re.Match[str]) -> str:
            holders = self.owners(RecordKey("consumers", found[2]))
            if any(each.namespace == owner.namespace for each in holders):
                return f"{found.group()}; use another credential"
            return f"the credential for plugin {found[1]} can't be used; use another one"

        return _TAKEN.sub(told, message)

    def _keys(self, records: Mapping[RecordKey, Record], cluster: str) -> Iterator[RecordKey]:
        """Yield the records of an owner that a cluster should have, and those that they name."""
        wanted = [record for record in records.values() if record.clusters is None or cluster in record.clusters]
        yield from dict.fromkeys((*(record.key for record in wanted), *_refs(wanted)))


def _refs(records: Iterable[Record]) -> Iterator[RecordKey]:
    for record in records:
        yield from sorted(record.refs)


def _joined(parts: Sequence[str]) -> str:
    """Return the first parts in one text, and how many there are more: an object may have thousands."""
    left = len(parts) - _MOST
    return "; ".join([*parts[:_MOST], *([f"and {left} more"] if left > 0 else [])])


def _told(progress: Sequence[_Progress]) -> str:
    """Return what went wrong; with several clusters, where, who else accepted the object and who did not say yet."""
    if len(progress) == 1:
        return _joined(progress[0].failures)
    wrong = [f"cluster {each.cluster}: {failure}" for each in progress for failure in each.failures]
    others = [each for each in progress if each.is_concerned and not each.failures]
    accepted = ", ".join(each.cluster for each in others if not each.is_awaited)
    awaited = ", ".join(each.cluster for each in others if each.is_awaited)
    said = ([f"accepted by {accepted}"] if accepted else []) + ([f"not confirmed yet by {awaited}"] if awaited else [])
    return _joined([*said, *wrong] if len(wrong) > _MOST else [*wrong, *said])
