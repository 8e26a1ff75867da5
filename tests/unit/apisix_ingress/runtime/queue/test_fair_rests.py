"""Groups rest as long as they worked."""

from apisix_ingress.runtime.queue.fair_rests import LONG_SECONDS, FairRests
from tests.fakes.clock import FakeClock


def test_group_rests_as_long_as_it_worked_and_others_do_not() -> None:
    clock = FakeClock()
    rests = FairRests(clock=clock)
    assert rests.worked("a", 2.0)
    assert (rests.left("a"), rests.left("b")) == (2.0, 0.0)
    clock.shift(1.5)
    assert rests.left("a") == 0.5
    clock.shift(0.5)
    assert rests.left("a") == 0.0
    assert rests._until == {}


def test_short_work_needs_no_rest() -> None:
    rests = FairRests(clock=FakeClock())
    assert not rests.worked("a", LONG_SECONDS / 2)
    assert rests.left("a") == 0.0
