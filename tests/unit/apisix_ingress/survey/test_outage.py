"""Which conditions tell of nothing but gateways that do not answer."""

import pytest

from apisix_ingress.gateway.states import RecordState
from apisix_ingress.kube.conditions import rendered
from apisix_ingress.kube.texts import bounded_message
from apisix_ingress.survey.outage import is_outage
from providers.conditions import Conditions
from tests.unit.providers.test_conditions import OWNER, ROUTE, UPSTREAM, FakeCluster, make_world

DOWN = RecordState("unreachable", "PUT routes/1: ConnectError: Connection refused")
SLOW = RecordState("unreachable", "PUT upstreams/1: no answer within 5 s")
BUSY = RecordState("unreachable", "PUT routes/1: HTTP 503: Service Unavailable; come back later")
LISTLESS = RecordState("unreachable", "GET routes: no whole list within 60 s")
STORELESS = RecordState("unreachable", "PUT routes/1: the cluster has no healthy etcd endpoint available")
BEHIND = RecordState("waiting", f"waits for upstreams/1: {SLOW.message}")
KEYLESS = RecordState("unreachable", "the gateway refuses the admin key (no token): set clusters[0].admin_key")
REFUSED = RecordState("rejected", "invalid configuration: HTTP 503: is no uri")
STUCK = RecordState("waiting", "waits for upstreams/1, which the gateway rejected: PUT routes/1: HTTP 503: a")
IN_USE = RecordState("waiting", "PUT routes/1: can not delete it, route is still using it now")
BROKEN = RecordState("unreachable", "internal error: see the log of the controller")


def told(*clusters: FakeCluster) -> str:
    """Return the message of the condition, as it is stored."""
    condition = Conditions(make_world(ROUTE, UPSTREAM), clusters).of(OWNER)
    assert condition is not None
    return str(rendered(condition)["message"])


@pytest.mark.parametrize("state", [DOWN, SLOW, BUSY, LISTLESS, STORELESS, BEHIND])
def test_a_gateway_that_does_not_answer_is_an_outage(state: RecordState) -> None:
    down = {ROUTE.key: state, UPSTREAM.key: DOWN}
    assert is_outage(told(FakeCluster(states=down)))
    assert is_outage(told(FakeCluster("east", down), FakeCluster("west"), FakeCluster("south", {ROUTE.key: state})))


@pytest.mark.parametrize("state", [KEYLESS, REFUSED, STUCK, IN_USE, BROKEN])
def test_a_refusal_is_none_whoever_else_is_away(state: RecordState) -> None:
    assert not is_outage(told(FakeCluster(states={ROUTE.key: state})))
    assert not is_outage(told(FakeCluster(states={ROUTE.key: DOWN, UPSTREAM.key: state})))
    away = FakeCluster("east", {ROUTE.key: DOWN})
    assert not is_outage(told(away, FakeCluster("west", {ROUTE.key: state})))
    assert not is_outage(told(FakeCluster("west", {ROUTE.key: state}), away))


def test_a_problem_of_the_object_is_none() -> None:
    assert not is_outage("spec.http[0].backends[0].serviceName: Service default/web does not exist; create it")


def test_a_message_that_was_shortened_is_judged_by_what_is_left() -> None:
    failures = [f"routes/{number}: PUT routes/{number}: ReadError: Connection reset by peer" for number in range(40)]
    message = bounded_message("; ".join(failures))
    assert message.endswith(")")
    assert is_outage(message)
    assert is_outage(bounded_message(f"routes/1: PUT routes/1: HTTP 502: {'x' * 2000}"))
