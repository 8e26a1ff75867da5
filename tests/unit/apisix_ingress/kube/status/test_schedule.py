"""When statuses are written: at most 3 s late, many at a limited rate, and flapping ones rarely."""

import random

import pytest

from apisix_ingress.kube.status.interface import Load
from apisix_ingress.kube.status.schedule import (
    CREDIT_SECONDS,
    FULL_RATE,
    HIGH_RATE,
    LATE_RATE,
    LOW_RATE,
    MAX_DELAY_SECONDS,
    PACE_SECONDS,
    REWRITE_BURST,
    REWRITE_SECONDS,
    SETTLE_SECONDS,
    StatusSchedule,
)
from apisix_ingress.model.condition import aborted, synced
from tests.fakes.clock import FakeClock
from tests.fakes.kube.status import Wanted
from tests.unit.apisix_ingress.kube.status.writing import AcceptingApi, key_of, writing

WEB = key_of("web")
FLIP = frozenset({"status", "reason", "message"})
FITTING = int(HIGH_RATE * PACE_SECONDS)
"""Number of conditions that keep the bound during changes, as in the module docstring."""


# One object.


def test_condition_has_to_be_false_for_a_while_and_a_pending_one_does_not_start_that_again() -> None:
    clock = FakeClock()
    schedule = StatusSchedule(clock=clock)
    got = [schedule.until_settled(WEB, aborted(1, "no Service"))]
    for condition in (None, aborted(1, "no Service"), synced(1), aborted(1, "no Service")):
        clock.shift(0.2)
        got.append(round(schedule.until_settled(WEB, condition), 3))
    assert got == [SETTLE_SECONDS, 0.0, round(SETTLE_SECONDS - 0.4, 3), 0.0, SETTLE_SECONDS]


def test_flapping_status_is_written_a_few_times_at_once_and_then_rarely() -> None:
    clock = FakeClock()
    schedule = StatusSchedule(clock=clock)
    writes = 0
    for _ in range(600):
        if not schedule.until_rewrite(WEB, FLIP):
            schedule.wrote(WEB)
            writes += 1
        clock.shift(0.1)
    assert writes == REWRITE_BURST + int(60 / REWRITE_SECONDS) - 1


def test_new_message_alone_waits_for_the_full_time_since_the_last_write() -> None:
    clock = FakeClock()
    schedule = StatusSchedule(clock=clock)
    schedule.wrote(WEB)
    clock.shift(0.5)
    assert schedule.until_rewrite(WEB, frozenset({"message"})) == REWRITE_SECONDS - 0.5
    assert schedule.until_rewrite(WEB, FLIP) == 0.0


def test_a_new_generation_is_written_immediately_and_delays_rewrites_at_most_once() -> None:
    schedule = StatusSchedule(clock=FakeClock())
    for _ in range(20):
        assert schedule.until_rewrite(WEB, FLIP | {"observedGeneration"}) == 0.0
        schedule.wrote(WEB)
    assert schedule.until_rewrite(WEB, FLIP) == REWRITE_SECONDS


# Many objects.


@pytest.mark.parametrize(
    ("load", "queued", "is_failure", "rate"),
    [
        ("idle", 5000, False, FULL_RATE),
        ("changes", 0, False, LOW_RATE),
        ("changes", 50, False, 50 / PACE_SECONDS),
        ("changes", FITTING, False, FITTING / PACE_SECONDS),
        ("changes", FITTING + 1, False, LATE_RATE),
        ("changes", 5000, True, HIGH_RATE),
        ("bulk", 50, False, LOW_RATE),
        ("bulk", 5000, False, LATE_RATE),
        ("bulk", 5000, True, HIGH_RATE),
    ],
)
def test_many_writes_are_spread_at_the_rate_of_the_load(load: Load, queued: int, is_failure: bool, rate: float) -> None:
    schedule = StatusSchedule(clock=FakeClock())
    pauses = [schedule.until_next(load, queued=queued, is_failure=is_failure) for _ in range(int(rate) + 2)]
    credit = int(CREDIT_SECONDS * rate)
    assert pauses[:credit] == pytest.approx([0.0] * credit)
    # The credit is not always a whole number of writes.
    assert round(pauses[-1] - pauses[-2], 6) == round(1 / rate, 6)


def test_five_thousand_statuses_take_less_than_ten_seconds() -> None:
    assert 5000 / FULL_RATE < 10


# The bound, through the whole writer.


async def staleness(load: Load, seed: int) -> float:
    """Change conditions at random for half a minute; return the maximum time for which a status was outdated."""
    rng, clock, api, wanted = random.Random(seed), FakeClock(), AcceptingApi(), Wanted(load=load)
    keys = [key_of(f"r{number}", f"n{number % 3}") for number in range(FITTING // 2)]
    right_at, worst, end = {}, 0.0, clock.monotonic() + 30
    choices = [synced(1), aborted(1, "one"), aborted(1, "two"), aborted(1, "three"), None]
    async with writing(api, clock, keys, wanted) as writer:
        while clock.monotonic() < end:
            for key in rng.sample(keys, rng.choice([1, 1, 2, len(keys)])):
                condition = rng.choice(choices)
                if condition is None:
                    wanted.conditions.pop(key, None)
                else:
                    wanted.conditions[key] = condition
                writer.wake(key, urgent=condition is not None and condition.status == "False")
            for _ in range(rng.choice([1, 1, 5, 40])):
                await clock.advance(0.1)
                for key in keys:
                    if wanted.condition(key) in (None, api.said.get(key)):
                        right_at[key] = clock.monotonic()
                    worst = max(worst, clock.monotonic() - right_at.get(key, end - 30))
    return worst


@pytest.mark.parametrize("load", ["idle", "changes"])
@pytest.mark.parametrize("seed", range(2))
async def test_no_condition_is_ever_later_than_the_bound(load: Load, seed: int) -> None:
    assert 0.0 < await staleness(load, seed) <= MAX_DELAY_SECONDS


async def test_failures_keep_the_bound_in_a_bulk_of_successes_of_their_own_namespace() -> None:
    clock, api, wanted = FakeClock(), AcceptingApi(), Wanted(load="bulk")
    successes = [key_of(f"r{number}") for number in range(1000)]
    failures = [key_of(f"broken{number}") for number in range(FITTING)]
    wanted.conditions = dict.fromkeys(successes, synced(1)) | dict.fromkeys(failures, aborted(1, "no Service"))
    async with writing(api, clock, wanted.conditions, wanted) as writer:
        for key in successes:
            writer.wake(key)
        for key in failures:
            writer.wake(key, urgent=True)
        await clock.advance(MAX_DELAY_SECONDS)
    assert set(failures) <= api.said.keys()
    assert api.writes < FITTING + MAX_DELAY_SECONDS * LOW_RATE + CREDIT_SECONDS * HIGH_RATE
