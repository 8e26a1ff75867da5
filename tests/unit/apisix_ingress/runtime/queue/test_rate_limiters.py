"""Delays per key and over all keys."""

import random

import pytest

from apisix_ingress.runtime.queue.rate_limiters import Bucket, ExponentialBackoff, FastSlow, MaxOf
from tests.fakes.clock import FakeClock


def test_exponential_backoff_doubles_per_key_up_to_the_cap() -> None:
    limiter = ExponentialBackoff[str](1, 60)
    assert [limiter.when("a") for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert limiter.when("b") == 1
    assert (limiter.failures("a"), limiter.failures("b"), limiter.failures("c")) == (8, 1, 0)


def test_exponential_backoff_starts_afresh_once_forgotten() -> None:
    limiter = ExponentialBackoff[str](1, 60)
    limiter.when("a")
    limiter.when("a")
    limiter.forget("a")
    limiter.forget("never seen")
    assert limiter.failures("a") == 0
    assert limiter.when("a") == 1


def test_exponential_backoff_does_not_overflow_after_thousands_of_failures() -> None:
    limiter = ExponentialBackoff[str](0.005, 1000)
    assert [limiter.when("a") for _ in range(3000)][-1] == 1000


def test_jitter_draws_within_its_share_and_below_the_cap() -> None:
    limiter = ExponentialBackoff[int](8, 8, 0.25, rng=random.Random(1))
    got = [limiter.when(key) for key in range(1000)]
    assert all(6 <= delay <= 8 for delay in got)
    assert len(set(got)) > 900


def test_same_seed_gives_the_same_delays() -> None:
    def delays() -> list[float]:
        limiter = ExponentialBackoff[str](1, 60, 0.5, rng=random.Random(7))
        return [limiter.when("a") for _ in range(6)]

    assert delays() == delays()


@pytest.mark.parametrize(("base", "cap", "jitter"), [(0, 1, 0), (2, 1, 0), (1, 2, -0.1), (1, 2, 1.1)])
def test_exponential_backoff_refuses_senseless_figures(base: float, cap: float, jitter: float) -> None:
    with pytest.raises(ValueError, match=r"base must|jitter must"):
        ExponentialBackoff[str](base, cap, jitter)


def test_fast_slow_is_quick_for_some_tries_then_slow() -> None:
    limiter = FastSlow[str](0.1, 30, fast_tries=3)
    assert [limiter.when("a") for _ in range(5)] == [0.1, 0.1, 0.1, 30, 30]
    assert limiter.when("b") == 0.1
    limiter.forget("a")
    assert limiter.when("a") == 0.1


def test_bucket_lets_a_burst_through_then_keeps_the_rate_over_all_keys() -> None:
    limiter = Bucket[int](qps=2, burst=3, clock=FakeClock())
    assert [limiter.when(key) for key in range(6)] == [0, 0, 0, 0.5, 1, 1.5]


def test_bucket_refills_with_time_but_never_above_the_burst() -> None:
    clock = FakeClock()
    limiter = Bucket[str](qps=2, burst=2, clock=clock)
    assert [limiter.when("a") for _ in range(3)] == [0, 0, 0.5]
    clock.shift(1)
    assert limiter.when("a") == 0
    clock.shift(3600)
    assert [limiter.when("a") for _ in range(3)] == [0, 0, 0.5]


def test_bucket_counts_no_failures_and_gives_no_token_back() -> None:
    limiter = Bucket[str](qps=1, burst=1, clock=FakeClock())
    limiter.when("a")
    limiter.forget("a")
    assert limiter.failures("a") == 0
    assert limiter.when("a") == 1


@pytest.mark.parametrize(("qps", "burst"), [(0, 1), (1, 0)])
def test_bucket_refuses_senseless_figures(qps: float, burst: int) -> None:
    with pytest.raises(ValueError, match="qps must"):
        Bucket[str](qps, burst, clock=FakeClock())


def test_max_of_uses_the_longest_delay_and_counts_in_every_limiter() -> None:
    slow = FastSlow[str](1, 5, fast_tries=1)
    fast = ExponentialBackoff[str](2, 100)
    limiter = MaxOf[str](slow, fast)
    assert [limiter.when("a") for _ in range(4)] == [2, 5, 8, 16]
    assert (slow.failures("a"), fast.failures("a"), limiter.failures("a")) == (4, 4, 4)
    limiter.forget("a")
    assert (slow.failures("a"), fast.failures("a"), limiter.failures("a")) == (0, 0, 0)


def test_the_maximum_of_no_limiters_is_rejected() -> None:
    with pytest.raises(ValueError, match="at least one"):
        MaxOf[str]()
