"""Texts that are sent to the API server: within its limits, times as it writes them."""

from datetime import UTC, datetime

from apisix_ingress.kube.status.text_limits import MESSAGE_LIMIT, bounded_message, timestamp


def test_a_short_message_stays_unchanged() -> None:
    assert bounded_message("x" * MESSAGE_LIMIT) == "x" * MESSAGE_LIMIT


def test_long_messages_that_differ_late_stay_different() -> None:
    one, two = bounded_message("x" * 5000 + "a"), bounded_message("x" * 5000 + "b")
    assert (len(one), len(two)) == (MESSAGE_LIMIT, MESSAGE_LIMIT)
    assert one != two
    assert one == bounded_message("x" * 5000 + "a")


def test_a_secret_in_a_message_is_masked() -> None:
    got = bounded_message("gateway said: -----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----")
    assert "abc" not in got


def test_a_time_is_rfc_3339_to_the_second() -> None:
    assert timestamp(datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)) == "2026-01-02T03:04:05Z"
