"""Observers: whose status is looked at after a record's state."""

from dataclasses import dataclass, field

from apisix_ingress.gateway.states import APPLIED, PENDING, RecordState
from apisix_ingress.metrics import Metrics
from apisix_ingress.model.condition import synced
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.observers import SyncMetrics
from apisix_ingress.state.world import Report, World
from providers.conditions import Conditions
from tests.factories import make_claim, make_claimant, make_key, make_record

ROUTE_OBJECT = make_key()
SERVICE = make_key("web", kind="Service")
UPSTREAM = make_record("default_web_80", kind="upstreams")
ROUTE = make_record("one", body={"upstream_id": UPSTREAM.key.id})


@dataclass
class FakeCluster:
    name: str = "default"
    states: dict[RecordKey, RecordState] = field(default_factory=dict)

    def record_state(self, key: RecordKey) -> RecordState:
        return self.states.get(key, APPLIED)


@dataclass
class Stage:
    """A route object with a claim on the upstream of a Service, and who was woken."""

    cluster: FakeCluster = field(default_factory=FakeCluster)
    woken: list[ObjectKey] = field(default_factory=list)

    def __post_init__(self) -> None:
        world = World([])
        world.desired.replace(make_claimant("web"), [ROUTE])
        world.desired.replace(make_claimant("web", kind="Service"), [UPSTREAM])
        world.claims.replace(make_claimant("web"), [make_claim()])
        world.reports[ROUTE_OBJECT] = Report(1, ())
        self.conditions = Conditions(world, [self.cluster])
        self.metrics = SyncMetrics(Metrics(pod="p", namespace="n"), self.conditions, self.wake)

    def wake(self, key: ObjectKey) -> None:
        self.woken.append(key)

    def outcome(self, state: RecordState) -> list[ObjectKey]:
        """Let the upstream come to this state; return who is woken."""
        self.cluster.states[UPSTREAM.key] = state
        self.woken.clear()
        self.metrics.outcome("default", UPSTREAM.key, state)
        return list(self.woken)


def test_claimant_is_woken_when_the_state_is_another_one_only() -> None:
    stage = Stage()
    assert stage.outcome(APPLIED) == [SERVICE, ROUTE_OBJECT]
    assert stage.outcome(APPLIED) == [SERVICE]
    assert stage.outcome(RecordState("rejected", "no")) == [SERVICE, ROUTE_OBJECT]


def test_claimant_that_asked_while_the_upstream_was_under_way_is_woken_although_the_state_is_the_old_one() -> None:
    stage = Stage()
    stage.outcome(APPLIED)
    stage.cluster.states[UPSTREAM.key] = PENDING
    assert stage.conditions.of(ROUTE_OBJECT) is None
    assert stage.outcome(APPLIED) == [SERVICE, ROUTE_OBJECT]
    assert stage.conditions.of(ROUTE_OBJECT) == synced(1)
    assert stage.outcome(APPLIED) == [SERVICE]
