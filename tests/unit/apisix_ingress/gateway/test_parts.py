"""The small parts of the engine: agenda, pace, quarantine."""

import random

from apisix_ingress.gateway.agenda import Agenda
from apisix_ingress.gateway.pace import BURST, INTERVAL, Pace
from apisix_ingress.gateway.quarantine import FIRST_TRY, LONGEST, Quarantine
from apisix_ingress.model.keys import RecordKey
from tests.fakes.clock import FakeClock
from tests.fakes.gateway import make_record

KEY = RecordKey("routes", "r1")
OLD = RecordKey("routes", "old")
UPSTREAM = RecordKey("upstreams", "u1")


def make_agenda(*writes: RecordKey) -> Agenda:
    agenda = Agenda()
    agenda.turn()
    for key in writes:
        agenda.mark_write(key, flying=False)
    return agenda


def test_delete_waits_for_writes_of_its_turn_but_not_for_later_ones() -> None:
    agenda = make_agenda(KEY)
    agenda.mark_delete(OLD, flying=False)
    agenda.turn()
    agenda.mark_write(UPSTREAM, flying=False)
    assert not agenda.may_delete(OLD)
    assert not agenda.may_delete(OLD)
    assert agenda.due() == []
    agenda.settle(KEY)
    assert agenda.due() == [OLD]
    assert agenda.may_delete(OLD)
    assert agenda.is_clear


def test_delete_waits_for_the_version_that_was_marked_in_flight() -> None:
    agenda = make_agenda(KEY)
    agenda.turn()
    agenda.mark_write(KEY, flying=True)
    agenda.mark_delete(OLD, flying=False)
    agenda.settle(KEY)
    assert not agenda.may_delete(OLD)
    agenda.begin(KEY)
    agenda.settle(KEY)
    assert agenda.due() == [OLD]


def test_write_that_turned_into_a_delete_blocks_no_delete() -> None:
    agenda = make_agenda(KEY)
    agenda.mark_delete(KEY, flying=True)
    assert agenda.may_delete(KEY)


def test_woken_write_has_its_old_place() -> None:
    agenda = make_agenda(KEY)
    agenda.park(KEY, UPSTREAM, delete=False)
    agenda.turn()
    agenda.mark_delete(OLD, flying=False)
    agenda.turn()
    assert agenda.woken(UPSTREAM) == [KEY]
    assert agenda.woken(UPSTREAM) == []
    assert not agenda.may_delete(OLD)


def test_marking_a_parked_write_keeps_its_place_and_ends_the_wait() -> None:
    agenda = make_agenda(KEY)
    agenda.mark_delete(OLD, flying=False)
    agenda.park(KEY, UPSTREAM, delete=False)
    agenda.turn()
    agenda.mark_write(KEY, flying=False)
    assert agenda.parked(KEY) is None
    assert agenda.woken(UPSTREAM) == []
    assert not agenda.may_delete(OLD)


def test_parking_twice_keeps_the_place_and_waits_for_the_last() -> None:
    agenda = make_agenda(KEY)
    agenda.mark_delete(OLD, flying=False)
    agenda.park(KEY, UPSTREAM, delete=False)
    agenda.turn()
    agenda.park(KEY, OLD, delete=False)
    assert agenda.woken(UPSTREAM) == []
    assert agenda.woken(OLD) == [KEY]
    assert not agenda.may_delete(OLD)


def test_failing_write_is_no_longer_waited_for_once_given_up() -> None:
    agenda = make_agenda(KEY)
    agenda.mark_delete(OLD, flying=False)
    assert not agenda.may_delete(OLD)
    agenda.give_up(KEY)
    assert agenda.due() == [OLD]


def test_parked_records_are_outstanding_writes_unless_they_are_deletes() -> None:
    agenda = make_agenda(KEY)
    agenda.park(KEY, UPSTREAM, delete=False)
    agenda.park(OLD, UPSTREAM, delete=True)
    assert agenda.outstanding() == [KEY]


def test_turns_of_settled_writes_take_no_memory() -> None:
    agenda = Agenda()
    for _ in range(1000):
        agenda.turn()
        agenda.mark_write(KEY, flying=False)
        agenda.settle(KEY)
    assert len(agenda._heap) < 100


def test_pace_lets_a_burst_through_and_then_two_a_second() -> None:
    pace, now = Pace(), 100.0
    times: list[float] = []
    while len(times) < BURST + 4:
        delay = pace.delay(KEY, now)
        if not delay:
            times.append(now)
        now += delay
    assert times == [100.0] * BURST + [100 + INTERVAL * n for n in range(1, 5)]
    assert pace.delay(UPSTREAM, now) == 0


def test_pace_lets_a_whole_burst_through_again_once_a_record_is_forgotten() -> None:
    pace = Pace()
    used_up = [pace.delay(KEY, 100.0) for _ in range(BURST + 1)]
    pace.forget(KEY)
    pace.forget(UPSTREAM)
    assert (used_up[-1], [pace.delay(KEY, 100.0) for _ in range(BURST)]) == (INTERVAL, [0.0] * BURST)


def test_pace_forgets_records_at_rest() -> None:
    pace = Pace()
    pace.delay(KEY, 100.0)
    pace.prune(100.0 + INTERVAL)
    assert pace._full_at == {}


def test_quarantine_blocks_the_same_body_until_it_is_offered_again() -> None:
    clock = FakeClock()
    quarantine = Quarantine(clock=clock, rng=random.Random(1))
    record, same, other = make_record(KEY), make_record(KEY), make_record(KEY, uri="/b")
    quarantine.add(KEY, record, "bad")
    assert (quarantine.words(KEY, same), quarantine.words(KEY, other), quarantine.words(KEY, None)) == (
        "bad",
        None,
        None,
    )
    assert quarantine.blocks(KEY, same)
    assert quarantine.due() == []
    clock.shift(FIRST_TRY)
    assert quarantine.due() == [KEY]
    assert quarantine.due() == []
    assert not quarantine.blocks(KEY, same)
    assert quarantine.words(KEY, same) == "bad"


def test_quarantine_ends_with_another_body() -> None:
    quarantine = Quarantine(clock=FakeClock(), rng=random.Random(1))
    quarantine.add(KEY, make_record(KEY), "bad")
    assert not quarantine.blocks(KEY, make_record(KEY, uri="/b"))
    assert len(quarantine) == 0


def test_new_tries_of_a_rejected_record_become_rare() -> None:
    clock = FakeClock()
    quarantine = Quarantine(clock=clock, rng=random.Random(1))
    for _ in range(8):
        quarantine.add(KEY, None, "bad")
    clock.shift(LONGEST * 0.7)
    assert quarantine.due() == []
    clock.shift(LONGEST * 0.3)
    assert quarantine.due() == [KEY]
