"""When a record whose write failed is tried again, and what is told of one that goes on failing."""

import random

from apisix_ingress.errors import GatewayUnavailable
from apisix_ingress.gateway.sync.records.retries import PATIENCE, RETRY_BASE, RETRY_CAP, RetryTracker, is_crash, told
from apisix_ingress.model.keys import RecordKey

ROUTE, OTHER = RecordKey("routes", "r1"), RecordKey("routes", "r2")
FIRST, LAST = GatewayUnavailable("no answer"), GatewayUnavailable("HTTP 502", status=502)


def test_record_waits_longer_with_each_failure_and_for_itself_alone() -> None:
    setbacks = RetryTracker(rng=random.Random(0))
    delays = [setbacks.note(ROUTE, FIRST) for _ in range(20)]
    assert delays[0] <= RETRY_BASE < delays[2] < delays[4] <= max(delays) <= RETRY_CAP
    assert setbacks.note(OTHER, FIRST) <= RETRY_BASE
    assert setbacks.note(OTHER, GatewayUnavailable("slow down", status=429, retry_after=33)) == 33


def test_failure_lasts_with_its_last_error_until_the_record_is_settled() -> None:
    setbacks = RetryTracker(rng=random.Random(0))
    seen = []
    for error in (*[FIRST] * (PATIENCE - 1), LAST):
        setbacks.note(ROUTE, error)
        seen.append(setbacks.lasting(ROUTE))
    assert seen == [*[None] * (PATIENCE - 1), LAST]
    setbacks.settle(ROUTE)
    assert (list(setbacks), setbacks.lasting(ROUTE), setbacks.failures(ROUTE)) == ([], None, 0)


def test_record_that_is_eased_is_still_to_be_tried_again() -> None:
    setbacks = RetryTracker(rng=random.Random(0))
    for _ in range(PATIENCE):
        setbacks.note(ROUTE, FIRST)
    setbacks.ease(ROUTE)
    assert (list(setbacks), setbacks.lasting(ROUTE)) == ([ROUTE], None)
    assert setbacks.note(ROUTE, FIRST) <= RETRY_BASE


def test_a_crash_of_the_gateway_alone_is_told_with_where_to_look() -> None:
    crash = GatewayUnavailable("HTTP 500", status=500)
    assert [is_crash(error) for error in (FIRST, LAST, crash)] == [False, False, True]
    assert (told(LAST), told(crash).partition(";")[0]) == ("HTTP 502", "HTTP 500")
