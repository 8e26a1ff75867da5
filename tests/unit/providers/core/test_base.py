"""The loop of providers: what is published, kept and withdrawn, and which owners are queued."""

import asyncio

import pytest
from structlog.testing import capture_logs

from apisix_ingress.model.formats.selector import parse_selector
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.names import short_id
from apisix_ingress.model.problem import Problem
from apisix_ingress.runtime.tasks import cancel
from apisix_ingress.state.claims import Claimant, UpstreamClaim
from apisix_ingress.state.world import Report
from providers.core.base import YIELD_EVERY
from providers.core.problems import log_problems
from providers.core.registry import resources
from providers.endpoints import EndpointsProvider
from tests.factories import make_claim, make_key, make_namespace, make_record, make_secret, make_service, make_slice
from tests.unit.providers.harness import ProviderHarness, make_route
from translation.core.options import Options

WEB = make_key("web", kind="Service")
UPSTREAM = "default_web_80"


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> ProviderHarness:
    return ProviderHarness(monkeypatch)


def record_key(name: str) -> RecordKey:
    return make_record(name).key


def is_held(loop: ProviderHarness) -> bool:
    return loop.world.desired.is_held(RecordKey("routes", "any"), "default_web_rule")


def test_object_is_translated_to_records_and_a_report(loop: ProviderHarness) -> None:
    route = make_route(records={"one": "/a", "two": "/b"})
    loop.settle(route)
    assert loop.uris() == {"one": "/a", "two": "/b"}
    assert loop.dirty == {record_key("one"), record_key("two")}
    assert loop.world.reports == {route.meta.key: Report(1)}
    assert loop.sink.owners == [route.meta.key]


def test_object_that_is_queued_without_a_change_makes_nothing_dirty(loop: ProviderHarness) -> None:
    route = make_route(records={"one": "/a"})
    loop.settle(route)
    loop.registry.enqueue(route.meta.key)
    loop.settle()
    assert (loop.translated("web"), loop.dirty) == (2, set())


def test_a_service_is_reported_again_only_if_its_records_or_problems_change(loop: ProviderHarness) -> None:
    loop.settle(make_route(claims=("web",)), make_service(cluster_ip="10.96.0.1"))
    assert WEB in loop.sink.owners
    moved = make_service(cluster_ip="10.96.0.2")
    loop.settle(moved)
    assert (len(loop.dirty), loop.sink.owners) == (1, [])
    loop.delete(moved)
    loop.settle()
    assert loop.sink.owners == [WEB]


def test_a_service_is_queued_once_something_claims_it(loop: ProviderHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(loop.services), "concerns", EndpointsProvider.concerns)
    queue, route = loop.services.queue, make_route(claims=("web",))
    loop.put(make_service("web"))
    assert len(queue) == 0
    loop.settle(route)
    assert UPSTREAM in loop.wanted
    loop.put(make_service("web", cluster_ip="10.9.9.9"))
    assert len(queue) == 1
    loop.delete(route)
    loop.settle()
    assert UPSTREAM not in loop.wanted


def test_only_changed_records_are_dirty(loop: ProviderHarness) -> None:
    loop.settle(make_route(records={"one": "/a", "two": "/b"}))
    loop.settle(make_route(records={"one": "/a", "two": "/c"}))
    assert loop.dirty == {record_key("two")}


def test_failed_translation_keeps_last_good_records_and_holds(loop: ProviderHarness) -> None:
    loop.settle(make_service(), make_route(records={"one": "/a"}, claims=["web"]))
    route = make_route(records={"one": "/b"}, claims=["api"], error="a port is missing")
    loop.settle(route)
    assert loop.uris() == {"one": "/a"}
    assert loop.dirty == set()
    assert is_held(loop)
    assert loop.problems(route) == ["a port is missing"]


def test_failed_translation_keeps_strong_claims(loop: ProviderHarness) -> None:
    loop.settle(make_service(), make_route(claims=["web"]))
    route = make_route(claims=["web", "api"], error="broken")
    loop.settle(route)
    assert loop.world.claims.claims_of(route.meta.key) == {make_claim("web")}
    assert not loop.wanted[UPSTREAM].existing_only


def test_an_untranslated_object_claims_weakly_and_publishes_nothing(loop: ProviderHarness) -> None:
    """The gateway may have its routes from an earlier process: they and their upstreams stay, and are updated."""
    route = make_route(records={"one": "/a"}, claims=["web"], error="broken")
    loop.settle(make_service(), route)
    assert loop.world.claims.claims_of(route.meta.key) == {make_claim("web", weak=True)}
    assert {name: record.existing_only for name, record in loop.wanted.items()} == {UPSTREAM: True}
    assert is_held(loop)


