"""The audit: a full comparison of a cluster with the desired records, at the start of a session and periodically.

It reads one list per kind, posts its records as events, and queues the differences. Equal records become applied
without a write. Records that were written while the list was read are skipped: it may be older or newer than the write.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection
from dataclasses import replace
from itertools import islice

import structlog

from apisix_ingress.errors import GatewayError, GatewayUnavailable
from apisix_ingress.gateway.backend import Backend, ClusterListing, ObservedRecord
from apisix_ingress.gateway.sync.comparison.gateway_defaults import Defaults, adds_defaults
from apisix_ingress.gateway.sync.driver import Detail, RecordDriver
from apisix_ingress.gateway.sync.plan import FOREIGN_REMEDY, NOTHING, Plan, explained, in_order_of_deletes, unusual
from apisix_ingress.gateway.sync.records.slot import RecordSlot, Unknown
from apisix_ingress.gateway.sync.records.transitions import Event
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.names import truncated
from apisix_ingress.model.records import UNLABELLED, Record
from apisix_ingress.runtime.tasks import in_turns

log = structlog.get_logger()

PIECE = 50
"""Number of planned records after which other tasks get a turn."""

REMEDY = (
    "if their objects were deleted intentionally, delete these records through the Admin API; otherwise find out why"
    " the API server does not list the objects (namespace selector, class, permissions, a restored backup)"
)

DRIFT_REMEDY = (
    "the records are repaired; another client changed them, or the gateway lost data: check who has the admin key, and"
    " whether a backup was restored"
)


class Audit:
    """The audits of one cluster.

    Args:
        driver: The records of the cluster.
        backend: The client of the cluster.
        on_listed: Called with the start time of each list of all kinds.
    """

    def __init__(self, driver: RecordDriver, backend: Backend, *, on_listed: Callable[[float], None]) -> None:
        config = self._config = driver.config
        self._driver = driver
        self._table = driver.table
        self._backend = backend
        self._clock = config.clock
        self._observer = config.observer
        self._on_listed = on_listed
        self._defaults = Defaults(driver.cluster, backend.read, clock=config.clock)
        self.version = ""
        """The `Server` header of the last list, or empty."""
        self.lacks_ledger = False
        """Whether the last list was read without the ledger: records of deleted objects may have been overlooked."""
        self.failure = ""
        """Why the last audit failed; empty if it did not."""
        self._logged_failure = ""
        self._log = log.bind(cluster=driver.cluster)

    async def initial_sync(
        self,
        ready: asyncio.Event,
        inherited: Collection[RecordKey],
        *,
        on_list: Callable[[ClusterListing], None],
        on_compare: Callable[[], None],
    ) -> None:
        """Read the cluster at the start of a session and queue what differs.

        The list is repeated if an audit would have been due before `ready` was set.

        Args:
            ready: Set once the desired records are complete; nothing is compared before.
            inherited: The records that the cluster last had, as far as this process knows; owned, despite their labels.
            on_list: Called with the list, if `ready` is not set yet.
            on_compare: Called before the comparison: from then on changes have to be queued.
        """
        # Another replica may have led meanwhile: for kinds without labels, only the backend's ledger is valid.
        ledger = frozenset(key for key in self._ledger(inherited) if key.kind not in UNLABELLED)
        listing, listed_at, ended = await self._list_with_retry(ledger), self._clock.monotonic(), self._table.ended
        if not ready.is_set():
            on_list(listing)
        await ready.wait()
        if self._clock.monotonic() - listed_at > self._config.audit_interval:
            ended = self._table.ended
            listing = await self._list_with_retry(ledger)
        self._config.report_version(self._driver.cluster, listing.version)
        await self._config.adopt(self._driver.cluster, {**listing.unclaimed, **listing.owned})
        on_compare()
        self._observer.inherited(self._driver.cluster, listing.owned)
        await self._compare(listing, ended, lambda key: None)
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
        """Compare, and queue repairs of drift; return whether the cluster could be read."""
        driver, cluster = self._driver, self._driver.cluster
        ended, began = self._table.ended, self._clock.monotonic()
        drift: list[RecordKey] = []

        def on_drift(key: RecordKey) -> None:
            drift.append(key)
            self._observer.drifted(cluster, key)

        try:
            listing = await self._list(self._ledger(self._table.records()))
            await self._compare(listing, ended, on_drift)
            driver.unacked.audited(began, driver.wanted)
            found = await self._queue_difference()
        except GatewayError as error:
            self.failure = str(error)
            self._observer.compared(cluster, ok=False)
            driver.breaker.failed(error)
            return False
        self.failure = ""
        self._observer.compared(cluster, ok=True)
        self._observer.drift(cluster, len(drift))
        if drift:
            changes = {"upserts": len(found.upserts), "deletes": len(found.deletes)}
            self._log.warning("audit.drift", drift=len(drift), **changes, remedy=DRIFT_REMEDY)
        return True

    def log_failure(self) -> None:
        """Log why the last audit failed, once, unless it is logged as an outage of the cluster."""
        if self._driver.breaker.outage is not None:
            return
        if self.failure and self.failure != self._logged_failure:
            self._log.warning("audit.failed", error=self.failure)
        self._logged_failure = self.failure

    async def is_expected(self, key: RecordKey, found: ObservedRecord) -> bool:
        """Return whether a record that was read is what was written, or that with the gateway's defaults."""
        known = self._table.get(key).applied
        if known is not None and found.digest == known.digest:
            return True
        if not adds_defaults(self.version):
            return False
        records = self._expected(key)
        await self._defaults.load_schemas(records)
        return any(self._defaults.filled(record, found.digest) == found.digest for record in records)

    async def report_all(self) -> None:
        """Report the state of every desired record, except of records whose write will end with a report."""
        driver = self._driver
        async for key in in_turns(self._config.wanted.keys()):
            if driver.breaker.is_tripped or not driver.order.is_counted(key):
                driver.report(self._table.get(key))

    async def _list_with_retry(self, ledger: frozenset[RecordKey]) -> ClusterListing:
        """Read the cluster, however long it takes until it responds."""
        breaker = self._driver.breaker
        while True:
            await breaker.writable()
            try:
                listing = await self._list(ledger)
            except GatewayError as error:
                breaker.trip(error)
                self._observer.compared(self._driver.cluster, ok=False)
                await self.report_all()
            except Exception as error:
                self._log.error("audit.crashed", exc_info=error)
                breaker.trip(GatewayUnavailable("internal error: check the log of the controller", sent=False))
            else:
                breaker.succeeded()
                return listing

    async def _list(self, ledger: frozenset[RecordKey]) -> ClusterListing:
        """Read the cluster once."""
        began = self._clock.monotonic()
        listing = await self._backend.list_managed(ledger)
        self.lacks_ledger = listing.lacks_ledger
        self._on_listed(began)
        return listing

    def _ledger(self, records: Collection[RecordKey]) -> frozenset[RecordKey]:
        """Return the records that are owned whatever their labels are: this process has written or adopted them.

        A record that lost its labels is given up when its object is deleted: another client may have taken it over.
        """
        ours = {*records, *(slot.key for slot in self._table.timed.values() if slot.may_be_overwritten > -math.inf)}
        return frozenset(key for key in ours if key.kind in UNLABELLED or self._driver.wanted(key) is not None)

    async def _compare(self, listing: ClusterListing, ended: int, on_drift: Callable[[RecordKey], None]) -> None:
        """Post the records of a list.

        Args:
            listing: The records of the cluster.
            ended: The number of flights that had ended when the list was started.
            on_drift: Called with each record that another client changed, before its repair.
        """
        driver, table = self._driver, self._table
        # The outcome of a write that was unknown is not a change by another client, however long ago it was.
        unknown = {slot.key for slot in table if isinstance(slot.observed, Unknown)}
        foreign = {slot.key for slot in table if slot.is_foreign}
        self.version = listing.version
        self._config.report_version(driver.cluster, listing.version)
        owned = await self._defaults.without_defaults(
            {**listing.owned, **self._adopted(listing)}, self._expected, listing.version
        )

        def is_touched(key: RecordKey) -> bool:
            slot = table.get(key)
            return slot.flight is not None or slot.ended > ended

        async for key in in_turns(owned):
            if not is_touched(key):
                slot, found = table.slot(key), self._with_name(key, owned[key])
                is_changed = slot.applied is None or slot.applied.digest != found.digest
                driver.post(slot, Event.FOUND if is_changed else Event.CONFIRMED, Detail(found=found))
                if is_changed and self._is_drift(slot) and key not in unknown:
                    on_drift(key)
        async for key in in_turns(table.records().difference(owned)):
            if not is_touched(key):
                driver.post(table.slot(key), Event.MISSING)
                if self._is_drift(table.slot(key)) and key not in unknown:
                    on_drift(key)
        self._compare_foreign(foreign, {key for key in listing.foreign if not is_touched(key)})
        driver.sentinels.listed(listing, is_touched)

    def _compare_foreign(self, before: set[RecordKey], foreign: set[RecordKey]) -> None:
        """Post which records of other clients appeared or disappeared; log records that take a desired id."""
        for slot in map(self._table.slot, before - foreign):
            if slot.is_foreign:
                self._driver.post(slot, Event.MISSING)
            self._driver.report(slot)  # nothing else does if the record has been adopted, and is as desired
        for key in foreign - before:
            self._driver.post(self._table.slot(key), Event.FOREIGN)
        taken = sorted(key for key in foreign - before if self._driver.wanted(key) is not None)
        if taken:
            first = [str(key) for key in taken[:5]]
            self._log.warning("audit.foreign", records=len(taken), first=first, remedy=FOREIGN_REMEDY)

    def _is_drift(self, slot: RecordSlot) -> bool:
        """Return whether another client caused a difference, rather than a write of this process that landed late."""
        if slot.may_be_overwritten > -math.inf:
            self._log.info("write.landed_late", record=str(slot.key))
        return not slot.is_uncertain

    def _adopted(self, listing: ClusterListing) -> dict[RecordKey, ObservedRecord]:
        """Return the unclaimed records that are desired; the others are not owned and must not be deleted."""
        return {key: found for key, found in listing.unclaimed.items() if self._driver.wanted(key) is not None}

    def _with_name(self, key: RecordKey, found: ObservedRecord) -> ObservedRecord:
        """Return a record with the name of the desired record, if the gateway returned none."""
        wanted = self._driver.wanted(key) if not found.name else None
        return found if wanted is None else replace(found, name=truncated(wanted.name))

    def _expected(self, key: RecordKey) -> list[Record]:
        """Return the records that may have been written: the desired one, and the last one that this process wrote."""
        known = self._table.get(key).applied
        found = (self._driver.wanted(key), known and known.source)
        return [record for record in found if isinstance(record, Record)]

    async def _queue_difference(self) -> Plan:
        """Queue the differences from the desired records; hold back an unusual number of deletes."""
        driver, table = self._driver, self._table
        keys = table.records().union(self._config.wanted.keys())
        steps = [(key, step) async for key in in_turns(keys, every=PIECE) if (step := driver.needed(key)) != NOTHING]
        found = Plan.of(steps, driver.wanted)
        await asyncio.sleep(0)  # with 20,000 records, the steps before and after this take 10 ms each
        # Not `keys`: records that became desired during the comparison stay known as well.
        uncertain = {slot.key for slot in table.timed.values() if slot.may_be_overwritten > -math.inf}
        driver.ever_wanted &= table.records().union(self._config.wanted.keys(), uncertain)
        withheld = self._hold_back(found)
        driver.order.begin_batch()
        is_last = driver.exposure_order.is_last
        routes = [step.record for key, step in steps if key.kind == "routes" and step.record is not None]
        last = {record.key async for record in in_turns(routes) if is_last(record)}
        async for key in in_turns((*sorted(found.upserts, key=last.__contains__), *found.deletes)):
            if key not in withheld:
                driver.mark([key], same_batch=True)
        for key in found.held:
            table.hold(table.slot(key))
        for key in found.refused:
            driver.report(table.slot(key))
        return found

    def _hold_back(self, found: Plan) -> set[RecordKey]:
        """Hold back an unusual number of deletes; return all that are held back."""
        driver, table = self._driver, self._table
        owned = table.records()
        before = driver.withheld()
        intended = explained((*found.deletes, *in_order_of_deletes(before)), table, self._config.wanted.is_refused)
        for key in (before - owned) | (before & intended):  # what is intended is deleted at the next tick
            table.set_withheld(table.slot(key), is_withheld=False)
        before = (before & owned) - intended
        fresh = unusual({*found.deletes, *before} - intended, driver.ever_wanted, len(owned)) - before
        for key in fresh:
            table.set_withheld(table.slot(key), is_withheld=True)
        self._observer.held(driver.cluster, len(before) + len(fresh))
        if fresh:
            shown = [str(key) for key in islice(sorted(fresh), 5)]
            self._log.error("deletes.held_back", deletes=len(fresh), owned=len(owned), first=shown, remedy=REMEDY)
        return before | fresh
