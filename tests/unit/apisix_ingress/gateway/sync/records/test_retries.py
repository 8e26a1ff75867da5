"""When a record whose write failed or was rejected is retried, and how fast one may be written."""

import random

from apisix_ingress.errors import GatewayUnavailable
from apisix_ingress.gateway.sync.records.rate_limit import BURST, INTERVAL, rate_delay
from apisix_ingress.gateway.sync.records.retries import (
    REJECTED,
    RETRY,
    is_crash,
    is_rejected,
    note_failure,
    note_rejection,
    offer_again,
    with_remedy,
)
from apisix_ingress.gateway.sync.records.slot import WARN_AFTER, RecordSlot
from apisix_ingress.gateway.sync.records.table import RecordTable
from apisix_ingress.model.keys import RecordKey
from tests.fakes.gateway import make_record

ROUTE, OTHER = RecordKey("routes", "r1"), RecordKey("routes", "r2")
RECORD = make_record(ROUTE)
FIRST, LAST = GatewayUnavailable("no response"), GatewayUnavailable("HTTP 502", status=502)


def fail(slot: RecordSlot, *errors: GatewayUnavailable) -> list[float]:
    rng = random.Random(0)
    return [note_failure(slot, error, rng) for error in errors]


def test_record_waits_longer_with_each_failure_and_for_itself_alone() -> None:
    delays = fail(RecordSlot(ROUTE), *[FIRST] * 20)
    assert delays[0] <= RETRY.base < delays[2] < delays[4] <= max(delays) <= RETRY.cap
    slow_down = GatewayUnavailable("slow down", status=429, retry_after=33)
    first, second = fail(RecordSlot(OTHER), FIRST, slow_down)
    assert (first <= RETRY.base, second) == (True, 33)


def test_failure_persists_with_its_last_error() -> None:
    slot, seen = RecordSlot(ROUTE), []
    for error in (*[FIRST] * (WARN_AFTER - 1), LAST):
        fail(slot, error)
        seen.append(slot.persistent_error)
    assert seen == [*[None] * (WARN_AFTER - 1), LAST]


def test_only_a_crash_of_the_gateway_is_explained() -> None:
    crash = GatewayUnavailable("HTTP 500", status=500)
    assert [is_crash(error) for error in (FIRST, LAST, crash)] == [False, False, True]
    assert (with_remedy(LAST), with_remedy(crash).partition(";")[0]) == ("HTTP 502", "HTTP 500")


def rejected_slot(tries: int = 1) -> RecordSlot:
    slot, rng = RecordSlot(ROUTE), random.Random(1)
    for _ in range(tries):
        note_rejection(slot, RECORD, "bad", 0.0, rng)
    return slot


def test_rejected_body_is_not_sent_again_until_it_is_offered_once() -> None:
    slot = rejected_slot()
    assert [slot.rejected(each) for each in (make_record(ROUTE), make_record(ROUTE, uri="/b"), None)] == [
        "bad",
        None,
        None,
    ]
    assert (is_rejected(slot, RECORD, 0.0), offer_again(slot, 0.0)) == (True, False)
    assert [offer_again(slot, REJECTED.base) for _ in range(2)] == [True, False]
    assert not is_rejected(slot, RECORD, REJECTED.base)
    assert slot.rejected(RECORD) == "bad"


def test_rejection_ends_with_another_body() -> None:
    slot = rejected_slot()
    assert not is_rejected(slot, make_record(ROUTE, uri="/b"), 0.0)
    assert slot.rejection is None


def test_new_tries_of_a_rejected_record_become_rare() -> None:
    slot = rejected_slot(tries=8)
    assert (offer_again(slot, REJECTED.cap * 0.7), offer_again(slot, REJECTED.cap)) == (False, True)


def test_rate_limit_lets_a_burst_through_and_then_two_a_second() -> None:
    slot, now, times = RecordSlot(ROUTE), 100.0, list[float]()
    while len(times) < BURST + 4:
        delay = rate_delay(slot, now)
        if not delay:
            times.append(now)
        now += delay
    assert times == [100.0] * BURST + [100 + INTERVAL * n for n in range(1, 5)]
    assert rate_delay(RecordSlot(OTHER), now) == 0


def test_an_empty_slot_is_dropped() -> None:
    table = RecordTable()
    slot = table.timed[ROUTE] = table.slot(ROUTE)
    rate_delay(slot, 100.0)
    assert list(table.tick(100.0)) == [slot]
    assert list(table.tick(100.0 + INTERVAL)) == []
    assert (list(table), table.timed) == ([], {})
