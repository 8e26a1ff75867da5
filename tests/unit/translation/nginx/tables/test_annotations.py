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


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("proxy-read-timeout", "60s", "The value is not a whole number without a unit"),
        ("proxy-next-upstream-tries", "three", "The value is not a whole number without a unit"),
        ("proxy-next-upstream-timeout", "1m", "The value is not a whole number without a unit"),
        ("cors-max-age", "1d", "The value is not a whole number without a unit"),
        ("limit-rps", "-3", "Without a positive number there is no limit"),
        ("limit-connections", "0", "Without a positive number there is no limit"),
        ("cors-allow-origin", "example.org", "No item is an origin such as https://example.org"),
        ("cors-allow-origin", "https://a.test, b/;c", "An item is not an origin"),
        ("permanent-redirect-code", "200", "The value is not from 300 to 308"),
        ("temporal-redirect-code", "308", "The value is not from 300 to 307"),
        ("secure-backends", "true", "ingress-nginx 0.21 removed this annotation, so it has no effect; use backend-"),
        ("global-rate-limit-window", "1m", "ingress-nginx 1.12 removed this annotation, so it has no effect; use the"),
        ("session-cookie-hash", "sha1", "ingress-nginx 0.24 removed this annotation, so it has no effect; remove it."),
    ],
)
def test_a_value_that_ingress_nginx_ignores_has_no_effect(name: str, value: str, reason: str) -> None:
    given = {name: value, "enable-cors": "true", "temporal-redirect": "https://a.test"}
    (got,) = [each for each in judged(Values(given)) if each.annotation == name]
    assert (got.verdict.level, got.verdict.reason[: len(reason)]) == ("no effect", reason)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("proxy-read-timeout", "60"),
        ("limit-rps", "3"),
        ("cors-allow-origin", "*"),
        ("cors-allow-origin", "https://*.a.test, b.test"),
        ("permanent-redirect-code", "308"),
    ],
)
def test_a_value_that_ingress_nginx_uses_is_exact(name: str, value: str) -> None:
    (got,) = [each for each in judged(Values({name: value, "enable-cors": "true"})) if each.annotation == name]
    assert got.verdict.level == "exact"


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
