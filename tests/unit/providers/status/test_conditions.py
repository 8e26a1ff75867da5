"""Conditions of objects, from reports and from the states of records in clusters."""

from collections.abc import Sequence

import pytest

from apisix_ingress.gateway.sync.observer import RecordState
from apisix_ingress.model.condition import Cause, Condition, aborted, synced
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.problem import Problem
from apisix_ingress.model.records import Record
from apisix_ingress.state.claims import Claimant
from apisix_ingress.state.world import Report, World
from providers.status.conditions import Conditions
from tests.factories import make_claim, make_claimant, make_key, make_record
from tests.fakes.cluster import FakeCluster

OWNER = make_key()
WEB = make_key("web", kind="Service")
UPSTREAM = make_record("default_web_80", kind="upstreams")
ROUTE = make_record("one", body={"upstream_id": UPSTREAM.key.id})


def make_world(*records: Record, problems: Sequence[Problem] = (), generation: int = 3) -> World:
    """Return a world in which `OWNER` has records and a report."""
    world = World([])
    world.desired.replace(make_claimant("web"), records)
    world.reports[OWNER] = Report(generation, tuple(problems))
    return world


def condition_of(world: World, *clusters: FakeCluster) -> Condition | None:
    return Conditions(world, clusters).of(OWNER)


def test_an_object_without_a_report_has_no_problems() -> None:
    assert condition_of(World([]), FakeCluster()) is None


def test_object_is_synced_once_every_cluster_has_every_record() -> None:
    assert condition_of(make_world(ROUTE), FakeCluster("east"), FakeCluster("west")) == synced(3)


def test_object_without_records_is_synced() -> None:
    assert condition_of(make_world(), FakeCluster()) == synced(3)


def test_errors_and_degradations_are_shown_regardless_of_the_clusters() -> None:
    cluster = FakeCluster(states={ROUTE.key: RecordState("rejected", "no")})
    problems = [
        Problem("A", "a is missing", "spec.a"),
        Problem("B", "lost", severity="degraded"),
        Problem("C", "odd", severity="warning"),
    ]
    got = condition_of(make_world(ROUTE, problems=problems), cluster)
    assert got == aborted(3, "spec.a: a is missing; lost")


def test_warning_does_not_hinder_success() -> None:
    warning = Problem("C", "odd", severity="warning")
    assert condition_of(make_world(ROUTE, problems=[warning]), FakeCluster()) == synced(3)


def test_warnings_about_annotations_of_ingress_nginx_are_one_cause_beside_the_condition() -> None:
    warnings = [
        Problem("NginxNoEffect", "unknown", "metadata.annotations[a]", severity="warning"),
        Problem("PluginTwice", "odd", "spec.c", severity="warning"),
        Problem("NginxDiffers", "differs", severity="warning"),
    ]
    broken = Problem("A", "a is missing", "spec.a")
    for problems in (warnings, [broken, *warnings]):
        got = condition_of(make_world(ROUTE, problems=problems), FakeCluster())
        assert got is not None
        assert got.warning == Cause("NginxNoEffect", "metadata.annotations[a]: unknown; differs")
    got = condition_of(make_world(ROUTE, problems=warnings[1:2]), FakeCluster())
    assert got is not None
    assert got.warning is None


def test_a_host_of_several_namespaces_is_reported_and_the_condition_stays_true() -> None:
    shared = Problem("HostShared", "host a.com is also used in namespace red", severity="warning")
    got = condition_of(make_world(ROUTE, problems=[shared]), FakeCluster())
    assert got == synced(3, shared.message)
    assert (got.status, got.message) == ("True", "Sync Successfully; host a.com is also used in namespace red")


def test_nothing_is_reported_while_a_record_is_being_written() -> None:
    cluster = FakeCluster(states={ROUTE.key: RecordState("pending")})
    assert condition_of(make_world(ROUTE), FakeCluster("east"), cluster) is None


def test_a_failure_names_the_record_and_the_gateways_error() -> None:
    bad = FakeCluster(states={ROUTE.key: RecordState("rejected", "uri: wrong type")})
    assert condition_of(make_world(ROUTE), bad) == aborted(3, f"{ROUTE.key}: uri: wrong type")


TAKEN = "duplicate key of plugin key-auth found with consumer: "


@pytest.mark.parametrize(
    ("namespace", "username", "reported"),
    [
        ("default", "default_jack", f"{TAKEN}default_jack; use another credential"),
        ("red", "red_jack", "the credential for plugin key-auth cannot be used; use another one"),
        ("red", "by_hand", "the credential for plugin key-auth cannot be used; use another one"),
    ],
)
def test_the_owner_of_a_credential_is_named_only_within_its_namespace(
    namespace: str, username: str, reported: str
) -> None:
    mine, others = make_record("mine", kind="consumers"), Record(RecordKey("consumers", f"{namespace}_jack"), "", {})
    world = make_world(mine)
    world.desired.replace(Claimant("", ObjectKey("ApisixConsumer", namespace, "jack")), [others])
    cluster = FakeCluster(states={mine.key: RecordState("waiting", f"PUT consumers/mine: {TAKEN}{username}")})
    assert condition_of(world, cluster) == aborted(3, f"{mine.key}: PUT consumers/mine: {reported}")


def test_the_owner_of_a_username_is_named_only_within_its_namespace() -> None:
    mine = make_record("mine", kind="consumers")
    message = "duplicate username of plugin basic-auth found with consumer: red_jack"
    cluster = FakeCluster(states={mine.key: RecordState("waiting", message)})
    reported = "the credential for plugin basic-auth cannot be used; use another one"
    assert condition_of(make_world(mine), cluster) == aborted(3, f"{mine.key}: {reported}")


