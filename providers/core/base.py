"""The loop of one kind: from a reconcile key to desired records. Generic over kinds; what a kind means is elsewhere."""

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
from apisix_ingress.state.id_table import HASHED
from apisix_ingress.state.shared_hosts import shared_hosts
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
"""Translations in a row, and seconds of them, before other tasks get their turn; 20 small ones take about 2 ms."""


class ChangeSink:
    """Where the results of translations go; this one drops them."""

    def mark_dirty(self, keys: Collection[RecordKey], *, urgent: bool, former: Former, since: float) -> None:
        """Take note that these records are wanted differently now.

        `former` is what their owner wanted before, `since` the monotonic time when the change was seen.
        """

    def reported(self, owner: ObjectKey) -> None:
        """Take note that an owner's report is new."""

    def cluster_moved(self, name: str, address: AdminAddress | None) -> None:
        """Take note where the Admin API of a cluster is from now on; None: where the settings say."""


class Enqueuer(Protocol):
    """How a provider wakes other owners."""

    def enqueue(self, owner: ObjectKey, *, urgent: bool = False, since: float | None = None) -> None:
        """Queue an owner at the provider of its kind; `since` is when the change was seen, if not now."""

    @property
    def live(self) -> bool:
        """Whether the first pass over all objects is done, so that what comes now is news."""

    @property
    def may_rest(self) -> bool:
        """Whether namespaces rest after long work: not while somebody waits until everything is translated."""


SHARED_HOST = "HostShared"
"""Code of the problem that a host is used in several namespaces; told in the condition, which stays True."""

_OWNERSHIP = "have kubernetes.host_ownership: namespace set"

CRASHED = "InternalError"
"""Code of the problem of an object whose translation crashed; the log has more, and has it at once."""


_NO_GROUNDS: tuple[frozenset[Reference], frozenset[Destination]] = (frozenset(), frozenset())


TOO_DEEP = "NestedTooDeeply"

_MOST_LOGGED = 20
"""Problems of one object that are logged."""


@dataclass(frozen=True, slots=True)
class ProviderDeps:
    """What every provider is given."""

    world: World
    options: Options
    sink: ChangeSink
    router: Enqueuer
    clock: Clock
    rests: FairRests
    rng: random.Random
    observer: Callable[[str], QueueObserver | None]
    """Kind → who watches its queue."""
    offloader: Offloader
    outcome: Callable[[str, bool], None]
    """Told the kind of each object that was translated, and whether it is well."""


@dataclass(frozen=True, slots=True)
class _Evaluated:
    """What a translation of an object gave.

    Attributes:
        translation: None if the object is gone or not ours.
        revoked: Whether not even the last good records may stay.
        owned: The hosts that it names and that belong to its namespace.
        size: Bytes of its records, as far as they count for its namespace; also if the translation failed for them.
    """

    translation: Translation | None
    revoked: bool
    owned: frozenset[str]
    size: int


