"""The report as text: what differs in the same way is written once."""

from __future__ import annotations

from datetime import UTC, datetime

from apisix_ingress.verify.compare import Difference
from apisix_ingress.verify.model import Address, Probe
from apisix_ingress.verify.report import SHOWN, Summary, lines
from apisix_ingress.verify.session import Finding

ADDRESS = Address("127.0.0.1", {"http": 80, "https": 443})
CHARSET = Difference("header", "text/html", "text/html; charset=utf-8", "content-type")


def text(*found: tuple[str, Difference]) -> str:
    summary = Summary(ADDRESS, ADDRESS)
    findings = [Finding(Probe(host, "/"), (difference,), 200, 5) for host, difference in found]
    summary.add(findings, datetime(2026, 1, 1, tzinfo=UTC))
    return "\n".join(lines(summary.document()))


def test_a_difference_of_many_requests_is_written_once() -> None:
    got = text(*((f"h{number}.test", CHARSET) for number in range(SHOWN + 3)))

    assert got.count("header content-type: text/html -> text/html; charset=utf-8") == 1
    assert f"... and 3 more requests; {SHOWN + 3} hosts in all" in got


def test_the_number_of_other_requests_of_one_host_is_singular() -> None:
    summary = Summary(ADDRESS, ADDRESS)
    findings = [Finding(Probe("a.test", f"/{number}"), (CHARSET,), 200, 5) for number in range(SHOWN + 1)]
    summary.add(findings, datetime(2026, 1, 1, tzinfo=UTC))
    assert "... and 1 more request; 1 host in all" in "\n".join(lines(summary.document()))


def test_headers_of_cors_are_shown_although_a_name_contains_credentials() -> None:
    got = text(
        ("a.test", Difference("header", "absent", "true", "access-control-allow-credentials")),
        ("b.test", Difference("header", "absent", "abc", "x-credentials")),
    )

    assert "header access-control-allow-credentials: absent -> true" in got
    assert "header x-credentials: absent -> [hidden]" in got


def test_a_lost_protection_comes_before_a_header() -> None:
    got = text(("a.test", CHARSET), ("b.test", CHARSET), ("c.test", Difference("status", "403", "200")))

    assert got.startswith("GET http://c.test/")
    assert "2 kinds of differences: 2x header, 1x status" in got


def test_bodies_of_different_paths_are_one_kind() -> None:
    got = text(
        ("a.test", Difference("body", "1 bytes", "2 bytes")), ("b.test", Difference("body", "3 bytes", "4 bytes"))
    )

    assert "1 kind of differences" in got
    assert "body: 1 bytes -> 2 bytes  [of the first request]" in got
