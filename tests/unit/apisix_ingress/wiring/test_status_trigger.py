"""Which objects' status is checked after a report or state of a record changed, and in which order."""

from dataclasses import dataclass, field

from apisix_ingress.gateway.sync.observer import APPLIED, PENDING, RecordState
from apisix_ingress.model.condition import synced
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.problem import Problem
from apisix_ingress.state.world import Report, World
from apisix_ingress.wiring.status_trigger import StatusTrigger
from providers.status.conditions import Conditions
from tests.factories import make_claim, make_claimant, make_key, make_record
from tests.fakes.cluster import FakeCluster

ROUTE_OBJECT = make_key()
SERVICE = make_key("web", kind="Service")
UPSTREAM = make_record("default_web_80", kind="upstreams")
ROUTE = make_record("one", body={"upstream_id": UPSTREAM.key.id})


@dataclass
class Harness:
    """A route object with a claim on the upstream of a Service, and which objects were queued, and how urgently."""

    cluster: FakeCluster = field(default_factory=FakeCluster)
    woken: dict[ObjectKey, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.world = World([])
        self.world.desired.replace(make_claimant("web"), [ROUTE])
        self.world.desired.replace(make_claimant("web", kind="Service"), [UPSTREAM])
        self.world.claims.replace(make_claimant("web"), [make_claim()])
        self.world.reports[ROUTE_OBJECT] = Report(1, ())
        self.conditions = Conditions(self.world, [self.cluster])
        self.trigger = StatusTrigger(self.conditions, self)

    def wake(self, key: ObjectKey, *, urgent: bool = False) -> None:
        self.woken[key] = urgent

    def outcome(self, state: RecordState) -> dict[ObjectKey, bool]:
        """Set the state of the upstream; return the queued objects."""
        self.cluster.states[UPSTREAM.key] = state
        self.woken.clear()
        self.trigger.outcome("default", UPSTREAM.key, state)
        return dict(self.woken)


def test_claimant_and_service_are_woken_only_when_the_state_changes_and_first_when_it_was_rejected() -> None:
    harness = Harness()
    assert harness.outcome(APPLIED) == {SERVICE: False, ROUTE_OBJECT: False}
    assert harness.outcome(APPLIED) == {}
    assert harness.outcome(RecordState("rejected", "no")) == {SERVICE: True, ROUTE_OBJECT: True}


def test_claimant_that_was_checked_while_the_upstream_was_pending_is_woken_although_the_state_is_the_old_one() -> None:
    harness = Harness()
    harness.outcome(APPLIED)
    harness.cluster.states[UPSTREAM.key] = PENDING
    assert harness.conditions.of(ROUTE_OBJECT) is None
    assert harness.outcome(APPLIED) == {ROUTE_OBJECT: False}
    assert harness.conditions.of(ROUTE_OBJECT) == synced(1)
    assert harness.outcome(APPLIED) == {}


def test_owner_with_a_status_is_woken_when_its_record_is_written_again() -> None:
    harness = Harness()
    for _ in range(2):
        harness.woken.clear()
        harness.trigger.outcome("default", ROUTE.key, APPLIED)
        assert harness.woken == {ROUTE_OBJECT: False}


def test_object_that_configures_a_cluster_is_woken_when_its_health_changes() -> None:
    harness = Harness()
    config = ObjectKey("ApisixClusterConfig", "", "default")
    harness.trigger.compared("default", ok=False)
    assert harness.woken == {config: False}
    harness.woken.clear()
    harness.trigger.breaker("default", is_open=True)
    assert harness.woken == {config: False}


def test_report_with_an_error_is_urgent_and_one_with_a_warning_is_not() -> None:
    harness = Harness()
    got = []
    for problems in ((), (Problem("A", "a note", "", "warning"),), (Problem("B", "broken"),)):
        harness.world.reports[ROUTE_OBJECT] = Report(1, problems)
        harness.trigger.reported(ROUTE_OBJECT)
        got.append(harness.woken[ROUTE_OBJECT])
    assert got == [False, False, True]
