"""A term lasts until its deadline by the monotonic clock, and no write starts that could outlive it."""

import pytest

from apisix_ingress.errors import LeadershipLost
from apisix_ingress.runtime.term import Term
from tests.fakes.clock import FakeClock


def test_write_starts_only_while_its_bound_fits_into_the_term() -> None:
    clock = FakeClock(start=100)
    term = Term(clock, holder="pod-a", deadline=115)
    term.check(14.9)
    clock.shift(10)
    assert term.remaining() == 5
    term.check()
    with pytest.raises(LeadershipLost, match="pod-a"):
        term.check(5)


def test_jump_of_the_wall_clock_does_not_lengthen_a_term() -> None:
    clock = FakeClock(start=100)
    term = Term(clock, holder="pod-a", deadline=115)
    clock.jump_wall(-3600)
    clock.shift(15)
    with pytest.raises(LeadershipLost):
        term.check()


def test_ended_term_permits_nothing() -> None:
    term = Term(FakeClock(), holder="pod-a")
    term.check(1e9)
    term.end()
    with pytest.raises(LeadershipLost):
        term.check()


def test_the_last_unacknowledged_write_determines_how_long_a_lease_is_kept() -> None:
    clock = FakeClock(start=100)
    term = Term(clock, holder="pod-a", deadline=115)
    assert term.unacked_seconds() == 0
    term.note_unacked(108)
    term.note_unacked(103)
    assert term.unacked_seconds() == 8
    clock.shift(2)
    assert term.unacked_seconds() == 6
    term.end()
    assert term.unacked_seconds() == 6
    clock.shift(10)
    assert term.unacked_seconds() == 0


def test_no_term_is_in_doubt_once_its_lease_has_run_out() -> None:
    clock = FakeClock(start=100)
    term = Term(clock, holder="pod-a", deadline=115)
    term.note_unacked(200)
    assert term.unacked_seconds() == 15
    term.end()
    term.end()
    assert term.unacked_seconds() == 15
    clock.shift(16)
    assert term.unacked_seconds() == 0
