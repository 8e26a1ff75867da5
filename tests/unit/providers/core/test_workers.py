"""Workers of providers: urgency, crashes, and turns of namespaces and other tasks."""

import asyncio

import pytest
from structlog.testing import capture_logs

from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.names import short_id
from apisix_ingress.runtime.tasks import cancel
from apisix_ingress.state.claims import Claimant, UpstreamClaim
from providers.core.base import YIELD_EVERY
from tests.factories import make_key, make_service, make_slice
from tests.unit.providers.core.providing import UPSTREAM, record_key
from tests.unit.providers.harness import ProviderHarness, make_route


async def test_records_are_urgent_only_when_live_and_declared_by_the_provider(loop: ProviderHarness) -> None:
    route = make_route(records={"one": "/a"}, claims=["web"])
    loop.settle(make_service(), route)
    assert {urgent for _, urgent in loop.sink.dirty} == {False}
    await loop.registry.drained()
    loop.settle(make_service(cluster_ip="10.1.1.1"), make_route(records={"one": "/b"}, claims=["web"]))
    upstream = RecordKey("upstreams", short_id(UPSTREAM))
    assert sorted(loop.sink.dirty, key=str) == sorted(
        [(frozenset({record_key("one")}), False), (frozenset({upstream}), True)], key=str
    )


@pytest.mark.parametrize("live", [False, True])
async def test_change_of_endpoints_overtakes_only_once_live(loop: ProviderHarness, live: bool) -> None:
    reader, other = make_key("reader", kind="Service"), make_key("other", kind="Service")
    if live:
        await loop.registry.drained()
    loop.world.dependents.record(reader, [make_slice().meta.key])
    loop.put(make_service("other"), make_slice())
    assert loop.services.queue.take() == (reader if live else other)


async def test_drained_waits_for_every_queue_and_makes_it_live(loop: ProviderHarness) -> None:
    loop.put(make_service(), make_route(records={"one": "/a"}, claims=["web"]))
    assert not loop.registry.live
    async with asyncio.TaskGroup() as group:
        run = group.create_task(loop.registry.run())
        await asyncio.wait_for(loop.registry.drained(), 5)
        assert (loop.registry.live, set(loop.wanted)) == (True, {"one", UPSTREAM})
        loop.registry.shut_down()
    assert run.done()


async def test_drained_without_workers_waits(loop: ProviderHarness) -> None:
    loop.put(make_route())
    drained = asyncio.get_running_loop().create_task(loop.registry.drained())
    await loop.clock.settle()
    assert (drained.done(), loop.registry.live) == (False, False)
    loop.registry.settle()
    await asyncio.wait_for(drained, 5)
    assert loop.registry.live


async def test_translation_that_crashes_is_retried_and_affects_only_its_object(loop: ProviderHarness) -> None:
    loop.settle(make_route("bad", records={"one": "/a"}))
    loop.put(make_route("bad", crash=True), make_route("good", records={"two": "/b"}))
    run = asyncio.get_running_loop().create_task(loop.registry.run())
    with capture_logs() as logs:
        await asyncio.wait_for(loop.registry.drained(), 5)
    assert loop.uris() == {"one": "/a", "two": "/b"}
    assert [(entry["event"], entry["object"]) for entry in logs] == [
        ("object.translate_failed", "ApisixRoute default/bad")
    ]
    loop.put(make_route("bad", records={"one": "/c"}))
    await asyncio.wait_for(loop.registry.drained(), 5)
    assert loop.uris() == {"one": "/c", "two": "/b"}
    await cancel(run)


async def test_a_crash_at_the_start_holds_the_objects_possible_records_and_is_reported(loop: ProviderHarness) -> None:
    loop.put(make_route("bad", crash=True))
    run = asyncio.get_running_loop().create_task(loop.registry.run())
    with capture_logs():
        await asyncio.wait_for(loop.registry.drained(), 5)
    held = loop.world.desired.is_held
    assert held(RecordKey("routes", "1"), "default_bad_rule")
    assert held(RecordKey("plugin_configs", short_id("default_bad")), "")
    assert not held(RecordKey("routes", "1"), "default_good_rule")
    assert [problem.code for problem in loop.world.reports[make_key("bad")].problems] == ["InternalError"]
    loop.put(make_route("bad", records={"one": "/a"}))
    await asyncio.wait_for(loop.registry.drained(), 5)
    assert not held(RecordKey("routes", "1"), "default_bad_rule")
    await cancel(run)


async def test_a_crashed_translation_is_retried_after_its_delay(loop: ProviderHarness) -> None:
    loop.put(make_route("bad", crash=True))
    run = asyncio.get_running_loop().create_task(loop.registry.run())
    with capture_logs() as logs:
        await asyncio.wait_for(loop.registry.drained(), 5)
        await loop.clock.advance(0.1)
    assert len(logs) == 2
    await cancel(run)


async def test_shut_down_lets_the_queues_run_dry(loop: ProviderHarness) -> None:
    loop.put(make_route(records={"one": "/a"}))
    loop.registry.shut_down()
    loop.put(make_route("late", records={"two": "/b"}))
    await asyncio.wait_for(loop.registry.run(), 5)
    assert loop.uris() == {"one": "/a"}


