"""The verdict table: values that are not valid, and their translation."""

from __future__ import annotations

import pytest

from translation.nginx.tables.annotations import TABLE
from translation.nginx.tables.findings import judged
from translation.nginx.tables.values import Values, boolean, integer, networks, size


@pytest.mark.parametrize(
    ("name", "value", "outcome"),
    [
        ("proxy-read-timeout", "1s", "default"),
        ("proxy-read-timeout", "-1", "refused"),
        ("whitelist-source-range", "300.1.1.1", "closed"),
        ("permanent-redirect", "https://$host", "refused"),
        ("use-regex", "yes", "default"),
        ("limit-rps", "many", "refused"),
        ("proxy-body-size", "8MB", "default"),
        ("load-balance", "least_conn", "refused"),
        ("proxy-body-size", "8m", None),
    ],
)
def test_a_wrong_value_has_the_outcome_that_ingress_nginx_gives_it(name: str, value: str, outcome: str | None) -> None:
    if outcome == "default" and name == "proxy-read-timeout":
        # An invalid number is treated as absent, independently of the check of its range.
        assert TABLE[name].outcome(value) is None
        assert Values({name: value}).number(name, 60) == 60
    else:
        assert TABLE[name].outcome(value) == outcome


def test_every_annotation_gets_a_verdict_even_an_unknown_one() -> None:
    found = list(judged(Values({"no-such": "x", "enable-modsecurity": "true", "auth-realm": "r"})))

    assert {each.annotation: each.verdict.level for each in found} == {
        "enable-modsecurity": "refused",
        "auth-realm": "no effect",
        "no-such": "no effect",
    }


def test_values_are_read_as_go_reads_them() -> None:
    assert [boolean(text) for text in ("t", "TRUE", "1", "on", " true", "0")] == [True, True, True, None, None, False]
    assert [integer(text) for text in ("+1", "1.0", " 1", "0x1")] == [1, None, None, None]
    assert [size(text) for text in ("1m", "2K", "0", "8MB")] == [2**20, 2048, 0, None]
    assert networks("10.0.0.1/8, 192.0.2.1") == ("10.0.0.0/8", "192.0.2.1")


def test_digest_authentication_is_refused_and_basic_is_not() -> None:
    assert [TABLE["auth-type"].judge(text).level for text in ("basic", "digest")] == ["exact", "refused"]
