"""Comparing a cluster with what is wanted: at the start of a term, and from time to time while it lasts.

One list a kind is read; what differs is queued, what is equal is taken as applied without a write. Records that were
written while the list was read are left out: the list may be older or newer than they are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from itertools import islice

import structlog

from apisix_ingress.errors import GatewayError, GatewayUnauthorized, GatewayUnavailable
from apisix_ingress.gateway.backend import Backend, ClusterListing, ObservedRecord
from apisix_ingress.gateway.sync.comparison.gateway_defaults import Defaults, fills_in
from apisix_ingress.gateway.sync.observer import SyncObserver
from apisix_ingress.gateway.sync.plan import Plan, Wanted, plan, unusual
from apisix_ingress.gateway.sync.record_writer import FOREIGN_REMEDY, RecordWriter
from apisix_ingress.gateway.sync.records.observed import ObservedState
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.names import told
from apisix_ingress.model.records import UNLABELLED, Record
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.tasks import in_turns

log = structlog.get_logger()

PIECE = 50
"""So many records are planned before other tasks get their turn."""

REMEDY = (
    "if their objects are gone on purpose, delete these records through the Admin API; if not, see why the API server"
    " does not show the objects (namespace selector, class, permissions, a restored backup)"
)

DRIFT_REMEDY = (
    "the records are put right; somebody else changed them, or the gateway lost data: see who has the admin key, and"
    " whether a backup was restored"
)


Adopt = Callable[[str, Mapping[RecordKey, ObservedRecord]], Awaitable[None]]
"""Told the name of a cluster, and what is there that is ours or may be; returns once ids are those that it has."""


async def adopt_nothing(cluster: str, held: Mapping[RecordKey, ObservedRecord]) -> None:
    """Leave ids as they are."""


class Audit:
    """The comparison of one cluster."""

    def __init__(
        self,
        dispatch: RecordWriter,
        backend: Backend,
        wanted: Wanted,
        *,
        clock: Clock,
        observer: SyncObserver,
        adopt: Adopt = adopt_nothing,
    ) -> None:
        self._dispatch = dispatch
        self._backend = backend
        self._wanted = wanted
        self._clock = clock
        self._observer = observer
        self._adopt = adopt
        self._defaults = Defaults(dispatch.cluster, backend.read, clock=clock)
        self.failure = ""
        """Why the last comparison failed; empty: it did not."""
        self._told_failure = ""
        self._log = log.bind(cluster=dispatch.cluster)

    async def take_over(
        self, ready: asyncio.Event, inherited: ObservedState, *, stale_after: float, live: Callable[[], None]
    ) -> None:
        """Read the cluster at the start of a term and queue what differs.

        Args:
            ready: Set once what is wanted is complete; nothing is compared before.
            inherited: What this process last knew of the cluster: it tells ours where labels can't.
            stale_after: Seconds after which a list is read anew, if it took that long until ready.
            live: Called before the comparison: from then on changes have to be queued.
        """
        # Others may have led since: for records without labels only the ledger of the backend counts.
        ledger = frozenset(key for key in self._ledger(inherited) if key.kind not in UNLABELLED)
        listing, listed_at = await self._list_surely(ledger), self._clock.monotonic()
        await ready.wait()
        if self._clock.monotonic() - listed_at > stale_after:
            listing = await self._list_surely(ledger)
        await self._adopt(self._dispatch.cluster, {**listing.unclaimed, **listing.owned})
        live()
        await self._compare(listing)
        found = await self._queue_difference()
        self._log.info(
            "cluster.takeover",
            owned=len(listing.owned),
            upserts=len(found.upserts),
            deletes=len(found.deletes),
            held=len(found.held),
            version=listing.version,
        )

    async def run_once(self) -> bool:
        """Compare, and repair what drifted; say whether the cluster could be read."""
        dispatch = self._dispatch
        dispatch.touched, began = set(dispatch.holdings.flying), self._clock.monotonic()
        try:
            listing = await self._backend.list_managed(self._ledger(dispatch.holdings))
            dispatch.looks.listed(began)
            drift = await self._compare(listing)
            dispatch.doubts.settle(began, lambda key: self._wanted.get(key, dispatch.cluster))
            found = await self._queue_difference()
        except GatewayError as error:
            self.failure = str(error)
            self._observer.compared(dispatch.cluster, ok=False)
            if isinstance(error, GatewayUnauthorized):
                dispatch.gate.shut(error)
            return False
        finally:
            dispatch.touched = None
        self.failure = ""
        self._observer.compared(dispatch.cluster, ok=True)
        self._observer.drift(dispatch.cluster, drift)
        if drift:
            changes = {"upserts": len(found.upserts), "deletes": len(found.deletes)}
            self._log.warning("audit.drift", drift=drift, **changes, remedy=DRIFT_REMEDY)
        return True

    def tell_failure(self) -> None:
        """Log why the last comparison failed, once, unless that is told as an outage of the cluster."""
        if self._dispatch.gate.outage is not None:
            return
        if self.failure and self.failure != self._told_failure:
            self._log.warning("audit.failed", error=self.failure)
        self._told_failure = self.failure

    async def is_expected(self, key: RecordKey, found: ObservedRecord) -> bool:
        """Say whether a record that was read alone is what was written, or what the cluster makes of that."""
        known = self._dispatch.holdings.applied.get(key)
        if known is not None and found.digest == known.digest:
            return True
        if not fills_in(self._dispatch.version):
            return False
        records = self._expected(key)
        await self._defaults.learn(records)
        return any(self._defaults.filled(record, found.digest) == found.digest for record in records)

    async def _list_surely(self, ledger: frozenset[RecordKey]) -> ClusterListing:
        """Read the cluster, however long it takes until it answers."""
        gate = self._dispatch.gate
        while True:
            await gate.passable()
            try:
                began = self._clock.monotonic()
                listing = await self._backend.list_managed(ledger)
            except GatewayError as error:
                gate.shut(error)
                self._observer.compared(self._dispatch.cluster, ok=False)
                await self.tell_all()
            except Exception as error:
                self._log.error("audit.crashed", exc_info=error)
                gate.shut(GatewayUnavailable("internal error: see the log of the controller", sent=False))
            else:
                self._dispatch.looks.listed(began)
                gate.succeeded()
                return listing

    async def tell_all(self) -> None:
        """Tell the observer the state of every wanted record but those under way, which is told when it ends."""
        dispatch = self._dispatch
        async for key in in_turns(self._wanted.keys()):
            if not (dispatch.gate.is_open and dispatch.agenda.is_under_way(key)):
                dispatch.tell(key)

    def _ledger(self, holdings: ObservedState) -> frozenset[RecordKey]:
        """Return the records that are ours whatever their labels say: written or adopted by us before.

        One that lost its labels is given up with its object: somebody else may have taken it over.
        """
        cluster, records = self._dispatch.cluster, holdings.records().union(self._dispatch.doubts.overtaken)
        return frozenset(key for key in records if key.kind in UNLABELLED or self._wanted.get(key, cluster) is not None)

    async def _compare(self, listing: ClusterListing) -> int:
        """Make the holdings follow the list; return how many records somebody else changed."""
        dispatch, news = self._dispatch, 0
        # What became of a write that was lost is no news of anybody else, however long ago it was.
        unknown = set(dispatch.holdings.unknown)
        dispatch.version = listing.version
        shown = {**listing.owned, **self._adopted(listing)}
        owned = await self._defaults.left_out(shown, self._expected, listing.version)
        async for key in in_turns(owned):
            if not self._is_touched(key) and dispatch.holdings.observe(key, self._named(key, owned[key])):
                news += self._is_drift(key) and key not in unknown
                dispatch.wake(key)
        async for key in in_turns(dispatch.holdings.records().difference(owned)):
            if not self._is_touched(key):
                dispatch.holdings.vanished(key)
                news += self._is_drift(key) and key not in unknown
                dispatch.wake(key)
        strangers = {key for key in listing.foreign if not self._is_touched(key)}
        appeared = strangers - dispatch.holdings.foreign
        dispatch.holdings.foreign = strangers
        for key in appeared:
            dispatch.wake(key)
        self._log_foreign(appeared)
        dispatch.sentinels.listed(listing, dispatch.touched or ())
        return news

    def _log_foreign(self, appeared: set[RecordKey]) -> None:
        """Tell of records of somebody else that have the id of wanted ones: those are not written."""
        taken = sorted(key for key in appeared if self._wanted.get(key, self._dispatch.cluster) is not None)
        if taken:
            first = [str(key) for key in taken[:5]]
            self._log.warning("audit.foreign", records=len(taken), first=first, remedy=FOREIGN_REMEDY)

    def _is_drift(self, key: RecordKey) -> bool:
        """Say whether a difference is somebody else's doing; what we wrote may have been carried out late."""
        doubts = self._dispatch.doubts
        if key in doubts.overtaken:
            self._log.info("record.late", record=str(key))
        return key not in doubts

    def _adopted(self, listing: ClusterListing) -> dict[RecordKey, ObservedRecord]:
        """Return the unclaimed records that are wanted; the others are no holdings, so that none is deleted."""
        cluster = self._dispatch.cluster
        return {key: found for key, found in listing.unclaimed.items() if self._wanted.get(key, cluster) is not None}

    def _named(self, key: RecordKey, found: ObservedRecord) -> ObservedRecord:
        """Return a record with the name that it is wanted under, if it tells none itself."""
        wanted = self._wanted.get(key, self._dispatch.cluster) if not found.name else None
        return found if wanted is None else replace(found, name=told(wanted.name))

    def _expected(self, key: RecordKey) -> list[Record]:
        """Return what a record may be meant to be: what is wanted, and what we wrote, if that is not the same."""
        known = self._dispatch.holdings.applied.get(key)
        found = (self._wanted.get(key, self._dispatch.cluster), known and known.source)
        return [record for record in found if isinstance(record, Record)]

    def _is_touched(self, key: RecordKey) -> bool:
        touched = self._dispatch.touched
        return touched is not None and key in touched

    async def _queue_difference(self) -> Plan:
        """Queue whatever differs from what is wanted; hold back an unusual number of deletes."""
        dispatch = self._dispatch
        keys = list(dispatch.holdings.records().union(self._wanted.keys()))
        pieces = (keys[start : start + PIECE] for start in range(0, len(keys), PIECE))
        found = Plan.of(
            [
                plan(piece, self._wanted, dispatch.cluster, dispatch.holdings, dispatch.is_held)
                async for piece in in_turns(pieces, every=1)
            ]
        )
        # Not the keys from above: what came while they were compared is known as well.
        dispatch.known &= dispatch.holdings.records().union(self._wanted.keys(), dispatch.doubts.overtaken)
        self._hold_back(found)
        dispatch.agenda.turn()
        async for key in in_turns((*found.upserts, *found.deletes)):
            if key not in dispatch.withheld:
                dispatch.mark([key], same_turn=True)
        dispatch.held.update(found.held)
        for key in found.refused:
            dispatch.tell(key)
        return found

    def _hold_back(self, found: Plan) -> None:
        dispatch = self._dispatch
        owned = dispatch.holdings.records()
        dispatch.withheld &= owned
        fresh = unusual({*found.deletes, *dispatch.withheld}, dispatch.known, len(owned)) - dispatch.withheld
        dispatch.withheld |= fresh
        self._observer.held(dispatch.cluster, len(dispatch.withheld))
        if fresh:
            shown = [str(key) for key in islice(sorted(fresh), 5)]
            self._log.error("sweep.held", deletes=len(fresh), owned=len(owned), first=shown, remedy=REMEDY)
