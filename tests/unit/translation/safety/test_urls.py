"""Where URLs lead, whatever the values of variables in them are."""

import pytest

from translation.safety.urls import Authority, address_of, authority_of


@pytest.mark.parametrize(
    ("url", "want"),
    [
        ("http://auth.test", Authority("auth.test", 80)),
        ("https://auth.test/x$http_x", Authority("auth.test", 443)),
        ("http://auth.test:8080?x=$arg_x", Authority("auth.test", 8080)),
        ("HTTP://auth.test", Authority("auth.test", 80)),
        ("http://[fd00::1]:8080/x", Authority("fd00::1", 8080)),
        ("http://auth.test/x@y", Authority("auth.test", 80)),
        ("grpcs://auth.test", Authority("auth.test", 443)),
    ],
)
def test_a_url_leads_to_its_literal_address(url: str, want: Authority) -> None:
    assert authority_of(url) == want


@pytest.mark.parametrize(
    "url",
    [
        *("http://169.254$http_x", "http://auth.test:80$http_x", "http://$host/", "$scheme://auth.test/"),
        *("http://[fd00::1]/x$http_x", "http://[fd00::1]/x]:80", "http://[fd00::1", "http://[fd00::1]x/"),
        *("http://me@auth.test/", "http://auth.test\\@evil.test/", "http://auth.test#$http_x", "http://a b/"),
        *("//auth.test/", "ftp://auth.test/", "auth.test", "http://", "http:///x", "http://auth.test:/"),
        *("http://auth.test:x/", "http://auth.test:123456/", "http://1:2:3/", "see https://auth.test/"),
    ],
)
def test_a_url_with_an_unclear_address_leads_nowhere(url: str) -> None:
    assert authority_of(url) is None


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("redis.test", Authority("redis.test", None)),
        ("redis.test:6379", Authority("redis.test", 6379)),
        ("[::1]", Authority("::1", None)),
        ("::1", Authority("::1", None)),
        ("a:b:c", None),
        ("", None),
        ("$env://X", None),
    ],
)
def test_addresses_have_a_host_and_perhaps_a_port(text: str, want: Authority | None) -> None:
    assert address_of(text) == want