def test_refusing_accepting_and_silent_clusters_are_named() -> None:
    west = FakeCluster("west", {ROUTE.key: RecordState("rejected", "uri: wrong type")})
    south = FakeCluster("south", {ROUTE.key: RecordState("pending")})
    got = condition_of(make_world(ROUTE), FakeCluster("east"), west, FakeCluster("north"), south)
    reported = f"cluster west: {ROUTE.key}: uri: wrong type; accepted by east, north; not confirmed yet by south"
    assert got == aborted(3, reported)


def test_a_cluster_without_records_of_the_object_is_not_named() -> None:
    local = make_record("local", clusters=frozenset({"east"}))
    east = FakeCluster("east", {local.key: RecordState("rejected", "no")})
    assert condition_of(make_world(local), east, FakeCluster("west")) == aborted(3, f"cluster east: {local.key}: no")


def test_every_failure_is_reported_while_others_are_in_progress() -> None:
    other = make_record("two")
    states = {
        ROUTE.key: RecordState("waiting", "its upstream was rejected"),
        UPSTREAM.key: RecordState("unreachable", "connection refused"),
        other.key: RecordState("pending"),
    }
    got = condition_of(make_world(ROUTE, other), FakeCluster(states=states))
    assert got == aborted(3, f"{ROUTE.key}: its upstream was rejected; {UPSTREAM.key}: connection refused")


def config_condition(*clusters: FakeCluster) -> Condition | None:
    """Return the condition of an ApisixClusterConfig named `east` without records."""
    key = make_key("east", kind="ApisixClusterConfig", namespace="")
    world = World([])
    world.reports[key] = Report(2)
    return Conditions(world, clusters).of(key)


def test_a_cluster_config_waits_for_the_comparison_of_its_cluster() -> None:
    east, west = FakeCluster("east", taken_over=False), FakeCluster("west", taken_over=False)
    assert config_condition(east, west) is None
    east.taken_over = True
    assert config_condition(east, west) == synced(2)


def test_a_cluster_config_reports_why_its_cluster_does_not_respond() -> None:
    east = FakeCluster("east", trouble="connection refused")
    assert config_condition(east) == aborted(2, "connection refused")
    other = FakeCluster("west", trouble="no")
    assert config_condition(east, other) == aborted(2, "cluster east: connection refused")
    assert config_condition(FakeCluster("east"), other) == synced(2)


def test_plugin_config_that_was_never_published_is_named() -> None:
    world = World([])
    config = make_record("default_pc", kind="plugin_configs")
    route = make_record("one", body={"plugin_config_id": config.key.id})
    world.desired.replace(make_claimant("web"), [route])
    world.reports[OWNER] = Report(3)
    key = make_key("pc", kind="ApisixPluginConfig")
    view = world.view()
    view.record_id("plugin_configs", "default_pc")
    world.dependents.record(OWNER, [key, make_key("other", kind="ApisixPluginConfig"), *view.reads])
    waiting = FakeCluster(states={route.key: RecordState("waiting", "waits")})
    assert condition_of(world, waiting) == aborted(3, f"{route.key}: waits; see the condition of {key}")
    world.desired.replace(make_claimant("pc", kind="ApisixPluginConfig"), [config])
    assert condition_of(world, waiting) == aborted(3, f"{route.key}: waits")


def test_condition_waits_for_the_records_that_the_owners_records_name() -> None:
    cluster = FakeCluster(states={UPSTREAM.key: RecordState("pending")})
    assert condition_of(make_world(ROUTE), cluster) is None


def test_each_record_is_requested_once() -> None:
    cluster = FakeCluster()
    second = make_record("two", body={"upstream_id": UPSTREAM.key.id})
    condition_of(make_world(ROUTE, second), cluster)
    assert cluster.asked == [ROUTE.key, second.key, UPSTREAM.key]


def test_a_cluster_is_queried_for_its_own_records_only() -> None:
    east, west = FakeCluster("east"), FakeCluster("west")
    local = make_record("local", clusters=frozenset({"east"}))
    assert condition_of(make_world(local), east, west) == synced(3)
    assert (east.asked, west.asked) == ([local.key], [])


def test_owners_and_claimants_are_interested_in_a_record() -> None:
    world = make_world(ROUTE)
    world.desired.replace(make_claimant("web", kind="Service"), [UPSTREAM])
    world.claims.replace(make_claimant("web"), [make_claim()])
    world.claims.replace(make_claimant("other"), [make_claim()])
    conditions = Conditions(world, [])
    assert conditions.interested(UPSTREAM.key) == (WEB, make_key("other"), OWNER)
    assert conditions.interested(ROUTE.key) == (OWNER,)
    assert conditions.interested(make_record("gone").key) == ()


def test_an_object_that_waits_for_a_pending_record_is_returned_once() -> None:
    conditions = Conditions(make_world(ROUTE), [FakeCluster(states={UPSTREAM.key: RecordState("pending")})])
    assert conditions.of(OWNER) is None
    assert conditions.take_waiting(ROUTE.key) == ()
    assert conditions.take_waiting(UPSTREAM.key) == (OWNER,)
    assert conditions.take_waiting(UPSTREAM.key) == ()


def test_thousands_of_failures_are_reported_in_part() -> None:
    records = [make_record(f"r{number}") for number in range(3000)]
    cluster = FakeCluster(states={record.key: RecordState("rejected", "no" * 400) for record in records})
    got = condition_of(make_world(*records), cluster)
    assert got is not None
    assert got.message.endswith("; and 2990 more")
    assert len(got.message) < 12_000
    problems = [Problem("A", f"{number} is missing") for number in range(3000)]
    got = condition_of(make_world(problems=problems), cluster)
    assert got is not None
    assert got.message == "; ".join([*(f"{number} is missing" for number in range(10)), "and 2990 more"])
