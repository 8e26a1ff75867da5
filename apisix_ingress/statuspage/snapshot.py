"""The data of the page about records and objects, collected at one moment, in small steps so that other tasks can run.

A snapshot is built on request, at a limited rate, and dropped when it is no longer requested. `views` presents it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any

from apisix_ingress.gateway.sync.observer import APPLIED, RecordState
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.problem import Problem
from apisix_ingress.model.record_owner import origin
from apisix_ingress.model.records import Record
from apisix_ingress.runtime.tasks import in_turns
from apisix_ingress.statuspage.inputs import PageCluster, PageInputs
from apisix_ingress.statuspage.summary.certificates import forget
from apisix_ingress.statuspage.summary.entry import NOT_COMPARED, UNVERIFIED, Entry
from apisix_ingress.statuspage.summary.ordering import CHUNK, ordered
from apisix_ingress.statuspage.summary.summary import Summary, summarize
from providers.status.host_records import HostRecords

PAUSE, SHARE = 0.3, 4.0
"""Minimum seconds between two snapshots, and the multiple of the time that one takes."""

KEPT = 60.0
"""Seconds until an unused snapshot is dropped."""


@dataclass(slots=True)
class Snapshot:
    """The collected data.

    Attributes:
        revision: Of the history, when the snapshot was started.
        entries: Record → entry.
        kept: Routes that are not desired and stay in gateways, since their objects have errors. Their bodies are not
            shown: they may contain values of unknown Secrets.
        by_kind: Record kind → its entries in display order.
        unwell: Entries that a cluster rejected, or that wait for another record.
        counts: Cluster → state → number of records; the state is `unknown` if a cluster was not compared.
        problems: Object and problem, sorted.
        problems_of: Object → its problems, if it has any.
        summary: What is derived from all of it.
    """

    revision: int
    entries: dict[RecordKey, Entry] = field(default_factory=dict)
    kept: dict[RecordKey, Entry] = field(default_factory=dict)
    by_kind: dict[str, list[Entry]] = field(default_factory=dict)
    unwell: list[Entry] = field(default_factory=list)
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    problems: list[tuple[ObjectKey, Problem]] = field(default_factory=list)
    problems_of: dict[ObjectKey, tuple[Problem, ...]] = field(default_factory=dict)
    summary: Summary = field(default_factory=Summary)
    began: float = 0.0
    ended: float = 0.0

    @property
    def stale_from(self) -> float:
        """The time from which a new snapshot may be built."""
        return self.ended + max(PAUSE, SHARE * (self.ended - self.began))


class SnapshotCache:
    """Builds snapshots, one at a time, and returns the latest."""

    def __init__(self, facts: PageInputs) -> None:
        self._facts = facts
        self._latest: Snapshot | None = None
        # Concurrent requests wait for the snapshot being built; the lock guards nothing else.
        self._turn = asyncio.Lock()
        self._drop: asyncio.TimerHandle | None = None

    async def latest(self) -> Snapshot:
        """Return the latest snapshot; build a new one if allowed."""
        async with self._turn:
            if self._latest is None or self._is_old(self._latest):
                self._latest = await gather(self._facts)
            found = self._latest
        self.close()
        self._drop = asyncio.get_running_loop().call_later(KEPT, self._forget)
        return found

    def close(self) -> None:
        """Cancel the tasks."""
        if self._drop is not None:
            self._drop.cancel()

    def _is_old(self, snapshot: Snapshot) -> bool:
        now = self._facts.clock.monotonic()
        return snapshot.revision != self._facts.revision and now >= snapshot.stale_from

    def _forget(self) -> None:
        self._latest = None
        forget()


async def gather(facts: PageInputs) -> Snapshot:
    """Collect every record and report."""
    desired, reports = facts.world.desired, facts.world.reports
    found = Snapshot(facts.revision, began=facts.clock.monotonic())
    found.counts = {cluster.name: Counter() for cluster in facts.clusters}
    kinds: dict[str, list[Entry]] = {}
    hosts = HostRecords(facts.world)
    async for key in in_turns(desired.keys(), every=CHUNK):
        if (entry := _entry(facts, hosts, key)) is not None:
            found.entries[key] = entry
            kinds.setdefault(key.kind, []).append(entry)
            if any(state.kind in ("rejected", "waiting") for _, state in entry.states):
                found.unwell.append(entry)
            for cluster, state in entry.states:
                found.counts[cluster][state.kind] += 1
    found.by_kind = {kind: await ordered(entries, _place) for kind, entries in kinds.items()}
    found.unwell = await ordered(found.unwell, _place)
    async for owner in in_turns(tuple(reports), every=CHUNK):
        if (report := reports.get(owner)) is not None and report.problems:
            found.problems_of[owner] = report.problems
            found.problems += [(owner, problem) for problem in report.problems]
    found.problems = await ordered(found.problems, lambda pair: (pair[0], pair[1].path))
    async for key, entry in _kept(facts):
        if key not in found.entries:
            known = found.kept.get(key)
            found.kept[key] = entry if known is None else replace(known, states=(*known.states, *entry.states))
    found.summary = await summarize(facts, {**found.entries, **found.kept}, found.problems_of)
    found.ended = facts.clock.monotonic()
    return found


def _entry(facts: PageInputs, hosts: HostRecords, key: RecordKey) -> Entry | None:
    """Return the entry of a record; None if it is no longer desired, or only where it already exists."""
    desired = facts.world.desired
    owners = desired.owners_of(key)
    if not owners:
        return None
    record = desired.of_owner(owners[0])[key]
    wanted_by = [cluster for cluster in facts.clusters if desired.get(key, cluster.name) is not None]
    if record.existing_only and not any(cluster.taken_over and cluster.holds(key) for cluster in wanted_by):
        return None
    written = dict.fromkeys(each for owner in owners for each in hosts.owners(key, owner))
    return Entry(record, tuple(written), tuple((cluster.name, state_of(facts, cluster, key)) for cluster in wanted_by))


async def _kept(facts: PageInputs) -> AsyncIterator[tuple[RecordKey, Entry]]:
    """Yield the routes of earlier versions of objects that only gateways know."""
    for cluster in facts.clusters if facts.controller.leads else ():
        state = UNVERIFIED if facts.outage(cluster) is not None else APPLIED
        async for key, body in in_turns(tuple(cluster.kept_routes() if cluster.taken_over else ()), every=CHUNK):
            if (owner := origin(key, body)) is not None:
                yield key, Entry(Record(key, str(body["name"]), body), (owner,), ((cluster.name, state),))


def state_of(facts: PageInputs, cluster: PageCluster, key: RecordKey) -> RecordState:
    """Return the state of a record in a cluster, as far as this replica knows."""
    outage = facts.outage(cluster)
    if not cluster.taken_over and outage is None:
        return NOT_COMPARED
    state = cluster.record_state(key)
    return UNVERIFIED if outage is not None and (state.kind == "applied" or state.is_closed) else state


def _place(entry: Entry) -> tuple[Any, ...]:
    return (entry.hosts[:1], entry.paths[:1], -entry.priority, entry.record.name, entry.key.id)
