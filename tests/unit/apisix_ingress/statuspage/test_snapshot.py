"""Snapshots: when a new one is built, and how other tasks run meanwhile."""

import asyncio
from typing import Any

import pytest

from apisix_ingress.gateway.sync.observer import RecordState
from apisix_ingress.statuspage import snapshot
from apisix_ingress.statuspage.snapshot import Snapshot, SnapshotCache, gather
from apisix_ingress.statuspage.summary.ordering import CHUNK, ordered
from apisix_ingress.statuspage.views.overview import replica
from tests.factories import make_claimant, make_record
from tests.unit.apisix_ingress.statuspage.harness import PageHarness, make_harness
from tests.unit.translation.objects import route, rule, service


async def test_an_unchanged_state_is_not_collected_again() -> None:
    harness = make_harness(service(), route(rule()))
    keeper = SnapshotCache(harness.facts)
    first = await keeper.latest()
    assert await keeper.latest() is first
    keeper.close()


async def test_news_are_gathered_but_not_more_often_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = make_harness(service(), route(rule()))
    keeper = SnapshotCache(harness.facts)
    first = await keeper.latest()
    harness.journal.held("default", 1)
    first.ended = harness.facts.clock.monotonic()
    assert await keeper.latest() is first
    first.ended = first.began = harness.facts.clock.monotonic() - 10
    assert (await keeper.latest()).revision == 1
    keeper.close()


async def a_while_later(harness: PageHarness, keeper: SnapshotCache) -> Snapshot:
    """Return the latest one when the one before is old enough to be replaced."""
    before = await keeper.latest()
    before.ended = before.began = harness.facts.clock.monotonic() - 10
    return await keeper.latest()


@pytest.mark.parametrize("seen_between", [False, True])
async def test_counts_follow_the_end_of_a_term(seen_between: bool) -> None:
    """Nothing else reports it: the engines of a follower send no reports."""
    harness = make_harness(service(), route(rule()))
    keeper = SnapshotCache(harness.facts)
    first = await keeper.latest()
    assert first.counts["default"] == {"applied": len(first.entries)}
    harness.controller.leads, harness.controller.leader = False, "pod-b_1"
    if seen_between:
        await a_while_later(harness, keeper)
    harness.clusters[0].taken_over = False
    got = await a_while_later(harness, keeper)
    assert got.counts["default"] == {"unknown": len(first.entries)}
    assert got.revision == replica(harness.facts)["revision"] > first.revision
    assert await a_while_later(harness, keeper) is got
    keeper.close()


async def test_an_unused_snapshot_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "KEPT", 0.0)
    keeper = SnapshotCache(make_harness().facts)
    first = await keeper.latest()
    await asyncio.sleep(0.01)  # the timer of the drop is due before this one
    assert await keeper.latest() is not first
    keeper.close()


async def test_a_record_deleted_meanwhile_is_skipped() -> None:
    harness = make_harness()
    many = [make_record(f"r{number:04}", body={"uri": f"/{number}"}) for number in range(2 * CHUNK)]
    harness.world.desired.replace(make_claimant(), many)
    task = asyncio.create_task(gather(harness.facts))
    await asyncio.sleep(0)
    harness.world.desired.replace(make_claimant(), many[:CHUNK])
    assert len((await task).entries) == CHUNK


async def test_sorting_piece_by_piece_is_sorting() -> None:
    numbers = [(7 * number) % 1009 for number in range(5 * CHUNK)]
    assert await ordered(numbers, lambda number: -number) == sorted(numbers, reverse=True)


async def test_a_record_that_may_exist_is_not_listed() -> None:
    harness = make_harness()
    record = make_record(existing_only=True)
    harness.world.desired.replace(make_claimant(), [record])
    harness.clusters[0].states[record.key] = RecordState("pending")
    assert (await gather(harness.facts)).entries == {}


async def test_a_shared_record_has_all_its_owners() -> None:
    harness = make_harness()
    record: Any = make_record(body={"uri": "/"})
    harness.world.desired.replace(make_claimant("young", created="2"), [record])
    harness.world.desired.replace(make_claimant("old", created="1"), [record])
    (entry,) = (await gather(harness.facts)).entries.values()
    assert [owner.name for owner in entry.owners] == ["old", "young"]
