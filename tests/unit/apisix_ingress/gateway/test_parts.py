"""The small parts of the engine: agenda, pace, quarantine."""

import random

from apisix_ingress.gateway.sync.ordering.write_order import WriteOrder
from apisix_ingress.gateway.sync.records.quarantine import FIRST_TRY, LONGEST, Quarantine
from apisix_ingress.gateway.sync.records.rate_limit import BURST, INTERVAL, RecordRateLimit
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Former, Record
from tests.fakes.clock import FakeClock
from tests.fakes.gateway import make_record

KEY = RecordKey("routes", "r1")
OLD = RecordKey("routes", "old")
OTHER = RecordKey("routes", "other")
THIRD = RecordKey("routes", "third")
UPSTREAM = RecordKey("upstreams", "u1")


def mark_write(agenda: WriteOrder, key: RecordKey, *, flying: bool = False) -> None:
    agenda.mark_write(key, make_record(key), "", flying=flying)


def make_agenda(*writes: RecordKey) -> WriteOrder:
    agenda = WriteOrder()
    agenda.turn()
    for key in writes:
        mark_write(agenda, key)
    return agenda


def test_delete_waits_for_writes_of_its_turn_but_not_for_later_ones() -> None:
    agenda = make_agenda(KEY)
    agenda.mark_delete(OLD, flying=False)
    agenda.turn()
    mark_write(agenda, UPSTREAM)
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
    mark_write(agenda, KEY, flying=True)
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
    mark_write(agenda, KEY)
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
    agenda = make_agenda(UPSTREAM)
    agenda.mark_delete(OLD, flying=False)
    assert not agenda.may_delete(OLD)
    for _ in range(1000):
        agenda.turn()
        mark_write(agenda, KEY)
        agenda.settle(KEY)
        assert agenda.due() == []
    assert agenda._blockers is not None
    assert max(len(members.heap) for members in agenda._blockers._scopes.values()) < 100
    agenda.settle(UPSTREAM)
    assert agenda.due() == [OLD]
    assert agenda._blockers is None


def route(*hosts: str) -> Record:
    return make_record(KEY, hosts=list(hosts))


def former(*hosts: str, namespace: str = "") -> Former:
    return Former(namespace, {key: make_record(key, hosts=list(hosts)) for key in (OLD, OTHER, KEY)})


def test_delete_waits_for_writes_that_could_take_over_and_for_no_others() -> None:
    agenda = WriteOrder()
    agenda.turn()
    agenda.mark_write(KEY, route("a", "b"), "one", flying=False)
    agenda.mark_write(UPSTREAM, make_record(UPSTREAM), "", flying=False)
    agenda.mark_delete(OLD, former("b"), flying=False)
    agenda.mark_delete(OTHER, former("b", namespace="two"), flying=False)
    agenda.mark_delete(THIRD, Former("two", {THIRD: route("c")}), flying=False)
    assert [agenda.may_delete(key) for key in (OLD, OTHER, THIRD)] == [False, False, True]
    agenda.settle(KEY)
    assert agenda.due() == [OTHER]
    assert agenda.may_delete(OTHER)
    agenda.settle(UPSTREAM)
    assert agenda.due() == [OLD]
    assert agenda.may_delete(OLD)


def test_write_that_changes_its_hosts_keeps_its_turn_and_frees_who_waited_for_the_old_ones() -> None:
    agenda = WriteOrder()
    agenda.turn()
    agenda.mark_write(KEY, route("a"), "one", flying=False)
    agenda.mark_delete(OLD, former("a"), flying=False)
    agenda.mark_delete(OTHER, former("b"), flying=False)
    assert not agenda.may_delete(OLD)
    agenda.turn()
    agenda.mark_write(KEY, route("b"), "one", flying=False)
    assert agenda.due() == [OLD]
    assert (agenda.may_delete(OLD), agenda.may_delete(OTHER)) == (True, False)


def test_write_that_was_marked_in_flight_and_failed_counts_for_its_new_hosts() -> None:
    agenda = WriteOrder()
    agenda.turn()
    agenda.mark_write(KEY, route("a"), "one", flying=False)
    agenda.mark_delete(OLD, former("b"), flying=False)
    agenda.turn()
    agenda.mark_write(KEY, route("b"), "one", flying=True)
    agenda.begin(KEY)  # it is tried again
    assert not agenda.may_delete(OLD)


def test_delete_that_was_marked_in_flight_is_known_until_it_is_done() -> None:
    agenda = make_agenda(KEY)
    agenda.mark_delete(KEY, former("a", namespace="team"), flying=True)
    agenda.settle(KEY)
    agenda.turn()
    mark_write(agenda, OLD)
    agenda.begin(KEY)
    assert (agenda.namespace(KEY), agenda.may_delete(KEY)) == ("team", True)
    agenda.settle(KEY)
    assert agenda.namespace(KEY) == ""


def test_pace_lets_a_burst_through_and_then_two_a_second() -> None:
    pace, now = RecordRateLimit(), 100.0
    times: list[float] = []
    while len(times) < BURST + 4:
        delay = pace.delay(KEY, now)
        if not delay:
            times.append(now)
        now += delay
    assert times == [100.0] * BURST + [100 + INTERVAL * n for n in range(1, 5)]
    assert pace.delay(UPSTREAM, now) == 0


def test_pace_lets_a_whole_burst_through_again_once_a_record_is_forgotten() -> None:
    pace = RecordRateLimit()
    used_up = [pace.delay(KEY, 100.0) for _ in range(BURST + 1)]
    pace.forget(KEY)
    pace.forget(UPSTREAM)
    assert (used_up[-1], [pace.delay(KEY, 100.0) for _ in range(BURST)]) == (INTERVAL, [0.0] * BURST)


def test_pace_forgets_records_at_rest() -> None:
    pace = RecordRateLimit()
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
