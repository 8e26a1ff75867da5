"""Two writers of one status: each wait is longer than the last, and it is logged once."""

import random

import pytest
from structlog.testing import capture_logs

from apisix_ingress.kube.status.conflicts import StatusConflicts
from apisix_ingress.kube.status.schedule import CONFLICT_SECONDS
from apisix_ingress.model.keys import ObjectKey
from tests.fakes.clock import FakeClock

WEB = ObjectKey("ApisixRoute", "default", "web")
FIRST_SECONDS, LONGEST_SECONDS = CONFLICT_SECONDS


def make_contests(clock: FakeClock) -> StatusConflicts:
    contests = StatusConflicts(clock=clock, rng=random.Random(1))
    contests.written(WEB, "ours")
    return contests


def test_an_unchanged_status_or_one_of_others_is_not_a_conflict() -> None:
    contests = make_contests(FakeClock())
    assert contests.overwritten(WEB, "ours") is None
    assert contests.overwritten(WEB._replace(name="shop"), "theirs") is None
    contests.forget(WEB)
    assert contests.overwritten(WEB, "theirs") is None


def test_a_conflict_slows_down_and_is_reported_once() -> None:
    clock = FakeClock()
    contests = make_contests(clock)
    with capture_logs() as logs:
        delays = []
        for _ in range(12):
            delays.append(contests.overwritten(WEB, "theirs") or 0.0)
            clock.shift(delays[-1])
    assert FIRST_SECONDS * 0.8 <= delays[0] <= FIRST_SECONDS
    assert delays[:6] == sorted(delays[:6])
    assert LONGEST_SECONDS * 0.8 <= delays[-1] <= LONGEST_SECONDS
    assert [(line["event"], line["object"]) for line in logs] == [("status.contested", str(WEB))]


def test_after_a_while_of_peace_the_first_wait_is_short_again() -> None:
    clock = FakeClock()
    contests = make_contests(clock)
    for _ in range(5):
        contests.overwritten(WEB, "theirs")
    clock.shift(4 * LONGEST_SECONDS)
    assert (contests.overwritten(WEB, "theirs") or 99) <= FIRST_SECONDS


def test_a_status_of_an_earlier_term_is_not_restored() -> None:
    contests = make_contests(FakeClock())
    contests.clear()
    assert contests.overwritten(WEB, "theirs") is None


def test_our_own_writes_are_not_conflicts_before_their_response_or_after_the_next_write() -> None:
    contests = make_contests(FakeClock())
    contests.sending(WEB, "first")
    got = [contests.overwritten(WEB, "first")]
    contests.written(WEB, "first")
    contests.sending(WEB, "second")
    contests.written(WEB, "second")
    contests.sending(WEB, "third")
    contests.written(WEB, "third")
    got += [contests.overwritten(WEB, part) for part in ("second", "third")]
    assert got == [None, None, None]


def test_a_client_that_restores_our_previous_status_overwrites_us() -> None:
    contests = make_contests(FakeClock())
    for part in ("first", "second"):
        contests.sending(WEB, part)
        contests.written(WEB, part)
    assert contests.overwritten(WEB, "second") is None
    assert contests.overwritten(WEB, "first") is not None


@pytest.mark.parametrize("ends", ["the object", "the term"])
def test_what_was_on_its_way_is_forgotten_with_its_object_and_its_term(ends: str) -> None:
    contests = make_contests(FakeClock())
    contests.sending(WEB, "ours once")
    if ends == "the object":
        contests.forget(WEB)
    else:
        contests.clear()
    contests.written(WEB, "ours")
    assert contests.overwritten(WEB, "ours once") is not None