def test_weak_claims_follow_the_object_while_it_fails(loop: ProviderHarness) -> None:
    loop.settle(make_route(claims=["web"], error="broken"))
    route = make_route(claims=["api"], error="broken")
    loop.settle(route)
    assert loop.world.claims.claims_of(route.meta.key) == {make_claim("api", weak=True)}


def test_repaired_object_is_published_and_its_hold_lifted(loop: ProviderHarness) -> None:
    loop.settle(make_service(), make_route(claims=["web"], error="broken"))
    route = make_route(records={"one": "/a"}, claims=["web"])
    loop.settle(route)
    assert loop.world.claims.claims_of(route.meta.key) == {make_claim("web")}
    assert (loop.uris(), loop.wanted[UPSTREAM].existing_only, is_held(loop)) == ({"one": "/a"}, False, False)
    assert loop.world.reports[route.meta.key] == Report(1)


def test_warning_is_published_and_reported(loop: ProviderHarness) -> None:
    route = make_route(records={"one": "/a"}, warning="odd")
    loop.settle(route)
    assert (loop.uris(), loop.problems(route)) == ({"one": "/a"}, ["odd"])


def test_a_deleted_object_leaves_no_trace(loop: ProviderHarness) -> None:
    route = make_route(records={"one": "/a"}, claims=["web"], reads=["cert"])
    loop.settle(make_secret(), make_service(), route)
    loop.delete(route)
    loop.settle()
    assert loop.wanted == {}
    assert loop.dirty == {record_key("one"), make_record(UPSTREAM, kind="upstreams").key}
    assert (loop.world.reports, loop.world.claims.of(WEB)) == ({}, ())
    assert loop.world.dependents.of(make_secret().meta.key) == ()
    assert set(loop.sink.owners) == {route.meta.key, WEB}


def test_deleted_object_that_failed_is_held_no_longer(loop: ProviderHarness) -> None:
    route = make_route(claims=["web"], error="broken")
    loop.settle(make_service(), route)
    loop.delete(route)
    loop.settle()
    assert (is_held(loop), loop.wanted, loop.world.reports) == (False, {}, {})


def test_object_is_withdrawn_when_its_namespace_leaves_and_back_when_it_returns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = ProviderHarness(monkeypatch, Options(namespace_selector=parse_selector("team=a")))
    loop.settle(make_namespace(labels={"team": "a"}), make_route(records={"one": "/a"}))
    assert loop.uris() == {"one": "/a"}
    loop.settle(make_namespace(labels={"team": "b"}))
    assert (loop.uris(), loop.world.reports) == ({}, {})
    loop.settle(make_namespace(labels={"team": "a"}))
    assert loop.uris() == {"one": "/a"}


def test_an_object_of_another_controller_is_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = ProviderHarness(monkeypatch, Options(namespace_selector=parse_selector("team=a")))
    loop.settle(make_route(records={"one": "/a"}))
    assert (loop.wanted, loop.sink.owners, loop.sink.dirty) == ({}, [], [])


def test_creating_a_missing_object_wakes_its_readers(loop: ProviderHarness) -> None:
    route = make_route(records={"one": "/a"}, reads=["cert"])
    loop.settle(route, make_route("other"))
    assert loop.problems(route) == ["Secret default/cert"]
    loop.settle(make_secret())
    assert (loop.uris(), loop.problems(route)) == ({"one": "/a"}, [])
    assert (loop.translated("web"), loop.translated("other")) == (2, 1)


def test_a_dropped_read_queues_nothing(loop: ProviderHarness) -> None:
    loop.settle(make_route(reads=["cert"]))
    loop.settle(make_route())
    loop.settle(make_secret())
    assert loop.translated("web") == 2


def test_a_crashed_translation_is_a_problem_only_of_its_object(loop: ProviderHarness) -> None:
    loop.settle(make_route(reads=["cert"], crash=True), make_route("well", claims=["web"]))
    assert [problem.code for problem in loop.world.reports[make_key()].problems] == ["InternalError"]
    assert loop.world.claims.claims_of(make_key("well")) != frozenset()
    assert loop.world.dependents.of(make_secret().meta.key) == (make_key(),)


def test_claim_wakes_its_service_which_may_not_exist(loop: ProviderHarness) -> None:
    loop.settle(make_route(claims=["web"]))
    assert loop.wanted[UPSTREAM].body["nodes"] == []
    loop.settle(make_service(cluster_ip="10.1.1.1"))
    assert loop.wanted[UPSTREAM].body["nodes"] == ["10.1.1.1"]
    loop.settle(make_route())
    assert loop.wanted == {}


def test_routes_that_share_a_claim_translate_its_service_once(loop: ProviderHarness) -> None:
    loop.settle(make_service(), make_route("old", created="1", claims=["web"]))
    before = loop.services.translated
    loop.settle(*(make_route(f"new{number}", created="2", claims=["web"]) for number in range(10)))
    assert loop.services.translated == before


