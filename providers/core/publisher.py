"""Publishes the outcomes of one kind: desired records, claims, reports, and what later outcomes are compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import structlog

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.table import has_status
from apisix_ingress.model.objects import KubeObject
from apisix_ingress.model.problem import Problem
from apisix_ingress.model.records import Record
from apisix_ingress.state.claims import Claimant
from apisix_ingress.state.desired import Change
from apisix_ingress.state.hosts.shared_hosts import shared_hosts
from apisix_ingress.state.view import TrackingView
from apisix_ingress.state.world import Report
from providers.core.deps import ProviderDeps
from providers.core.problems import CRASHED, conflicts, log_problems, shared, unread
from translation.core.grants import Destination, Reference
from translation.core.holds import holds_by_name
from translation.core.outcome import NOT_SERVED, NOTHING, KeepLast, Outcome, Published, Withdrawn
from translation.hosts.host_owners import NAMING_KINDS
from translation.policies import LastVersion, PolicyInputs, budgeted_bytes

log = structlog.get_logger()

_NO_PERMISSIONS: tuple[frozenset[Reference], frozenset[Destination]] = (frozenset(), frozenset())


class Publication(NamedTuple):
    """The effects of an outcome: changed desired records, and owners to translate because of changed claims."""

    change: Change
    targets: frozenset[ObjectKey]


class Publisher:
    """Applies outcomes to the state, on the event loop.

    Args:
        deps: State, settings, and the receivers of changes.
        kind: The kind of the owners.
        urgent: Whether their records are written before others.
        names_hosts: Whether the hosts of their records are those of their namespace.
        since: Returns when the change of a queued owner was seen, in monotonic seconds.
    """

    def __init__(
        self, deps: ProviderDeps, kind: str, *, urgent: bool, names_hosts: bool, since: Callable[[ObjectKey], float]
    ) -> None:
        self._world = deps.world
        self._options = deps.options
        self._sink = deps.sink
        self._router = deps.router
        self._outcome = deps.outcome
        self._kind = kind
        self._urgent = urgent
        self._names_hosts = names_hosts
        self._since = since
        self._permissions: dict[ObjectKey, tuple[frozenset[Reference], frozenset[Destination]]] = {}

    def inputs(self, key: ObjectKey, item: KubeObject | None, view: TrackingView) -> PolicyInputs:
        """Return what policies compare the outcome of a translation with."""
        last = LastVersion(self._world.desired.of_owner(key), *self._permissions.get(key, _NO_PERMISSIONS))
        return PolicyInputs(key, item, view, self._options, tuple(view.secrets.values()), self._world.budget, last)

    def publish(self, key: ObjectKey, item: KubeObject | None, outcome: Outcome) -> None:
        """Apply an outcome, and pass its effects on."""
        claimant = Claimant(item.meta.created if item else "", key)
        before = self._world.desired.of_owner(key)
        self._remember(key, outcome)
        match outcome:
            case Published():
                done = self._replace(claimant, outcome)
            case KeepLast():
                done = self._keep(claimant, outcome)
            case Withdrawn():
                done = self._withdraw(claimant, outcome)
        self._world.desired.refuse(key, outcome.deletable)
        self._announce(key, done, before.values())
        if outcome is NOT_SERVED:
            self._forget(key)
        else:
            has_same_records = item is not None and self._world.desired.of_owner(key).keys() == before.keys()
            self._report(key, item, outcome, has_same_records=has_same_records)

    def crashed(self, key: ObjectKey, item: KubeObject | None, error: Exception) -> None:
        """Keep the records of an object whose translation crashed, and report the crash in its condition."""
        self._outcome(self._kind, False)
        log.error("object.translate_failed", object=str(key), exc_info=error)
        self._world.desired.hold(Claimant(item.meta.created if item else "", key), holds_by_name(key))
        message = f"the translation crashed with {type(error).__name__}: this is a bug, please report it"
        self._world.reports[key] = Report(item.meta.generation if item else 0, (Problem(CRASHED, message),))
        self._sink.reported(key)

    def _replace(self, claimant: Claimant, outcome: Published) -> Publication:
        """Replace the records of an object."""
        desired, owner = self._world.desired, claimant.owner
        if outcome.references or outcome.destinations:
            self._permissions[owner] = (outcome.references, outcome.destinations)
        else:
            self._permissions.pop(owner, None)
        targets = self._world.claims.replace(claimant, outcome.claims)
        change = desired.replace(claimant, outcome.desired(desired.of_owner(owner)))
        desired.hold(claimant, outcome.held)  # only now: its names must not be free in between
        return Publication(change, targets)

    def _keep(self, claimant: Claimant, outcome: KeepLast) -> Publication:
        """Keep the records that were published last, with the current ids of their names."""
        desired, claims = self._world.desired, self._world.claims
        desired.hold(claimant, outcome.protected)
        if not self._router.live:
            # Without an object that had not been listed, records may have seemed valid that never were.
            return Publication(desired.replace(claimant, ()), claims.replace(claimant, outcome.claims))
        # Without claims of the last version, claim what a gateway may still have.
        has_claims = any(not claim.weak for claim in claims.claims_of(claimant.owner))
        targets = frozenset[ObjectKey]() if has_claims else claims.replace(claimant, outcome.claims)
        return Publication(desired.follow_ids(claimant), targets)

    def _withdraw(self, claimant: Claimant, outcome: Withdrawn) -> Publication:
        """Remove every record of an object."""
        done = self._replace(claimant, NOTHING)
        if outcome.reason and done.change.dirty:
            log.warning("object.withdrawn", object=str(claimant.owner), reason=outcome.reason)
        return done

    def _remember(self, key: ObjectKey, outcome: Outcome) -> None:
        """Store what later outcomes depend on: held hosts, used bytes and attached routes."""
        world = self._world
        if self._options.host_ownership == "namespace" and self._kind in NAMING_KINDS:
            world.host_holders.claim(key, outcome.hosts)
        match outcome:
            case KeepLast(rejected_bytes=0):
                world.budget.keep(key)
            case KeepLast():
                world.budget.wait(key, outcome.rejected_bytes)
            case _:
                world.budget.spend(key, budgeted_bytes(key, outcome, self._options))
        for owner in world.budget.admitted(world.budget.payer(key)):
            self._router.enqueue(owner)
        for listener in world.attachments.replace(key, outcome.attached):
            self._sink.reported(listener)

    def _announce(self, owner: ObjectKey, done: Publication, before: Iterable[Record]) -> None:
        """Pass changes on to gateway clusters, and queue the owners that they affect."""
        change = done.change
        neighbours = self._neighbours_of(owner, before) if change.dirty else frozenset()
        for key in sorted((*(done.targets | neighbours), *change.contested)):
            self._router.enqueue(key)
        if change.dirty:
            urgent = self._urgent and self._router.live
            self._sink.mark_dirty(change.dirty, urgent=urgent, former=change.former, since=self._since(owner))

    def _neighbours_of(self, owner: ObjectKey, before: Iterable[Record]) -> frozenset[ObjectKey]:
        """Return the owners that now start or stop sharing a host with this owner."""
        if self._options.host_ownership != "shared" or not self._names_hosts:
            return frozenset()
        after = self._world.desired.of_owner(owner).values()
        return self._world.neighbours.replace(owner, shared_hosts(before), shared_hosts(after))

    def _report(self, owner: ObjectKey, item: KubeObject | None, outcome: Outcome, *, has_same_records: bool) -> None:
        stale = unread(item)
        found = (
            *conflicts(self._world, owner),
            *(shared(self._world, self._options, owner) if self._names_hosts else ()),
        )
        problems = (*((stale,) if stale else ()), *outcome.problems, *found)
        generation = item.meta.generation if item else 0
        report = Report(generation, tuple(dict.fromkeys(problems)), outcome.assessment)
        is_new = self._world.reports.get(owner) != report
        if is_new:
            self._world.reports[owner] = report
            if self._router.live:  # before that, missing objects may not have been listed yet
                log_problems(owner, problems)
        self._outcome(self._kind, all(problem.severity == "warning" for problem in problems))
        # A new address of a Service changes only the state of its records, which has its own way to conditions.
        if is_new or not has_same_records or has_status(self._kind):
            self._sink.reported(owner)

    def _forget(self, owner: ObjectKey) -> None:
        if self._world.reports.pop(owner, None) is not None:
            self._sink.reported(owner)
