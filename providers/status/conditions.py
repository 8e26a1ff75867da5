"""Derives the condition of an object from its report and the states of its records.

A condition is True only once every gateway cluster has confirmed every record of the translated generation. Until then
the condition is left unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from apisix_ingress.gateway.sync.observer import RecordState
from apisix_ingress.model.condition import Cause, Condition, aborted, synced
from apisix_ingress.model.formats.patterns import Match, TextPattern
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.kinds.table import kinds_of_records
from apisix_ingress.model.names import object_name
from apisix_ingress.model.problem import Problem
from apisix_ingress.model.problem_codes.nginx_codes import ANNOUNCED
from apisix_ingress.model.records import Record, is_meant_for
from apisix_ingress.state.world import World
from providers.cluster_config import ClusterConfigProvider
from providers.core.problems import SHARED_HOST
from providers.status.host_records import HostRecords

_TAKEN = TextPattern(r"duplicate [a-z_]{1,64} of plugin (\S+) found with consumer: (\S+)")
"""The error of a gateway if another consumer already has the credential."""


_CONFIG_KINDS = kinds_of_records("plugin_configs")

AWAY_REASON, REJECTED_REASON = "GatewayUnavailable", "GatewayRejected"
"""Reasons of Events about records."""

_MOST = 10
"""Failures that a message lists; the message is truncated to 1,024 characters anyway."""


class Cluster(Protocol):
    """The parts of a gateway cluster that conditions use."""

    @property
    def name(self) -> str:
        """The name in the settings."""

    @property
    def taken_over(self) -> bool:
        """Whether it was compared with the desired records."""

    @property
    def trouble(self) -> str:
        """Why writes to it are stopped; empty if they are not."""

    @property
    def is_away(self) -> bool:
        """Whether they are stopped because it does not respond, or is temporarily unavailable."""

    def record_state(self, key: RecordKey) -> RecordState:
        """Return the sync state of a desired record."""


@dataclass(frozen=True, slots=True)
class _Progress:
    """The sync progress of an object in one cluster.

    Attributes:
        failures: Messages of failures, without duplicates.
        is_away: Whether all failures mean that the cluster does not respond.
        pending: Records that are not synced yet.
        is_awaited: Whether a record or the takeover of the cluster is pending.
        is_concerned: Whether the object affects this cluster.
    """

    cluster: str
    failures: tuple[str, ...]
    is_away: bool
    pending: tuple[RecordKey, ...]
    is_awaited: bool
    is_concerned: bool


class Conditions:
    """Computes conditions on demand; remembers only which objects wait for a pending record.

    Args:
        world: Reports, desired records, claims.
        clusters: Every gateway cluster.
    """

    def __init__(self, world: World, clusters: Sequence[Cluster]) -> None:
        self._world = world
        self._clusters = clusters
        self._host_records = HostRecords(world)
        self._waiting: dict[RecordKey, dict[ObjectKey, None]] = {}

    def of(self, owner: ObjectKey) -> Condition | None:
        """Return the desired condition of an object, or None to leave the current one unchanged."""
        report = self._world.reports.get(owner)
        if report is None:
            return None
        problems = (*report.problems, *self._host_records.problems(owner))
        broken = [problem for problem in problems if problem.severity != "warning"]
        if broken:
            causes = [Cause(problem.code, str(problem)) for problem in broken[:_MOST]]
            found: Condition | None = aborted(report.generation, _joined(list(map(str, broken))), causes=causes)
        else:
            found = self.of_records(owner)
        warning = _warning(report.problems)
        return replace(found, warning=warning) if found and warning else found

    def of_records(self, owner: ObjectKey) -> Condition | None:
        """Return the condition of an object from its records alone; None while records are pending."""
        report = self._world.reports.get(owner)
        if report is None:
            return None
        progress = [self._progress(owner, cluster) for cluster in self._clusters]
        for each in progress:
            for key in each.pending:
                self._waiting.setdefault(key, {})[owner] = None
        if failed := [each for each in progress if each.failures]:
            message = _joined([_failures(progress), *self._unpublished(owner)])
            is_away = all(each.is_away for each in failed)
            return aborted(report.generation, message, away=is_away, causes=_causes(failed))
        notes = [problem.message for problem in report.problems if problem.code == SHARED_HOST]
        return None if any(each.is_awaited for each in progress) else synced(report.generation, *notes)

    def is_broken(self, owner: ObjectKey) -> bool:
        """Return whether the translation of an object failed, entirely or in part."""
        report = self._world.reports.get(owner)
        return report is not None and any(problem.severity != "warning" for problem in report.problems)

    def owners(self, key: RecordKey) -> tuple[ObjectKey, ...]:
        """Return the objects that define a record."""
        return self._world.desired.owners_of(key)

    def take_waiting(self, key: RecordKey) -> tuple[ObjectKey, ...]:
        """Return and forget the objects whose condition was requested while a record was pending.

        The record may return to its previous state, so comparing states would miss these objects.
        """
        return tuple(self._waiting.pop(key, ()))

    def interested(self, key: RecordKey) -> tuple[ObjectKey, ...]:
        """Return the objects whose condition depends on a record: its owners and objects that refer to them."""
        owners = self.owners(key)
        claimants = (claimant.owner for owner in owners for claimant, _ in self._world.claims.of(owner))
        readers = (reader for owner in owners for reader in self._world.dependents.of(owner))
        return tuple(dict.fromkeys((*owners, *claimants, *readers)))

    def ingresses_of(self, owner: ObjectKey) -> Iterator[ObjectKey]:
        """Yield the Ingresses that report the problems of their host."""
        return self._host_records.ingresses(owner)

    def ingresses(self, key: RecordKey) -> Iterator[ObjectKey]:
        """Yield the Ingresses that report failures of a record which their host owns."""
        for owner in self.owners(key):
            yield from self._host_records.ingresses(owner)

    def _unpublished(self, owner: ObjectKey) -> list[str]:
        """Return hints to plugin configs that were never published, as users do not know the ids of records."""
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
        records = self._world.desired.of_owner(owner) or self._host_records.of(owner)
        keys = list(self._keys(records, cluster.name))
        states = [(key, cluster.record_state(key)) for key in keys]
        failed = [(key, state) for key, state in states if state.kind not in ("applied", "pending")]
        is_away = all(state.is_away for _, state in failed)
        # The cause of an outage is the same for every record; a rejection is about one of them.
        messages = [(key, self._redacted(owner, state.message)) for key, state in failed]
        failures = [message if is_away else f"{key}: {message}" for key, message in messages]
        pending = tuple(key for key, state in states if state.kind == "pending")
        # An object that sets the address of the cluster may have no records: it waits until that address responds.
        is_its_own = owner.kind == ClusterConfigProvider.kind and owner.name == cluster.name
        if is_its_own and cluster.trouble and not failures:
            failures, is_away = [cluster.trouble], cluster.is_away
        is_awaited = bool(pending) or (is_its_own and not cluster.taken_over)
        is_concerned = bool(keys) or is_its_own
        return _Progress(cluster.name, tuple(dict.fromkeys(failures)), is_away, pending, is_awaited, is_concerned)

    def _redacted(self, owner: ObjectKey, message: str) -> str:
        """Return a gateway's error without details that the owner must not learn.

        It names a consumer only if it is in the same namespace. For all others the message is the same, so that
        guessing credentials does not reveal their owner.
        """

        def replaced(found: Match) -> str:
            holders = self.owners(RecordKey("consumers", found[2]))
            if any(each.namespace == owner.namespace for each in holders):
                return f"{found[0]}; use another credential"
            return f"the credential for plugin {found[1]} cannot be used; use another one"

        return _TAKEN.sub(replaced, message)

    def _keys(self, records: Mapping[RecordKey, Record], cluster: str) -> Iterator[RecordKey]:
        """Yield the records of an owner that a cluster should have, and the records that they reference."""
        wanted = [record for record in records.values() if is_meant_for(record.clusters, cluster)]
        yield from dict.fromkeys((*(record.key for record in wanted), *_refs(wanted)))


def _refs(records: Iterable[Record]) -> Iterator[RecordKey]:
    for record in records:
        yield from sorted(record.refs)


def _warning(problems: Iterable[Problem]) -> Cause | None:
    """Return the warnings to announce as one cause."""
    found = [each for each in problems if each.code in ANNOUNCED]
    return Cause(found[0].code, _joined([str(each) for each in found])) if found else None


def _joined(parts: Sequence[str]) -> str:
    """Join the first parts and add the number of the remaining ones: an object may have thousands."""
    left = len(parts) - _MOST
    return "; ".join([*parts[:_MOST], *([f"and {left} more"] if left > 0 else [])])


def _causes(failed: Sequence[_Progress]) -> list[Cause]:
    """Return the first failures with their clusters."""
    return [
        Cause(AWAY_REASON if each.is_away else REJECTED_REASON, f"cluster {each.cluster}: {failure}")
        for each in failed
        for failure in each.failures
    ][:_MOST]


def _failures(progress: Sequence[_Progress]) -> str:
    """Return the failures; with several clusters, also which of them failed, accepted it or did not confirm it."""
    if len(progress) == 1:
        return _joined(progress[0].failures)
    wrong = [f"cluster {each.cluster}: {failure}" for each in progress for failure in each.failures]
    others = [each for each in progress if each.is_concerned and not each.failures]
    accepted = ", ".join(each.cluster for each in others if not each.is_awaited)
    awaited = ", ".join(each.cluster for each in others if each.is_awaited)
    said = ([f"accepted by {accepted}"] if accepted else []) + ([f"not confirmed yet by {awaited}"] if awaited else [])
    return _joined([*said, *wrong] if len(wrong) > _MOST else [*wrong, *said])
