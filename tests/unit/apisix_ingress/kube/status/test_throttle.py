"""When conditions are written: few at once, many one after the other, and slowly beside news."""

import pytest

from apisix_ingress.kube.status.throttle import CREDIT_SECONDS, RATE, RATE_BESIDE_NEWS, StatusThrottle
from tests.fakes.clock import FakeClock


@pytest.mark.parametrize(("news", "rate"), [(False, RATE), (True, RATE_BESIDE_NEWS)])
def test_many_writes_leave_room_for_others_until_there_was_a_rest(news: bool, rate: float) -> None:
    clock = FakeClock()
    pace = StatusThrottle(clock=clock)
    few = {pace.until_next(news=news) for _ in range(int(CREDIT_SECONDS * rate))}
    many = [round(pace.until_next(news=news) * rate, 3) for _ in range(3)]
    clock.shift(CREDIT_SECONDS + 1.0)
    after = {pace.until_next(news=news) for _ in range(int(CREDIT_SECONDS * rate))}
    assert (few, after) == ({0.0}, {0.0})
    # The credit is not always a whole number of writes.
    assert [many[1] - many[0], many[2] - many[1]] == [1.0, 1.0]


def test_writes_become_fast_once_there_are_no_news() -> None:
    pace = StatusThrottle(clock=FakeClock())
    before = [pace.until_next(news=True) for _ in range(20)][-1]
    assert round(pace.until_next(news=False) - before, 6) == round(1 / RATE, 6)
