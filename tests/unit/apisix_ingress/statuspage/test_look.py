"""The display of states: relative times, rings, and texts that may be broken."""

from datetime import UTC, datetime, timedelta

import pytest

from apisix_ingress.model.states import HOST_STATUSES
from apisix_ingress.statuspage.look import ICONS, arcs, favicon, relative, tone
from apisix_ingress.statuspage.render import soft

NOW = datetime(2026, 11, 22, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("ago", "want"),
    [
        (timedelta(seconds=0), "0 s ago"),
        (timedelta(seconds=12), "12 s ago"),
        (timedelta(seconds=60), "1 min ago"),
        (timedelta(hours=5, minutes=59), "5 h ago"),
        (timedelta(days=1), "1 day ago"),
        (timedelta(days=-61, hours=-3), "in 61 days"),
        (timedelta(seconds=-5), "in 5 s"),
    ],
)
def test_time_is_shown_in_its_largest_unit(ago: timedelta, want: str) -> None:
    assert relative(f"{NOW - ago:%Y-%m-%dT%H:%M:%SZ}", NOW) == want


def test_ring_is_closed_and_shows_one_bad_of_many() -> None:
    got = arcs({"good": 9_999, "idle": 0, "warn": 0, "bad": 1})
    assert [(each["tone"], each["length"]) for each in got] == [("bad", 4.0), ("good", 99.99)]
    assert arcs({"good": 0, "idle": 0, "warn": 0, "bad": 0}) == []


def test_every_state_of_a_host_has_its_own_tone() -> None:
    assert {status: tone(status) for status in HOST_STATUSES} == {
        "not used": "idle",
        "redirect": "good",
        "live": "good",
        "unknown": "idle",
        "pending": "busy",
        "waiting": "busy",
        "partial": "warn",
        "not published": "bad",
        "rejected": "bad",
        "closed": "bad",
    }


def test_icon_of_the_tab_is_a_data_url() -> None:
    assert favicon("bad").startswith("data:image/svg+xml,%3Csvg")
    assert favicon("bad") != favicon("good")
    assert set(ICONS) >= {"good", "busy", "idle", "warn", "bad"}


def test_broken_text_is_escaped() -> None:
    assert soft("<b>.a/b_c-d") == "&lt;b&gt;.<wbr>a/<wbr>b_<wbr>c-<wbr>d"
