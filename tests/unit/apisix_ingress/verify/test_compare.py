"""Differences between two responses, and differences that every change of gateway causes."""

from __future__ import annotations

import pytest

from apisix_ingress.verify.compare import Difference, cookie_shape, differences, facts, location
from apisix_ingress.verify.model import Address, Answer, Probe

OLD, NEW = Address("10.0.0.1", {"http": 80, "https": 443}), Address("10.0.0.2", {"http": 8080, "https": 8443})
GET = Probe("shop.example.org", "/a")
NGINX_404 = b"<html><head><title>404 Not Found</title></head><body><center>nginx</center></body></html>"
APISIX_404 = b'{"error_msg":"404 Route Not Found"}\n'


def compared(old: Answer, new: Answer, probe: Probe = GET) -> list[Difference]:
    return list(differences(facts(old, probe, OLD), facts(new, probe, NEW)))


def answer(status: int = 200, body: bytes = b"a", backend: str = "web", **headers: str) -> Answer:
    return Answer(status, tuple((name.replace("_", "-"), value) for name, value in headers.items()), body, backend)


def test_equal_responses_have_no_difference() -> None:
    assert compared(answer(content_type="text/plain"), answer(content_type="text/plain")) == []


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        (answer(), answer(503), "status"),
        (answer(301, location="/b"), answer(301, location="/c"), "location"),
        (answer(strict_transport_security="max-age=1"), answer(), "header strict-transport-security"),
        (answer(), answer(x_extra="1"), "header x-extra"),
        (answer(set_cookie="s=1; Path=/"), answer(set_cookie="s=2; Path=/; Secure"), "cookie s"),
        (answer(), answer(body=b"b"), "body"),
        (answer(), answer(backend="canary"), "backend"),
        (Answer(200, certificate="aa"), Answer(200, certificate="bb"), "certificate"),
    ],
)
def test_difference_is_named(old: Answer, new: Answer, want: str) -> None:
    assert [each.what for each in compared(old, new)] == [want]


def test_a_missing_response_is_the_only_difference() -> None:
    (got,) = compared(answer(x_a="1"), Answer(0, error="connection refused or unreachable"))
    assert (got.aspect, got.old, got.new) == ("answer", "status 200", "connection refused or unreachable")
    assert compared(Answer(0, error="no response in time"), Answer(0, error="no response in time")) == []


def test_error_pages_of_the_two_gateways_are_equal() -> None:
    old = answer(404, NGINX_404, "", content_type="text/html")
    assert compared(old, answer(404, APISIX_404, "", content_type="text/plain")) == []
    assert [each.what for each in compared(old, answer(404, b"ours", "web", content_type="text/html"))] == ["backend"]


def test_redirects_are_compared_by_location_and_not_by_page() -> None:
    old = answer(308, NGINX_404, "", location="https://shop.example.org/a")
    assert compared(old, answer(308, b"", "", location="https://shop.example.org:8443/a")) == []


@pytest.mark.parametrize("name", ["date", "server", "via", "x_request_id", "x_apisix_upstream_status", "alt_svc"])
def test_headers_of_any_gateway_are_ignored(name: str) -> None:
    assert compared(Answer(200, ((name.replace("_", "-"), "1"),)), Answer(200)) == []


def test_values_of_cookies_are_ignored_but_their_attributes_are_compared() -> None:
    assert cookie_shape("a=x; HttpOnly; Path=/; Max-Age=5") == ("a", "httponly; max-age=5; path=/")
    assert cookie_shape("a=x; Expires=Thu, 01 Jan 2026") == ("a", "expires")
    assert cookie_shape("a") == ("a", "no attributes")


@pytest.mark.parametrize(
    ("value", "want"),
    [
        ("/b", "/b"),
        ("http://SHOP.example.org:8080/b?x=1#f", "http://shop.example.org/b?x=1#f"),
        ("http://shop.example.org:81/b", "http://shop.example.org:81/b"),
        ("http://shop:99999/b", "http://shop:99999/b"),
    ],
)
def test_location_is_compared_without_the_port_under_test(value: str, want: str) -> None:
    assert location(value, GET, NEW) == want


def test_body_of_head_is_ignored() -> None:
    head = Probe("shop.example.org", "/a", method="HEAD")
    assert compared(answer(body=b""), answer(body=b"x"), head) == []