def test_a_service_without_claims_costs_nothing(loop: ProviderHarness) -> None:
    loop.settle(make_service())
    assert (loop.services.translated, loop.world.reports, loop.sink.owners) == (0, {}, [])


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_older_owner_wins_a_conflict_in_any_order(loop: ProviderHarness, order: tuple[int, int]) -> None:
    old = make_route("z", created="1", records={"one": "/old"})
    new = make_route("a", created="2", records={"one": "/new"})
    for index in order:
        loop.settle((old, new)[index])
    assert loop.uris() == {"one": "/old"}
    assert loop.problems(old) == []
    message = f"the record {record_key('one')} belongs to ApisixRoute default/z, which is older"
    want = Problem("Conflicted", message, "", "degraded")
    assert loop.world.reports[new.meta.key].problems == (want,)


def test_winner_of_another_namespace_is_named_by_its_namespace_only(loop: ProviderHarness) -> None:
    loop.settle(make_route("hidden", namespace="other", created="1", records={"one": "/old"}))
    loser = make_route(created="2", records={"one": "/new"})
    loop.settle(loser)
    (got,) = loop.problems(loser)
    assert got == f"the record {record_key('one')} belongs to an ApisixRoute in namespace other, which is older"


def test_loser_gets_the_record_when_the_winner_goes(loop: ProviderHarness) -> None:
    winner = make_route("z", created="1", records={"one": "/z"})
    loser = make_route("a", created="2", records={"one": "/a"})
    loop.settle(winner, loser)
    loop.delete(winner)
    loop.settle()
    assert (loop.uris(), loop.problems(loser), loop.dirty) == ({"one": "/a"}, [], {record_key("one")})


async def test_problem_is_logged_when_it_is_new(loop: ProviderHarness) -> None:
    await loop.registry.drained()
    with capture_logs() as logs:
        loop.settle(make_route(error="broken"))
        loop.registry.enqueue(make_key())
        loop.settle()
    want = {"object": "ApisixRoute default/web", "code": "Bad", "path": "", "message": "broken"}
    assert logs == [{"event": "object.problem", "log_level": "warning", **want}]


def test_hosts_that_are_shared_are_not_logged() -> None:
    with capture_logs() as logs:
        log_problems(make_key("web"), [Problem("HostShared", "host a.test is used elsewhere", severity="warning")])
    assert logs == []


async def test_a_problem_resolved_during_the_first_pass_is_not_logged(loop: ProviderHarness) -> None:
    with capture_logs() as logs:
        loop.settle(make_route("early", error="not listed yet"), make_route("wrong", error="broken"))
        loop.settle(make_route("early"))
        assert logs == []
        await loop.registry.drained()
        await loop.registry.drained()
    assert [(log["object"], log["message"]) for log in logs] == [("ApisixRoute default/wrong", "broken")]


def test_settle_ends_when_nothing_is_queued(loop: ProviderHarness) -> None:
    loop.settle()
    assert loop.sink.owners == []


def test_settle_finds_translations_that_keep_waking_each_other(loop: ProviderHarness) -> None:
    loop.put(make_route(loops=True))
    with pytest.raises(RuntimeError, match="keep causing each other"):
        loop.registry.settle()


def test_only_one_source_of_endpoints_is_read() -> None:
    sources = {
        source: {kind.kind for kind in resources(options)} & {"Endpoints", "EndpointSlice"}
        for source, options in (
            ("endpoints", Options(endpoint_source="endpoints")),
            ("endpointslices", Options(endpoint_source="endpointslices")),
        )
    }
    assert sources == {"endpoints": {"Endpoints"}, "endpointslices": {"EndpointSlice"}}


def test_only_a_configured_config_map_is_read() -> None:
    source = ObjectKey("ConfigMap", "default", "metadata")
    assert "ConfigMap" not in {kind.kind for kind in resources(Options())}
    assert [kind.only for kind in resources(Options(plugin_metadata=source)) if kind.kind == "ConfigMap"] == [source]


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


async def test_crashed_translation_is_tried_again_after_its_delay(loop: ProviderHarness) -> None:
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


def test_claimants_are_distinguished_by_age(loop: ProviderHarness) -> None:
    loop.settle(make_route("new", created="2", claims=["web"]), make_route("old", created="1", claims=["web"]))
    want = [Claimant("1", make_key("old")), Claimant("2", make_key("new"))]
    assert [claimant for claimant, _ in loop.world.claims.of(WEB)] == want


def test_objects_of_kinds_without_a_provider_are_translated_by_nobody(loop: ProviderHarness) -> None:
    loop.settle(make_secret(), make_namespace(), make_slice())
    assert loop.sink.owners == []


def test_owner_of_an_unknown_kind_cannot_be_queued(loop: ProviderHarness) -> None:
    with pytest.raises(KeyError):
        loop.registry.enqueue(ObjectKey("Pod", "default", "web-0"))