class Provider(Generic[T]):
    """Queue and loop of one kind that owns records."""

    kind: ClassVar[str]
    workers: ClassVar[int] = 2
    urgent: ClassVar[bool] = False
    """Whether what this provider publishes goes ahead of everything else."""
    offloads: ClassVar[bool] = True
    """Whether large objects are translated in a thread."""

    def __init__(self, surroundings: ProviderDeps) -> None:
        self._world = surroundings.world
        self._options = surroundings.options
        self._sink = surroundings.sink
        self._router = surroundings.router
        self._outcome = surroundings.outcome
        self._clock = surroundings.clock
        self._rests = surroundings.rests
        self._resting: set[ObjectKey] = set()
        self._offloader = surroundings.offloader
        self._handled = 0
        self._busy = 0.0
        # What the records that an owner published last take from other namespaces by grants, and where they lead.
        self._grounds: dict[ObjectKey, tuple[frozenset[Reference], frozenset[Destination]]] = {}
        self.queue: WorkQueue[ObjectKey] = WorkQueue(
            clock=surroundings.clock,
            limiter=limiter(surroundings.rng),
            name=f"provider-{self.kind}",
            group=namespace_of,
            observer=surroundings.observer(self.kind),
        )

    def translate(self, item: T, view: View) -> Translation:
        """Return what an object of ours wants: what the translator says that the table of kinds names."""
        assert isinstance(item, CustomObject)  # providers of other kinds have a translator of their own
        return translate(item, view, self._options, self._clock.now())

    def evaluate(self, key: ObjectKey, item: T | None, view: View) -> Translation | None:
        """Return the translation for a key, or None when the object is gone or not ours: it is withdrawn."""
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
        """Queue every owner whose namespace rests at once."""
        for key in self._resting:
            self.queue.add(key)

    def reconcile(self, key: ObjectKey) -> None:
        """Make desired records follow the object as it is now. No await: one consistent snapshot, no lock."""
        item: T | None = self._world.stores[self.kind].get(key)
        view = self._world.view()
        try:
            found = self._evaluated(key, item, view)
        finally:
            self._world.dependents.record(key, view.reads)
        self._publish(key, item, found)

    async def reconcile_offloaded(self, key: ObjectKey) -> None:
        """Do the same for a large object in a thread, unless its namespace has to rest."""
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
        """Do the same, and what takes long for large records."""
        found = self._evaluated(key, item, view)
        for record in found.translation.records if found.translation is not None else ():
            record.prepare()
        return found

    def _publish(self, key: ObjectKey, item: T | None, found: _Evaluated) -> None:
        """Take over what a translation returned."""
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
        """See to what follows from a translation that was published; always on the event loop."""

    def _attach(self, route: ObjectKey, listeners: frozenset[ListenerKey]) -> None:
        """Note the listeners of a route, which Gateways tell in their status."""
        for each in self._world.attachments.replace(route, listeners):
            self._sink.reported(each)

    def settle_one(self, key: ObjectKey) -> None:
        """Reconcile without retries: a translation that crashes is a problem of its object alone."""
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
        """Return what rests after long work: a namespace; its endpoints and credentials rest after their own only."""
        return (self.kind, key.namespace) if self.urgent else key.namespace

    def _rests_now(self, key: ObjectKey, queue: WorkQueue[ObjectKey]) -> bool:
        """Say whether an object has to wait until its namespace has rested; then it is queued for that time."""
        left = self._rests.left(self._resting_group(key)) if self._router.may_rest else 0.0
        if not left:
            self._resting.discard(key)
            return False
        self._resting.add(key)
        queue.add_after(key, left)
        return True

    def failed(self, key: ObjectKey, error: Exception) -> None:
        """Keep what the gateways have of an object whose translation crashed, and say so in its condition."""
        self._outcome(self.kind, False)
        log.error("object.translate_failed", object=str(key), exc_info=error)
        item: T | None = self._world.stores[self.kind].get(key)
        self._world.desired.hold(Claimant(item.meta.created if item else "", key), holds_by_name(key))
        message = f"the translation crashed with {type(error).__name__}: this is a bug, please report it"
        self._world.reports[key] = Report(item.meta.generation if item else 0, (Problem(CRASHED, message),))
        self._sink.reported(key)

    def _apply(self, claimant: Claimant, translation: Translation) -> None:
        """Publish a translation, or keep the last good records when it failed."""
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
            desired.hold(claimant, ())  # not before: its names would be free for a moment
            targets |= self._neighbours_of(owner, before.values()) if change.dirty else frozenset()
        for key in sorted((*targets, *change.contested)):
            self._router.enqueue(key)
        if change.dirty:
            urgent = self.urgent and self._router.live
            since = min(queue.dirty_since(owner) for queue in (self.queue, self._offloader.queue))
            self._sink.mark_dirty(change.dirty, urgent=urgent, former=change.former, since=since)

    def _neighbours_of(self, owner: ObjectKey, before: Iterable[Record]) -> frozenset[ObjectKey]:
        """Return who is to be told that an owner shares a host with it now, or no longer."""
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
        """Say whether the last good records, which a failed translation would keep, may not stay.

        The object may name something else by now, so that its translation would not see that a grant is gone, or that
        an address or a host belongs to somebody else.
        """
        if not translation.failed:
            return False
        references, destinations = self._grounds.get(owner, _NO_GROUNDS)
        records = self._world.desired.of_owner(owner).values()
        reason = ""
        if not all(is_granted(each, view) for each in references):
            reason = "its last good records rest on a grant that is gone"
        elif not are_open(destinations, view, self._options):
            reason = "its last good records lead to an address that is refused now"
        elif rests_on_lost_host(records, owner.namespace, HostOwners(view, self._options)):
            reason = "its last good records are for a host that belongs to another namespace"
        if reason:
            log.warning("object.withdrawn", object=str(owner), reason=reason)
        return bool(reason)

    def _with_own_hosts(self, translation: Translation | None, item: T | None, view: View) -> Translation | None:
        """Return a translation that failed so that it holds no record for a host of another namespace."""
        is_shared = self._options.host_ownership == "shared" or self.kind not in NAMING_KINDS
        if translation is None or not translation.failed or is_shared or not isinstance(item, CustomObject):
            return translation
        return replace(translation, holds=restricted(translation.holds, item, HostOwners(view, self._options)))

    def _owned_hosts(self, item: T | None, view: View) -> frozenset[str]:
        """Return the hosts of its namespace that an object names, whether or not it can be translated."""
        if self._options.host_ownership != "namespace" or not isinstance(item, CustomObject):
            return frozenset()
        return HostOwners(view, self._options).owned(item) if self.kind in NAMING_KINDS else frozenset()

    def _claim_weakly(self, claimant: Claimant, claims: Iterable[UpstreamClaim]) -> frozenset[ObjectKey]:
        """Keep the claims of the last good records; without any, claim what a gateway may still have."""
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
            if self._router.live:  # before that, what is missing may just not have been read yet
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
        """Yield which hosts of an object are used in other namespaces, where any namespace may use any host."""
        if self._options.host_ownership == "shared":
            records = self._world.desired.of_owner(owner).values()
            for note in self._world.neighbours.notes(owner, shared_hosts(records)):
                yield Problem(SHARED_HOST, f"{note}; use different hosts, or {_OWNERSHIP}", "", "warning")

    def _winner(self, winner: ObjectKey, owner: ObjectKey) -> str:
        """Name the winner of a conflict and say why it is; either may be gone by now."""
        items = [self._world.stores[key.kind].get(key) for key in (winner, owner)]
        ages = [item.meta.age for item in items if item is not None]
        return f"{_stranger(winner, owner)}, which {why_first(*ages)}" if len(ages) == 2 else _stranger(winner, owner)


