"""When conditions are written: few at once, many one after the other, and slowly in groups beside news."""

from itertools import pairwise

import pytest

from apisix_ingress.kube.pace import CREDIT_SECONDS, GROUP, RATE, RATE_BESIDE_NEWS, Pace
from tests.fakes.clock import FakeClock


def clock_without_credit() -> FakeClock:
    """Return a clock that has just begun: nothing was left unwritten before."""
    return FakeClock(start=0.0)


def spend(pace: Pace, *, news: bool) -> set[float]:
    """Write as much as the credit of a rest pays for."""
    rate = RATE_BESIDE_NEWS if news else RATE
    return {pace.until_next(news=news) for _ in range(int(CREDIT_SECONDS * rate))}


@pytest.mark.parametrize("news", [False, True])
def test_many_writes_leave_room_for_others_until_there_was_a_rest(news: bool) -> None:
    clock = FakeClock()
    pace = Pace(clock=clock)
    few = spend(pace, news=news)
    many = [pace.until_next(news=news) for _ in range(3)]
    clock.shift(CREDIT_SECONDS + 1.0)
    assert (few, spend(pace, news=news)) == ({0.0}, {0.0})
    assert min(many) > 0


def test_in_quiet_times_writes_follow_each_other_evenly() -> None:
    pace = Pace(clock=FakeClock())
    spend(pace, news=False)
    waits = [pace.until_next(news=False) for _ in range(5)]
    got = [round((later - sooner) * RATE, 6) for sooner, later in pairwise(waits)]
    assert got == [1.0] * 4


def test_beside_news_groups_of_writes_follow_each_other_at_the_slow_rate() -> None:
    clock = FakeClock()
    pace = Pace(clock=clock)
    while not pace.until_next(news=True):
        pass
    turns: list[float] = []
    for _ in range(4):
        waits = [pace.until_next(news=True) for _ in range(GROUP)]
        turns.append(round(clock.monotonic() + waits[-1], 6))
        clock.shift(waits[-1])
    got = [round((later - sooner) * RATE_BESIDE_NEWS, 6) for sooner, later in pairwise(turns)]
    assert got == [GROUP] * 3


def test_who_writes_beside_news_waits_for_the_same_moment_as_the_others_of_its_group() -> None:
    pace = Pace(clock=clock_without_credit())
    waits = [pace.until_next(news=True) for _ in range(3 * GROUP)]
    got = [round(wait * RATE_BESIDE_NEWS / GROUP, 6) for wait in waits]
    assert got == [1.0] * GROUP + [2.0] * GROUP + [3.0] * GROUP


def test_writes_become_fast_once_there_are_no_news() -> None:
    pace = Pace(clock=FakeClock())
    for _ in range(20):
        pace.until_next(news=True)
    first = pace.until_next(news=False)
    assert round(pace.until_next(news=False) - first, 6) == round(1 / RATE, 6)
