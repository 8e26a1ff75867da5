"""Observers: whose status is looked at after a record's state, and how long a change took."""

from dataclasses import dataclass, field

from apisix_ingress.gateway.sync.observer import APPLIED, PENDING, RecordState
from apisix_ingress.model.condition import synced
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.observability.metrics import Metrics
from apisix_ingress.state.world import Report, World
from apisix_ingress.wiring.observers import SyncLag, SyncMetrics
from providers.core.conditions import Conditions
from tests.factories import make_claim, make_claimant, make_key, make_record
from tests.fakes.clock import FakeClock
from tests.fakes.cluster import FakeCluster
from tests.samples import sample

ROUTE_OBJECT = make_key()
SERVICE = make_key("web", kind="Service")
UPSTREAM = make_record("default_web_80", kind="upstreams")
ROUTE = make_record("one", body={"upstream_id": UPSTREAM.key.id})


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
        metrics = Metrics(pod="p", namespace="n")
        self.metrics = SyncMetrics(metrics, self.conditions, self.wake, SyncLag(metrics, FakeClock()))

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


def test_the_object_that_may_say_where_a_cluster_is_hears_of_its_health() -> None:
    stage = Stage()
    stage.metrics.compared("default", ok=False)
    stage.metrics.breaker("default", is_open=True)
    assert stage.woken == [ObjectKey("ApisixClusterConfig", "", "default")] * 2


class Lags:
    """A queue of a provider, and the lag of two records in one cluster."""

    def __init__(self) -> None:
        self.metrics = Metrics(pod="p", namespace="n")
        self.clock = FakeClock()
        self.lag = SyncLag(self.metrics, self.clock)
        self.queue = self.lag.queue("ApisixRoute")

    def hand_out(self, *keys: RecordKey, waited: float) -> None:
        """Let a key be translated that was seen so many seconds ago, and records follow from it."""
        self.queue.started(waited)
        self.lag.marked("default", keys)

    def seen(self) -> tuple[float | None, float | None]:
        """Return how many lags were observed, and their sum."""
        labels = {"cluster": "default"}
        return tuple(sample(self.metrics, f"sync_lag_seconds_{part}", labels) for part in ("count", "sum"))  # type: ignore[return-value]


def test_lag_is_from_the_sight_of_a_change_to_the_confirmation_of_its_record() -> None:
    lags = Lags()
    lags.hand_out(ROUTE.key, UPSTREAM.key, waited=2)
    lags.clock.shift(1)
    assert lags.lag.oldest("default") == 3
    lags.lag.told("default", UPSTREAM.key, APPLIED)
    lags.clock.shift(4)
    lags.lag.told("default", ROUTE.key, PENDING)
    lags.lag.told("default", ROUTE.key, APPLIED)
    assert (lags.seen(), lags.lag.oldest("default")) == ((2, 10), 0)
    lags.lag.told("default", ROUTE.key, APPLIED)
    lags.lag.told("other", ROUTE.key, APPLIED)
    assert lags.seen() == (2, 10)


def test_lag_of_a_record_that_changes_again_counts_from_the_first_change() -> None:
    lags = Lags()
    lags.hand_out(ROUTE.key, waited=0)
    lags.clock.shift(5)
    lags.hand_out(ROUTE.key, waited=1)
    lags.lag.told("default", ROUTE.key, APPLIED)
    assert lags.seen() == (1, 5)


def test_lag_of_a_rejected_record_begins_anew_with_its_next_change() -> None:
    lags = Lags()
    lags.hand_out(ROUTE.key, waited=0)
    lags.lag.told("default", ROUTE.key, RecordState("rejected", "no"))
    lags.clock.shift(1000)
    lags.hand_out(ROUTE.key, waited=0)
    lags.clock.shift(1)
    lags.lag.told("default", ROUTE.key, APPLIED)
    assert lags.seen() == (1, 1)


def test_lag_of_an_ended_term_is_forgotten() -> None:
    lags = Lags()
    lags.hand_out(ROUTE.key, waited=0)
    lags.lag.forget()
    lags.lag.told("default", ROUTE.key, APPLIED)
    assert (lags.seen(), lags.lag.oldest("default")) == ((None, None), 0)