def unread(item: KubeObject | None) -> Problem | None:
    """Return what is wrong with an object whose present spec can't be read; what was read before is published on."""
    if not isinstance(item, CustomObject) or item.unread is None:
        return None
    reason, before = item.unread.reason, item.unread.generation
    stays = f"generation {before} stays in effect" if before else "what the gateways have for it stays as it is"
    message = f"generation {item.meta.generation} can't be read ({reason}): {stays}; flatten the object"
    return Problem(TOO_DEEP, message, "", "degraded" if before else "error")


def holds_by_name(key: ObjectKey) -> tuple[Hold, ...]:
    """Return holds on the records whose name or id tells, from the object's key alone, that they are its own."""
    row = RESOURCES[key.kind]
    name = object_name(key.namespace, key.name) if key.namespace else key.name
    names = frozenset({name, object_name(key.namespace, key.name, row.record_prefix) if key.namespace else name})
    usernames = frozenset({consumer_name(*key[1:], "compatible"), consumer_name(*key[1:], "unambiguous")})
    prefixes: list[tuple[RecordKind, str]] = [("upstreams", f"{name}_")]
    if row.record_prefix or key.namespace not in PREFIXES:  # names in such a namespace may be those of another kind
        prefixes.append(("routes", route_prefix(key.namespace, key.name, row.record_prefix)))
    by_prefix = (Hold(kind, prefix=prefix) for kind, prefix in prefixes)
    by_name = (Hold(kind, names=names) for kind in sorted(HASHED))
    return (*by_prefix, *by_name, Hold("consumers", ids=usernames))


def _stranger(winner: ObjectKey, owner: ObjectKey) -> str:
    """Name the winner of a conflict; of another namespace only the namespace, which is all its tenant may know."""
    if not winner.namespace or winner.namespace == owner.namespace:
        return str(winner)
    return f"an {winner.kind} in namespace {winner.namespace}"


def log_problems(owner: ObjectKey, problems: Iterable[Problem]) -> None:
    """Tell the operator what is wrong with an object.

    That a host is shared is only in its condition: where many namespaces use one host on purpose, a line for each of
    thousands of objects at every start would bury the rest.
    """
    told = [problem for problem in problems if problem.code not in (CRASHED, SHARED_HOST)]
    if len(told) > _MOST_LOGGED:
        log.warning("object.problems_left_out", object=str(owner), count=len(told) - _MOST_LOGGED)
    for problem in told[:_MOST_LOGGED]:
        log.warning("object.problem", object=str(owner), code=problem.code, path=problem.path, message=problem.message)


def limiter(rng: random.Random) -> RateLimiter[K]:
    """Return the limiter of a provider queue: quick tries first, then slow ones, spread by jitter (seconds)."""
    return MaxOf(FastSlow(0.1, 5.0, 5), ExponentialBackoff(0.05, 60.0, 0.2, rng=rng))
