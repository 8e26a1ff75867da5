"""The arguments of `explain`, and the errors for invalid ones."""

from __future__ import annotations

import pytest

from apisix_ingress.errors import UsageError
from apisix_ingress.explain.request import ProbeRequest, Unknown, normalise, parse_request


@pytest.mark.parametrize(
    ("url", "want"),
    [
        ("https://Shop.ORG:8443/a%20b?x=1", ("https", "shop.org", "/a b")),
        ("shop.org/a", ("http", "shop.org", "/a")),
        ("shop.org", ("http", "shop.org", "/")),
        ("shop.org.:80/a/", ("http", "shop.org", "/a/")),
        ("/only/path", ("http", "", "/only/path")),
        ("http://[::1]:80/x", ("http", "[::1]", "/x")),
        ("http://[0:0::A]/x", ("http", "[0:0::a]", "/x")),
        ("http://user:secret@shop.org/x", ("http", "shop.org", "/x")),
        ("http://bücher.example/x", ("http", "xn--bcher-kva.example", "/x")),
    ],
)
def test_url_is_read_as_clients_send_it(url: str, want: tuple[str, str, str]) -> None:
    request = parse_request(url)
    got = (request.scheme, request.host, request.path)
    assert got == want


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        ({"url": "ftp://a/b"}, "URL 'ftp://a/b' has the scheme 'ftp'; use http:// or https://"),
        ({"url": ""}, "the URL is empty; write https://host/path, host/path or /path"),
        ({"url": "http://a:65536/"}, "invalid URL 'http://a:65536/' (invalid port)"),
        ({"url": "http://a:x/"}, "invalid URL 'http://a:x/' (invalid port)"),
        ({"url": "a", "server_port": 0}, "invalid port 0; use a number from 1 to 65535"),
        ({"url": "a", "server_port": 65536}, "invalid port 65536; use a number from 1 to 65535"),
        ({"url": "a b"}, "URL 'a b' contains a space or a control character; percent-encode it"),
        ({"url": "http://[::1/x"}, "invalid URL 'http://[::1/x' (Invalid IPv6 URL)"),
        ({"url": "a", "method": "G T"}, "invalid method 'G T'; use e.g. GET"),
        ({"url": "a", "headers": ("x",)}, "malformed header 'x'; write -H 'Name: value'"),
        ({"url": "a", "headers": ("x: a\nb",)}, "malformed header 'x: a\\nb'; write -H 'Name: value'"),
        ({"url": "a", "remote_addr": "1.2.3"}, "client address '1.2.3' is not an IP address; use e.g. 192.0.2.7"),
        ({"url": "a", "server_addr": "gw"}, "gateway address 'gw' is not an IP address; use e.g. 192.0.2.7"),
        ({"url": "http://" + "ü" * 80 + ".example/"}, "is not a host name"),
    ],
)
def test_a_malformed_argument_is_reported_with_the_correct_form(arguments: dict[str, object], want: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_request(**arguments)  # type: ignore[arg-type]
    assert want in str(caught.value)


def test_header_replaces_the_host_and_is_found_by_its_variable() -> None:
    request = parse_request("10.0.0.1/x", headers=("Host: shop.org", "X-Canary=always", "Cookie: a=1; b=2"))
    got = (request.host, request.variable("http_x_canary"), request.variable("cookie_b"), request.variable("http_none"))
    assert got == ("shop.org", "always", "2", None)


def test_server_name_is_the_host_of_an_https_url() -> None:
    request = parse_request("https://Shop.org:8443/x", headers=("Host: other.org",), server_addr="192.0.2.1")
    assert (request.variable("ssl_server_name"), request.variable("server_addr")) == ("shop.org", "192.0.2.1")
    assert parse_request("http://shop.org/x").variable("ssl_server_name") is None
    with pytest.raises(Unknown, match="use a URL with a host"):
        parse_request("https:///x", headers=("Host: shop.org",)).variable("ssl_server_name")


@pytest.mark.parametrize(
    "name", ["remote_addr", "server_port", "server_addr", "post_arg_x", "graphql_name", "request_id"]
)
def test_a_variable_that_is_not_given_is_unknown(name: str) -> None:
    with pytest.raises(Unknown):
        parse_request("a/b").variable(name)


@pytest.mark.parametrize(
    ("path", "want"),
    [("/a/../b", "/b"), ("//a///b", "/a/b"), ("/%61/./b/", "/a/b/"), ("/a/..", "/"), ("/a/b/.", "/a/b/"), ("/..", "/")],
)
def test_path_is_matched_in_its_plain_form(path: str, want: str) -> None:
    assert normalise(path) == want


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "/a%20b/../c?x=%", None),
        ("GET", "/../foo", 400),
        ("GET", "/a/%2e%2e/%2e%2e/b", 400),
        ("GET", "/foo%", 400),
        ("GET", "/foo%zz", 400),
        ("GET", "/foo%00bar", 400),
        ("TRACE", "/", 405),
        ("CONNECT", "/", 405),
    ],
)
def test_nginx_rejects_some_requests_before_a_route_is_chosen(method: str, target: str, status: int | None) -> None:
    rejection = ProbeRequest(method, "http", "a.org", target).rejection
    assert (rejection and rejection[0]) == status


def test_nginx_rejects_long_lines_before_a_route_is_chosen() -> None:
    """The lengths are those of APISIX 3.18, which has the buffers that nginx has by default."""

    def status(target: int, header: int) -> int | None:
        asked = ProbeRequest("GET", "http", "a.org", "/".ljust(target, "x"), {"x-a": "x" * header})
        return asked.rejection[0] if asked.rejection else None

    assert [status(8177, 8185), status(8178, 8185), status(8177, 8186)] == [None, 414, 400]


def test_a_fragment_is_neither_path_nor_query() -> None:
    assert ProbeRequest("GET", "http", "a.org", "/foo/bar#frag").path == "/foo/bar"
    assert ProbeRequest("GET", "http", "a.org", "/foo?x=1#frag").variable("query_string") == "x=1"
