"""The reconcile loop of one kind: from an object key to desired records.

It is generic: subclasses in `providers/` say when a kind is translated, `translation/` says what it means.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Generic, Protocol, TypeVar

import structlog

from apisix_ingress.model.admin_address import AdminAddress
from apisix_ingress.model.assessment import ListenerKey
from apisix_ingress.model.keys import ObjectKey, RecordKey, RecordKind, namespace_of
from apisix_ingress.model.kinds.table import PREFIXES, RESOURCES
from apisix_ingress.model.names import consumer_name, object_name, route_prefix
from apisix_ingress.model.objects import CustomObject, KubeObject, why_first
from apisix_ingress.model.problem import Problem
from apisix_ingress.model.records import Former, Record
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.queue.fair_rests import FairRests
from apisix_ingress.runtime.queue.rate_limiters import ExponentialBackoff, FastSlow, MaxOf, RateLimiter
from apisix_ingress.runtime.queue.workqueue import QueueObserver, WorkQueue
from apisix_ingress.runtime.tasks import run_workers
from apisix_ingress.state.claims import Claimant, UpstreamClaim
from apisix_ingress.state.desired import Hold
from apisix_ingress.state.hosts.shared_hosts import shared_hosts
from apisix_ingress.state.ids.id_table import HASHED
from apisix_ingress.state.view import View
from apisix_ingress.state.world import Report, World
from providers.core.budgets import account, limited
from providers.core.offload import Offloader, is_large
from translation.addresses.destinations import are_open
from translation.core.grants import Destination, Reference, is_granted
from translation.core.options import Options
from translation.core.result import NOTHING, Translation
from translation.core.scope import is_ours
from translation.core.translators import translate
from translation.hosts.host_owners import NAMING_KINDS, HostOwners, restricted, rests_on_lost_host

log = structlog.get_logger()

T = TypeVar("T", bound=KubeObject)
K = TypeVar("K", bound=Hashable)

YIELD_EVERY, YIELD_SECONDS = 20, 0.01
"""Consecutive translations, and seconds of translating, before yielding to other tasks; 20 small ones take 2 ms."""


class ChangeSink:
    """Receives the results of translations; this base class discards them."""

    def mark_dirty(self, keys: Collection[RecordKey], *, urgent: bool, former: Former, since: float) -> None:
        """Handle a change of desired records.

        `former` holds the previous records of the owner, `since` is the monotonic time when the change was seen.
        """

    def reported(self, owner: ObjectKey) -> None:
        """Handle a new report on an owner."""

    def cluster_moved(self, name: str, address: AdminAddress | None) -> None:
        """Handle a new Admin API address of a cluster; None restores the address from the settings."""


class Enqueuer(Protocol):
    """Queues other owners at their providers."""

    def enqueue(self, owner: ObjectKey, *, urgent: bool = False, since: float | None = None) -> None:
        """Queue an owner at the provider of its kind; `since` is when the change was seen, if not now."""

    @property
    def live(self) -> bool:
        """Whether the first pass over all objects is done."""

    @property
    def may_rest(self) -> bool:
        """Whether namespaces rest after long work; false while a caller waits for all translations."""


SHARED_HOST = "HostShared"
"""Problem code: a host is used in several namespaces. The condition mentions it and stays True."""

_OWNERSHIP = "have kubernetes.host_ownership: namespace set"

CRASHED = "InternalError"
"""Problem code: the translation crashed. The traceback is logged separately."""


_NO_GROUNDS: tuple[frozenset[Reference], frozenset[Destination]] = (frozenset(), frozenset())


TOO_DEEP = "NestedTooDeeply"

_MOST_LOGGED = 20
"""Limit of logged problems per object."""


@dataclass(frozen=True, slots=True)
class ProviderDeps:
    """Dependencies that are injected into every provider."""

    world: World
    options: Options
    sink: ChangeSink
    router: Enqueuer
    clock: Clock
    rests: FairRests
    rng: random.Random
    observer: Callable[[str], QueueObserver | None]
    """Kind → the observer of its queue."""
    offloader: Offloader
    outcome: Callable[[str, bool], None]
    """Called with the kind of each translated object, and whether it has no problems."""


@dataclass(frozen=True, slots=True)
class _Evaluated:
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
        # Grants and destinations that the last published records of an owner depend on.
        self._grounds: dict[ObjectKey, tuple[frozenset[Reference], frozenset[Destination]]] = {}
        self.queue: WorkQueue[ObjectKey] = WorkQueue(
            clock=deps.clock,
            limiter=limiter(deps.rng),
            name=f"provider-{self.kind}",
            group=namespace_of,
            observer=deps.observer(self.kind),
        )

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
        if not is_large(item):
            self._offloader.forget(key)
            self.queue.add(key)
            return
        began = self._clock.monotonic()
        found = await self._offloader.translate(key, partial(self._prepared, key, item))
        if found is not None:
            self._publish(key, item, found)
        self._rests.worked(self._resting_group(key), self._clock.monotonic() - began)

    def _evaluated(self, key: ObjectKey, item: T | None, view: View) -> _Evaluated:
        translation, size = limited(self._world.budget, key, self.evaluate(key, item, view))
        revoked = translation is not None and (translation.revoked or self._lost_ground(key, translation, view))
        owned = self._owned_hosts(item, view) if translation is not None else frozenset()
        return _Evaluated(self._with_own_hosts(translation, item, view), revoked, owned, size)

    def _prepared(self, key: ObjectKey, item: T | None, view: View) -> _Evaluated:
        """Evaluate an object and serialize its records, which takes long if they are large."""
        found = self._evaluated(key, item, view)
        for record in found.translation.records if found.translation is not None else ():
            record.prepare()
        return found

    def _publish(self, key: ObjectKey, item: T | None, found: _Evaluated) -> None:
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
            self._withdraw(key)
            return
        self._apply(claimant, NOTHING if revoked else translation)
        self._report(key, item, translation)
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
        if self.offloads and is_large(self._world.stores[self.kind].get(key)):
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
        return (self.kind, key.namespace) if self.urgent else key.namespace

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
        if translation.failed:
            desired.hold(claimant, translation.holds)
            targets = self._claim_weakly(claimant, translation.claims)
            change = desired.follow_ids(claimant)
        else:
            self._remember(owner, translation)
            targets = self._world.claims.replace(claimant, translation.claims)
            before = desired.of_owner(owner)
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
        if self._options.host_ownership != "shared":
            return frozenset()
        after = self._world.desired.of_owner(owner).values()
        return self._world.neighbours.replace(owner, shared_hosts(before), shared_hosts(after))

    def _remember(self, owner: ObjectKey, translation: Translation) -> None:
        if translation.references or translation.destinations:
            self._grounds[owner] = (translation.references, translation.destinations)
        else:
            self._grounds.pop(owner, None)

    def _lost_ground(self, owner: ObjectKey, translation: Translation, view: View) -> bool:
        """Return whether the last good records, which a failed translation would keep, are no longer permitted.

        The object may have been edited since, so its failed translation does not show that a grant was removed, or that
        an address is refused or a host belongs to another namespace now.
        """
        if not translation.failed:
            return False
        references, destinations = self._grounds.get(owner, _NO_GROUNDS)
        records = self._world.desired.of_owner(owner).values()
        reason = ""
        if not all(is_granted(each, view) for each in references):
            reason = "its last good records need a grant that was removed"
        elif not are_open(destinations, view, self._options):
            reason = "its last good records use an address that is refused now"
        elif rests_on_lost_host(records, owner.namespace, HostOwners(view, self._options)):
            reason = "its last good records use a host that belongs to another namespace"
        if reason:
            log.warning("object.withdrawn", object=str(owner), reason=reason)
        return bool(reason)

    def _with_own_hosts(self, translation: Translation | None, item: T | None, view: View) -> Translation | None:
        """Restrict the holds of a failed translation to hosts that other namespaces do not own."""
        is_shared = self._options.host_ownership == "shared" or self.kind not in NAMING_KINDS
        if translation is None or not translation.failed or is_shared or not isinstance(item, CustomObject):
            return translation
        return replace(translation, holds=restricted(translation.holds, item, HostOwners(view, self._options)))

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
        return self._world.claims.replace(claimant, [replace(claim, weak=True) for claim in claims])

    def _report(self, owner: ObjectKey, item: T | None, translation: Translation) -> None:
        stale = unread(item)
        problems = (*((stale,) if stale else ()), *translation.problems, *self._conflicts(owner), *self._shares(owner))
        generation = item.meta.generation if item else 0
        report = Report(generation, tuple(dict.fromkeys(problems)), translation.assessment)
        if self._world.reports.get(owner) != report:
            self._world.reports[owner] = report
            if self._router.live:  # before that, missing objects may not have been listed yet
                log_problems(owner, problems)
        self._outcome(self.kind, all(problem.severity == "warning" for problem in problems))
        self._sink.reported(owner)

    def _withdraw(self, owner: ObjectKey) -> None:
        if self._world.reports.pop(owner, None) is not None:
            self._sink.reported(owner)

    def _conflicts(self, owner: ObjectKey) -> tuple[Problem, ...]:
        return tuple(
            Problem("Conflicted", f"the record {key} belongs to {self._winner(winner, owner)}", "", "degraded")
            for key, winner in sorted(self._world.desired.lost(owner).items())
        )

    def _shares(self, owner: ObjectKey) -> Iterator[Problem]:
        """Yield a problem for each host that other namespaces use too, if hosts may be shared."""
        if self._options.host_ownership == "shared":
            records = self._world.desired.of_owner(owner).values()
            for note in self._world.neighbours.notes(owner, shared_hosts(records)):
                yield Problem(SHARED_HOST, f"{note}; use different hosts, or {_OWNERSHIP}", "", "warning")

    def _winner(self, winner: ObjectKey, owner: ObjectKey) -> str:
        """Name the winner of a conflict and why it wins; either object may be gone by now."""
        items = [self._world.stores[key.kind].get(key) for key in (winner, owner)]
        ages = [item.meta.age for item in items if item is not None]
        return f"{_stranger(winner, owner)}, which {why_first(*ages)}" if len(ages) == 2 else _stranger(winner, owner)


def unread(item: KubeObject | None) -> Problem | None:
    """Return the problem of an object whose current spec cannot be read; the last readable spec stays published."""
    if not isinstance(item, CustomObject) or item.unread is None:
        return None
    reason, before = item.unread.reason, item.unread.generation
    stays = f"generation {before} stays in effect" if before else "its records in the gateways stay as they are"
    message = f"generation {item.meta.generation} cannot be read ({reason}): {stays}; flatten the object"
    return Problem(TOO_DEEP, message, "", "degraded" if before else "error")


def holds_by_name(key: ObjectKey) -> tuple[Hold, ...]:
    """Return holds on all records whose name or id shows that they belong to the object with this key."""
    row = RESOURCES[key.kind]
    name = object_name(key.namespace, key.name) if key.namespace else key.name
    names = frozenset({name, object_name(key.namespace, key.name, row.record_prefix) if key.namespace else name})
    usernames = frozenset({consumer_name(*key[1:], "compatible"), consumer_name(*key[1:], "unambiguous")})
    prefixes: list[tuple[RecordKind, str]] = [("upstreams", f"{name}_")]
    if row.record_prefix or key.namespace not in PREFIXES:  # elsewhere the names may belong to another kind
        prefixes.append(("routes", route_prefix(key.namespace, key.name, row.record_prefix)))
    by_prefix = (Hold(kind, prefix=prefix) for kind, prefix in prefixes)
    by_name = (Hold(kind, names=names) for kind in sorted(HASHED))
    return (*by_prefix, *by_name, Hold("consumers", ids=usernames))


def _stranger(winner: ObjectKey, owner: ObjectKey) -> str:
    """Name the winner of a conflict; if it is in another namespace, disclose only its kind and namespace."""
    if not winner.namespace or winner.namespace == owner.namespace:
        return str(winner)
    return f"an {winner.kind} in namespace {winner.namespace}"


def log_problems(owner: ObjectKey, problems: Iterable[Problem]) -> None:
    """Log the problems of an object.

    Shared hosts appear only in the condition: where many namespaces share a host on purpose, a line for each of
    thousands of objects at every start would bury the other lines.
    """
    logged = [problem for problem in problems if problem.code not in (CRASHED, SHARED_HOST)]
    if len(logged) > _MOST_LOGGED:
        log.warning("object.problems_left_out", object=str(owner), count=len(logged) - _MOST_LOGGED)
    for problem in logged[:_MOST_LOGGED]:
        log.warning("object.problem", object=str(owner), code=problem.code, path=problem.path, message=problem.message)


def limiter(rng: random.Random) -> RateLimiter[K]:
    """Return the rate limiter of a provider queue: fast retries first, then slow ones with jitter (seconds)."""
    return MaxOf(FastSlow(0.1, 5.0, 5), ExponentialBackoff(0.05, 60.0, 0.2, rng=rng))
