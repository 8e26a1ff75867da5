"""Providers: from objects to records, reports and claims."""

import pytest
from structlog.testing import capture_logs

from apisix_ingress.model.formats.selector import parse_selector
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.problem import Problem
from apisix_ingress.state.claims import Claimant
from apisix_ingress.state.world import Report
from providers.core.problems import log_problems
from providers.core.registry import resources
from providers.endpoints import EndpointsProvider
from tests.factories import make_claim, make_key, make_namespace, make_record, make_secret, make_service, make_slice
from tests.unit.providers.core.providing import UPSTREAM, record_key
from tests.unit.providers.harness import ProviderHarness, make_route
from translation.core.options import Options

WEB = make_key("web", kind="Service")


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


def test_records_that_preceded_the_lists_of_other_kinds_are_not_the_last_good_ones(loop: ProviderHarness) -> None:
    """A route may seem valid until an object is listed that it needs; what the gateway has must stay, not this."""
    route = make_route(records={"one": "/a"}, claims=["web"])
    loop.put(make_service(), route)
    loop.registry.providers["ApisixRoute"].settle_one(route.meta.key)
    assert loop.uris() == {"one": "/a"}
    loop.settle(make_route(records={"one": "/a"}, claims=["web"], error="the ApisixUpstream is invalid"))
    assert {name: record.existing_only for name, record in loop.wanted.items()} == {UPSTREAM: True}
    assert loop.world.claims.claims_of(route.meta.key) == {make_claim("web", weak=True)}
    assert is_held(loop)


def test_hosts_of_records_that_were_withdrawn_before_everything_was_listed_are_no_longer_shared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = ProviderHarness(monkeypatch, Options(host_ownership="shared"))
    host = {"hosts": ["a.test"]}
    red = make_route("red", namespace="red", records={"red": "/"}, body=host)
    blue = make_route("blue", namespace="blue", records={"blue": "/"}, body=host)
    loop.put(red, blue)
    for route in (red, blue):
        loop.registry.providers["ApisixRoute"].settle_one(route.meta.key)
    loop.settle(make_route("red", namespace="red", error="the ApisixUpstream is invalid"))
    assert loop.problems(blue) == []


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


def test_the_records_of_a_withdrawn_object_are_removed_and_its_problems_are_reported(loop: ProviderHarness) -> None:
    loop.settle(make_route(records={"one": "/a"}, claims=("web",)))
    withdrawn = make_route(withdrawn="its grant was removed", error="no grant")
    with capture_logs() as logs:
        loop.settle(withdrawn)
        loop.registry.enqueue(withdrawn.meta.key)
        loop.settle()
    assert loop.wanted == {}
    assert not is_held(loop)
    assert loop.world.claims.claims_of(withdrawn.meta.key) == frozenset()
    assert loop.problems(withdrawn) == ["no grant"]
    assert [line["reason"] for line in logs if line["event"] == "object.withdrawn"] == ["its grant was removed"]


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


def test_claimants_are_distinguished_by_age(loop: ProviderHarness) -> None:
    loop.settle(make_route("new", created="2", claims=["web"]), make_route("old", created="1", claims=["web"]))
    want = [Claimant("1", make_key("old")), Claimant("2", make_key("new"))]
    assert [claimant for claimant, _ in loop.world.claims.of(WEB)] == want


def test_objects_of_kinds_without_a_provider_are_not_translated(loop: ProviderHarness) -> None:
    loop.settle(make_secret(), make_namespace(), make_slice())
    assert loop.sink.owners == []


def test_owner_of_an_unknown_kind_cannot_be_queued(loop: ProviderHarness) -> None:
    with pytest.raises(KeyError):
        loop.registry.enqueue(ObjectKey("Pod", "default", "web-0"))
