"""The reconcile loop of one kind: from an object key to desired records.

It is generic: subclasses in `providers/` decide when a kind is translated, `translation/` defines the result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Generic, TypeVar

import structlog

from apisix_ingress.model.assessment import ListenerKey
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.table import has_status
from apisix_ingress.model.objects import CustomObject, KubeObject
from apisix_ingress.model.problem import Problem
from apisix_ingress.model.records import Record
from apisix_ingress.runtime.queue.workqueue import WorkQueue
from apisix_ingress.runtime.tasks import run_workers
from apisix_ingress.state.claims import Claimant, UpstreamClaim
from apisix_ingress.state.holds import Hold
from apisix_ingress.state.hosts.shared_hosts import shared_hosts
from apisix_ingress.state.view import TrackingView, View
from apisix_ingress.state.world import Report
from providers.core.budgets import account, limited
from providers.core.deps import ProviderDeps, limiter
from providers.core.grant_tracker import GrantTracker
from providers.core.holds import holds_by_name
from providers.core.offload import is_large
from providers.core.problems import CRASHED, conflicts, log_problems, shared, unread
from translation.core.grants import within_grants
from translation.core.result import NOTHING, Translation
from translation.core.scope import is_ours
from translation.core.translators import translate
from translation.hosts.host_owners import NAMING_KINDS, HostOwners, restricted

log = structlog.get_logger()

T = TypeVar("T", bound=KubeObject)

YIELD_EVERY, YIELD_SECONDS = 20, 0.01
"""Consecutive translations, and seconds of translating, before yielding to other tasks; 20 small ones take 2 ms."""


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The result of evaluating an object.

    Attributes:
        translation: None if the object is gone or belongs to another controller.
        revoked: Whether even the last good records must be removed.
        owned: The hosts that the object names and that belong to its namespace.
        size: Bytes of the records that count against the budget of the namespace, even if they exceeded it.
    """

    translation: Translation | None
    revoked: bool
    owned: frozenset[str]
    size: int


