"""Conditions of objects that are not in effect only because gateways do not respond."""

import pytest

from apisix_ingress.gateway.sync.observer import RecordState
from apisix_ingress.kube.status.condition_list import rendered
from apisix_ingress.model.condition import AWAY, Condition, is_away
from providers.status.conditions import Conditions
from tests.factories import make_key
from tests.fakes.cluster import FakeCluster
from tests.unit.providers.status.test_conditions import OWNER, ROUTE, UPSTREAM, make_world

DOWN = RecordState("unreachable", "PUT routes/1: ConnectError: Connection refused", is_away=True)
BEHIND = RecordState("waiting", "waits for upstreams/1: PUT upstreams/1: no response within 5 s", is_away=True)
KEYLESS = RecordState("unreachable", "the gateway rejects the admin key (no token): set clusters[0].admin_key")
REFUSED = RecordState("rejected", f"{AWAY}PUT routes/1: HTTP 503: a")


def reported(*clusters: FakeCluster) -> Condition:
    condition = Conditions(make_world(ROUTE, UPSTREAM), clusters).of(OWNER)
    assert condition is not None
    return condition


@pytest.mark.parametrize("state", [DOWN, BEHIND])
def test_a_condition_reports_unreachable_gateways(state: RecordState) -> None:
    down = {ROUTE.key: state, UPSTREAM.key: DOWN}
    alone = reported(FakeCluster(states=down))
    assert alone.message == AWAY + "; ".join(dict.fromkeys((state.message, DOWN.message)))
    assert (alone.status, alone.reason) == ("False", "ResourceSyncAborted")
    among_others = reported(FakeCluster("east", down), FakeCluster("west"), FakeCluster("south", {ROUTE.key: state}))
    assert is_away(alone.message)
    assert is_away(among_others.message)
    assert among_others.message.endswith("; accepted by west")


def test_the_causes_of_a_condition_say_which_cluster_failed_and_how() -> None:
    got = reported(FakeCluster("east", {ROUTE.key: DOWN}), FakeCluster("west", {ROUTE.key: REFUSED}))
    assert [(each.reason, each.message) for each in got.causes] == [
        ("GatewayUnavailable", f"cluster east: {DOWN.message}"),
        ("GatewayRejected", f"cluster west: {ROUTE.key}: {REFUSED.message}"),
    ]


@pytest.mark.parametrize("state", [KEYLESS, REFUSED])
def test_a_refusal_takes_precedence_over_unreachable_gateways(state: RecordState) -> None:
    assert not is_away(reported(FakeCluster(states={ROUTE.key: state})).message)
    assert not is_away(reported(FakeCluster(states={ROUTE.key: DOWN, UPSTREAM.key: state})).message)
    away = FakeCluster("east", {ROUTE.key: DOWN})
    assert not is_away(reported(away, FakeCluster("west", {ROUTE.key: state})).message)
    assert not is_away(reported(FakeCluster("west", {ROUTE.key: state}), away).message)


def test_a_shortened_message_is_marked() -> None:
    long = RecordState("unreachable", f"PUT routes/1: HTTP 502: {'x' * 40_000}", is_away=True)
    shortened = str(rendered(reported(FakeCluster(states={ROUTE.key: long})))["message"])
    assert len(shortened) < 40_000
    assert is_away(shortened)


@pytest.mark.parametrize("away", [True, False])
def test_an_object_that_says_where_a_cluster_is_says_whether_it_is_away(away: bool) -> None:
    key = make_key("default", kind="ApisixClusterConfig", namespace="")
    world = make_world()
    world.reports[key] = world.reports[OWNER]
    cluster = FakeCluster(trouble="no route to host", taken_over=False, is_away=away)
    condition = Conditions(world, [cluster]).of(key)
    assert condition is not None
    assert condition.message == f"{AWAY if away else ''}no route to host"
