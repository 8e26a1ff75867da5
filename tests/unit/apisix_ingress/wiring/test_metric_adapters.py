"""Metric adapters: how long a change takes until a cluster has confirmed its records."""

from apisix_ingress.gateway.sync.observer import APPLIED, PENDING, RecordState
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.observability.metrics import Metrics
from apisix_ingress.wiring.metric_adapters import SyncLag
from tests.factories import make_record
from tests.fakes.clock import FakeClock
from tests.samples import sample

UPSTREAM = make_record("default_web_80", kind="upstreams")
ROUTE = make_record("one", body={"upstream_id": UPSTREAM.key.id})


class Lags:
    """The lag of two records in one cluster."""

    def __init__(self) -> None:
        self.metrics = Metrics(pod="p", namespace="n")
        self.clock = FakeClock()
        self.lag = SyncLag(self.metrics, self.clock)

    def hand_out(self, *keys: RecordKey, waited: float) -> None:
        """Let records result from a change that was seen this many seconds ago."""
        self.lag.marked("default", keys, self.clock.monotonic() - waited)

    def seen(self) -> tuple[float | None, float | None]:
        """Return how many lags were observed, and their sum."""
        labels = {"cluster": "default"}
        return tuple(sample(self.metrics, f"sync_lag_seconds_{part}", labels) for part in ("count", "sum"))  # type: ignore[return-value]


def test_lag_is_from_the_sight_of_a_change_to_the_confirmation_of_its_record() -> None:
    lags = Lags()
    lags.hand_out(ROUTE.key, UPSTREAM.key, waited=2)
    lags.clock.shift(1)
    assert lags.lag.oldest("default") == 3
    lags.lag.outcome("default", UPSTREAM.key, APPLIED)
    lags.clock.shift(4)
    lags.lag.outcome("default", ROUTE.key, PENDING)
    lags.lag.outcome("default", ROUTE.key, APPLIED)
    assert (lags.seen(), lags.lag.oldest("default")) == ((2, 10), 0)
    lags.lag.outcome("default", ROUTE.key, APPLIED)
    lags.lag.outcome("other", ROUTE.key, APPLIED)
    assert lags.seen() == (2, 10)


def test_the_lag_of_a_record_is_measured_from_the_first_change() -> None:
    lags = Lags()
    lags.hand_out(ROUTE.key, waited=0)
    lags.clock.shift(5)
    lags.hand_out(ROUTE.key, waited=1)
    lags.lag.outcome("default", ROUTE.key, APPLIED)
    assert lags.seen() == (1, 5)


def test_lag_of_a_rejected_record_restarts_with_its_next_change() -> None:
    lags = Lags()
    lags.hand_out(ROUTE.key, waited=0)
    lags.lag.outcome("default", ROUTE.key, RecordState("rejected", "no"))
    lags.clock.shift(1000)
    lags.hand_out(ROUTE.key, waited=0)
    lags.clock.shift(1)
    lags.lag.outcome("default", ROUTE.key, APPLIED)
    assert lags.seen() == (1, 1)


def test_lag_of_an_ended_term_is_forgotten() -> None:
    lags = Lags()
    lags.hand_out(ROUTE.key, waited=0)
    lags.lag.forget()
    lags.lag.outcome("default", ROUTE.key, APPLIED)
    assert (lags.seen(), lags.lag.oldest("default")) == ((None, None), 0)