class Provider(Generic[T]):
    """Queue and reconcile loop of one kind that owns records."""

    kind: ClassVar[str]
    workers: ClassVar[int] = 2
    urgent: ClassVar[bool] = False
    """Whether records of this provider are written before others."""
    names_hosts: ClassVar[bool] = True
    """Whether the hosts of its records are those of its namespace; a Gateway has hosts for routes of others."""
    offloads: ClassVar[bool] = True
    """Whether large objects are translated in a thread."""

    def __init__(self, deps: ProviderDeps) -> None:
        self._world = deps.world
        self._options = deps.options
        self._sink = deps.sink
        self._router = deps.router
        self._outcome = deps.outcome
        self._clock = deps.clock
        self._rests = deps.rests
        self._resting: set[ObjectKey] = set()
        self._offloader = deps.offloader
        self._handled = 0
        self._busy = 0.0
        self._grants = GrantTracker(deps.world, deps.options)
        self.queue: WorkQueue[ObjectKey] = WorkQueue(
            clock=deps.clock,
            limiter=limiter(deps.rng),
            name=f"provider-{self.kind}",
            group=self.namespace_of,
            observer=deps.observer(self.kind),
        )

    def concerns(self, key: ObjectKey) -> bool:
        """Return whether a changed object of this kind has to be translated."""
        return True

    def namespace_of(self, key: ObjectKey) -> str:
        """Return the namespace in whose turn a key is handled."""
        return key.namespace

    def takes_long(self, key: ObjectKey) -> bool:
        """Return whether a translation would block the event loop for too long."""
        return is_large(self._world.stores[self.kind].get(key))

    def translate(self, item: T, view: View) -> Translation:
        """Translate an object with the translator that the table of kinds names."""
        assert isinstance(item, CustomObject)  # providers of built-in kinds override this method
        return translate(item, view, self._options, self._clock.now())

    def evaluate(self, key: ObjectKey, item: T | None, view: View) -> Translation | None:
        """Return the translation for a key; None withdraws its records: the object is gone or is not handled."""
        if item is None or not is_ours(item, view, self._options):
            return None
        if (problem := unread(item)) and problem.severity == "error":
            return Translation(problems=(problem,), holds=holds_by_name(key))
        return self.translate(item, view)

    async def run(self) -> None:
        """Work on the queue until it is shut down and drained."""
        name = f"provider-{self.kind}"
        await run_workers(self.queue, self._handle, workers=self.workers, name=name, on_error=self.failed)

    def resume(self) -> None:
        """Queue all owners of resting namespaces now."""
        for key in self._resting:
            self.queue.add(key)

    def reconcile(self, key: ObjectKey) -> None:
        """Update the desired records from the current object. Does not await, so it sees one consistent snapshot."""
        item: T | None = self._world.stores[self.kind].get(key)
        view = self._world.view()
        try:
            found = self._evaluated(key, item, view)
        finally:
            self._world.dependents.record(key, view.reads)
        self._publish(key, item, found)

    async def reconcile_offloaded(self, key: ObjectKey) -> None:
        """Reconcile a large object in a thread, unless its namespace has to rest."""
        if self._rests_now(key, self._offloader.queue):
            return
        item: T | None = self._world.stores[self.kind].get(key)
        if not self.takes_long(key):
            self._offloader.forget(key)
            self.queue.add(key)
            return
        began = self._clock.monotonic()
        found = await self._offloader.translate(key, partial(self._prepared, key, item), partial(self.takes_long, key))
        if found is not None:
            self._publish(key, item, found)
        self._rests.worked(self._resting_group(key), self._clock.monotonic() - began)

    def _evaluated(self, key: ObjectKey, item: T | None, view: TrackingView) -> Evaluated:
        translation, size = limited(self._world.budget, key, self.evaluate(key, item, view))
        revoked = translation is not None and (translation.revoked or self._grants.is_revoked(key, translation, view))
        owned = self._owned_hosts(item, view) if translation is not None else frozenset()
        return Evaluated(_with_secrets(self._restricted(translation, item, view), view), revoked, owned, size)

    def _prepared(self, key: ObjectKey, item: T | None, view: TrackingView) -> Evaluated:
        """Evaluate an object and serialize its records, which takes long if they are large."""
        found = self._evaluated(key, item, view)
        for record in found.translation.records if found.translation is not None else ():
            record.prepare()
        return found

    def _publish(self, key: ObjectKey, item: T | None, found: Evaluated) -> None:
        """Apply the result of an evaluation."""
        translation, revoked = found.translation, found.revoked
        if self._options.host_ownership == "namespace" and self.kind in NAMING_KINDS:
            self._world.host_holders.claim(key, found.owned)
        claimant = Claimant(item.meta.created if item else "", key)
        for owner in account(self._world.budget, key, NOTHING if found.revoked else translation, found.size):
            self._router.enqueue(owner)
        self._attach(key, translation.attached if translation is not None else frozenset())
        if translation is None:
            self._apply(claimant, NOTHING)
            self._world.desired.refuse(key, ())
            self._withdraw(key)
            return
        before = self._world.desired.of_owner(key).keys()
        self._apply(claimant, NOTHING if revoked else translation)
        self._world.desired.refuse(key, _refused(key, translation, revoked=revoked))
        has_same_records = item is not None and self._world.desired.of_owner(key).keys() == before
        self._report(key, item, translation, has_same_records=has_same_records)
        self.follow_up(key, translation)

    def follow_up(self, key: ObjectKey, translation: Translation) -> None:
        """Act on a published translation; always called on the event loop."""

    def _attach(self, route: ObjectKey, listeners: frozenset[ListenerKey]) -> None:
        """Record the listeners of a route, which Gateways count in their status."""
        for each in self._world.attachments.replace(route, listeners):
            self._sink.reported(each)

    def settle_one(self, key: ObjectKey) -> None:
        """Reconcile without retries: a crash of the translation affects only its object."""
        try:
            self.reconcile(key)
        except Exception as error:
            self.failed(key, error)

    async def _handle(self, key: ObjectKey) -> None:
        if self._rests_now(key, self.queue):
            return
        if self.offloads and self.takes_long(key):
            self._offloader.queue.add(key)
            return
        began = self._clock.monotonic()
        self.reconcile(key)
        seconds = self._clock.monotonic() - began
        self._rests.worked(self._resting_group(key), seconds)
        self._handled += 1
        self._busy += seconds
        if self._busy >= YIELD_SECONDS or self._handled % YIELD_EVERY == 0:
            self._busy = 0.0
            await asyncio.sleep(0)

    def _resting_group(self, key: ObjectKey) -> Hashable:
        """Return what rests after long work: a namespace, or the objects of this kind in it if the kind is urgent."""
        namespace = self.namespace_of(key)
        return (self.kind, namespace) if self.urgent else namespace

    def _rests_now(self, key: ObjectKey, queue: WorkQueue[ObjectKey]) -> bool:
        """Return whether a namespace has to rest; then the object is queued for the end of the rest."""
        left = self._rests.left(self._resting_group(key)) if self._router.may_rest else 0.0
        if not left:
            self._resting.discard(key)
            return False
        self._resting.add(key)
        queue.add_after(key, left)
        return True

    def failed(self, key: ObjectKey, error: Exception) -> None:
        """Keep the records of an object whose translation crashed, and report the crash in its condition."""
        self._outcome(self.kind, False)
        log.error("object.translate_failed", object=str(key), exc_info=error)
        item: T | None = self._world.stores[self.kind].get(key)
        self._world.desired.hold(Claimant(item.meta.created if item else "", key), holds_by_name(key))
        message = f"the translation crashed with {type(error).__name__}: this is a bug, please report it"
        self._world.reports[key] = Report(item.meta.generation if item else 0, (Problem(CRASHED, message),))
        self._sink.reported(key)

    def _apply(self, claimant: Claimant, translation: Translation) -> None:
        """Publish a translation, or keep the last good records if it failed."""
        owner, desired = claimant.owner, self._world.desired
        before = desired.of_owner(owner)
        if translation.failed:
            desired.hold(claimant, translation.holds)
            if self._router.live:
                targets = self._claim_weakly(claimant, translation.claims)
                change = desired.follow_ids(claimant)
            else:
                # Without an object that had not been listed, records may have seemed valid that never were.
                targets = self._world.claims.replace(claimant, _weakened(translation.claims))
                change = desired.replace(claimant, ())
        else:
            self._grants.remember(owner, translation)
            targets = self._world.claims.replace(claimant, translation.claims)
            change = desired.replace(claimant, translation.published(before))
            desired.hold(claimant, ())  # only now: its names must not be free in between
        targets |= self._neighbours_of(owner, before.values()) if change.dirty else frozenset()
        for key in sorted((*targets, *change.contested)):
            self._router.enqueue(key)
        if change.dirty:
            urgent = self.urgent and self._router.live
            since = min(queue.dirty_since(owner) for queue in (self.queue, self._offloader.queue))
            self._sink.mark_dirty(change.dirty, urgent=urgent, former=change.former, since=since)

    def _neighbours_of(self, owner: ObjectKey, before: Iterable[Record]) -> frozenset[ObjectKey]:
        """Return the owners that now start or stop sharing a host with this owner."""
        if self._options.host_ownership != "shared" or not self.names_hosts:
            return frozenset()
        after = self._world.desired.of_owner(owner).values()
        return self._world.neighbours.replace(owner, shared_hosts(before), shared_hosts(after))

    def _restricted(self, translation: Translation | None, item: T | None, view: View) -> Translation | None:
        """Restrict the holds of a failed translation to what the object may still use: hosts, and other namespaces."""
        if translation is None or not translation.failed or not isinstance(item, CustomObject):
            return translation
        holds = translation.holds
        if self._options.host_ownership != "shared" and self.kind in NAMING_KINDS:
            holds = restricted(holds, item, HostOwners(view, self._options))
        if self._options.cross_namespace == "grant":
            holds = within_grants(holds, item, view)
        return translation._replace(holds=holds)

    def _owned_hosts(self, item: T | None, view: View) -> frozenset[str]:
        """Return the hosts that an object names and its namespace owns, whether or not it can be translated."""
        if self._options.host_ownership != "namespace" or not isinstance(item, CustomObject):
            return frozenset()
        return HostOwners(view, self._options).owned(item) if self.kind in NAMING_KINDS else frozenset()

    def _claim_weakly(self, claimant: Claimant, claims: Iterable[UpstreamClaim]) -> frozenset[ObjectKey]:
        """Keep the claims of the last good records; without claims, claim what a gateway may still have."""
        current = self._world.claims.claims_of(claimant.owner)
        if any(not claim.weak for claim in current):
            return frozenset()
        return self._world.claims.replace(claimant, _weakened(claims))

    def _report(self, owner: ObjectKey, item: T | None, translation: Translation, *, has_same_records: bool) -> None:
        stale = unread(item)
        found = (
            *conflicts(self._world, owner),
            *(shared(self._world, self._options, owner) if self.names_hosts else ()),
        )
        problems = (*((stale,) if stale else ()), *translation.problems, *found)
        generation = item.meta.generation if item else 0
        report = Report(generation, tuple(dict.fromkeys(problems)), translation.assessment)
        is_new = self._world.reports.get(owner) != report
        if is_new:
            self._world.reports[owner] = report
            if self._router.live:  # before that, missing objects may not have been listed yet
                log_problems(owner, problems)
        self._outcome(self.kind, all(problem.severity == "warning" for problem in problems))
        # A new address of a Service changes only the state of its records, which has its own way to conditions.
        if is_new or not has_same_records or has_status(self.kind):
            self._sink.reported(owner)

    def _withdraw(self, owner: ObjectKey) -> None:
        if self._world.reports.pop(owner, None) is not None:
            self._sink.reported(owner)


def _with_secrets(translation: Translation | None, view: TrackingView) -> Translation | None:
    """Return a translation whose records hold the Secrets that it read."""
    if translation is None or not view.secrets:
        return translation
    secrets = tuple(view.secrets.values())
    return translation._replace(records=tuple(record.generated_from(secrets) for record in translation.records))


def _weakened(claims: Iterable[UpstreamClaim]) -> list[UpstreamClaim]:
    """Return claims to records that a gateway may still have."""
    return [claim._replace(weak=True) for claim in claims]


def _refused(key: ObjectKey, translation: Translation, *, revoked: bool) -> tuple[Hold, ...]:
    """Return the records that are deleted even if many others are: the object shows that this is intended.

    Settings refuse it or a part of it, or its consumer has another username than before.
    """
    is_renamed = any(record.key.kind == "consumers" for record in translation.records) and not translation.failed
    if revoked or translation.refused is not None or is_renamed:
        return (*holds_by_name(key), *(translation.refused or ()))
    return ()