async def sizes_during(loop: ProviderHarness) -> set[int]:
    """Run the providers to their end; return how many records were desired each time another task ran."""
    seen: set[int] = set()

    async def watch() -> None:
        while True:
            seen.add(len(loop.wanted))
            await asyncio.sleep(0)

    watcher = asyncio.get_running_loop().create_task(watch())
    loop.registry.shut_down()
    await asyncio.wait_for(loop.registry.run(), 5)
    await cancel(watcher)
    return seen


async def test_other_tasks_run_during_a_burst(loop: ProviderHarness) -> None:
    loop.put(*(make_route(f"r{number}", records={f"r{number}": "/"}) for number in range(3 * YIELD_EVERY)))
    seen = await sizes_during(loop)
    assert {0, YIELD_EVERY, 2 * YIELD_EVERY} <= seen


@pytest.mark.parametrize("seconds", [1.0, 0.02])
async def test_other_tasks_run_after_each_long_translation(loop: ProviderHarness, seconds: float) -> None:
    loop.put(*(make_route(f"r{number}", records={f"r{number}": "/"}, seconds=seconds) for number in range(3)))
    seen = await sizes_during(loop)
    assert {0, 1, 2} <= seen


def test_objects_above_a_namespaces_budget_wait_until_others_are_deleted(loop: ProviderHarness) -> None:
    large = "/" + "x" * 1000
    loop.world.budget.most = 1500
    one, two = (make_route(name, records={name: large}) for name in ("one", "two"))
    other = make_route("three", namespace="other", records={"three": large})
    loop.settle(one, two, other)
    assert loop.uris() == {"one": large, "three": large}
    assert [problem.split(":")[0] for problem in loop.problems(two)] == [
        "the objects of this namespace would exceed the limit of 0 MiB of records"
    ]
    loop.settle(make_route("two", records={"two": "/small"}))
    assert loop.uris() == {"one": large, "two": "/small", "three": large}
    loop.settle(two)
    assert loop.uris() == {"one": large, "two": "/small", "three": large}
    loop.delete(one)
    loop.settle()
    assert loop.uris() == {"two": large, "three": large}
    assert loop.problems(two) == []


async def test_namespaces_take_turns_at_translation(loop: ProviderHarness) -> None:
    for number in range(100):
        loop.put(make_route(f"r{number}", namespace="hog", records={f"hog{number}": "/"}))
    loop.put(make_route("web", namespace="victim", records={"victim": "/"}))
    queue = loop.registry.providers["ApisixRoute"].queue
    assert [key.namespace for key in (queue.take(), queue.take()) if key] == ["hog", "victim"]


async def test_namespace_rests_as_long_as_its_translation_took_and_no_other_one_does(loop: ProviderHarness) -> None:
    async with asyncio.timeout(5):
        running = asyncio.create_task(loop.registry.run())
        await loop.registry.drained()
        start = loop.clock.monotonic()
        for uri in ("/1", "/2"):
            loop.put(make_route("big", namespace="hog", records={"hog": uri}, seconds=2.0))
            await loop.clock.advance(0)
        assert (loop.clock.monotonic() - start, loop.uris()) == (2.0, {"hog": "/1"})
        loop.put(make_route("web", namespace="victim", records={"victim": "/"}))
        await loop.clock.advance(1.9)
        assert loop.uris() == {"hog": "/1", "victim": "/"}
        await loop.clock.advance(0.1)
        assert loop.uris() == {"hog": "/2", "victim": "/"}
        loop.registry.shut_down()
        await running


async def test_endpoints_rest_only_after_long_work_on_endpoints_of_their_namespace(loop: ProviderHarness) -> None:
    async with asyncio.timeout(5):
        running = asyncio.create_task(loop.registry.run())
        for each in ("hog", "victim"):
            claim = UpstreamClaim(make_key("web", kind="Service", namespace=each))
            loop.world.claims.replace(Claimant("1", make_key("r", namespace=each)), [claim])
        await loop.registry.drained()
        loop.put(make_route("big", namespace="hog", records={"hog": "/"}, seconds=2.0))
        await loop.clock.advance(0)
        loop.services.slow = "hog"
        for turn, want in enumerate([["hog", "victim"], ["victim"]]):
            loop.services.seen.clear()
            loop.put(*(make_service(namespace=each, cluster_ip=f"10.1.1.{turn}") for each in ("hog", "victim")))
            await loop.clock.advance(0)
            assert loop.services.seen == want
        await loop.clock.advance(2.0)
        assert loop.services.seen == ["victim", "hog"]
        loop.registry.shut_down()
        await running


async def test_no_worker_pauses_before_everything_is_translated(loop: ProviderHarness) -> None:
    async with asyncio.timeout(5):
        running = asyncio.create_task(loop.registry.run())
        await loop.registry.drained()
        for uri in ("/1", "/2"):
            loop.put(make_route("big", namespace="hog", records={"hog": uri}, seconds=2.0))
            await loop.clock.advance(0)
        assert loop.uris() == {"hog": "/1"}
        await loop.registry.drained()
        assert loop.uris() == {"hog": "/2"}
        loop.put(make_route("big", namespace="hog", records={"hog": "/3"}, seconds=2.0))
        await loop.registry.drained()
        assert loop.uris() == {"hog": "/3"}
        loop.registry.shut_down()
        await running
