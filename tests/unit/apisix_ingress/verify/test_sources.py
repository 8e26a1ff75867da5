"""Requests out of access logs and of files."""

import pytest

from apisix_ingress.errors import UsageError
from apisix_ingress.verify import accesslog, requestfile
from apisix_ingress.verify.model import Probe

COMBINED = (
    '10.0.0.9 - - [22/Nov/2026:10:00:00 +0000] "GET /cart?a=1 HTTP/1.1" 200 12 "-" "curl/8" 120 0.1 [shop-web-80] [] -'
)


@pytest.mark.parametrize(
    ("line", "want"),
    [
        (COMBINED, Probe("shop.org", "/cart?a=1")),
        ('{"host": "a.org", "request_uri": "/x?y=1", "method": "HEAD"}', Probe("a.org", "/x?y=1", method="HEAD")),
        ('{"vhost": "a.org:80", "path": "/x", "args": "y=1", "scheme": "https"}', Probe("a.org", "/x?y=1", "https")),
        ('{"http_host": "a.org", "request": "PUT /x HTTP/1.1"}', Probe("a.org", "/x", method="PUT")),
        ('{"url": "https://b.org/x"}', Probe("b.org", "/x", "https")),
        ('{"status": 200}', None),
        ("{broken", None),
        ('10.0.0.9 - - [now] "\\x16\\x03" 400 0 "-" "-"', None),
        ('10.0.0.9 - - [now] "CONNECT a:443 HTTP/1.1" 400 0 "-" "-"', None),
    ],
)
def test_line_of_a_log_is_a_request(line: str, want: Probe | None) -> None:
    assert list(accesslog.probes_of([line, "\n"], "access.log", host="shop.org")) == [want]


def test_a_line_without_a_host_is_skipped_without_a_default_host() -> None:
    assert list(accesslog.probes_of([COMBINED], "access.log", host="")) == [None]


def test_file_has_a_request_a_line() -> None:
    lines = ["# comment", "", "https://a.org/x y?q=ä", "POST http://a.org -H 'X-A: 1' -H 'Cookie: b=c'"]
    assert list(requestfile.probes_of([lines[0], lines[1], lines[3]], "r.txt")) == [
        Probe("a.org", "/", "http", "POST", (("X-A", "1"), ("Cookie", "b=c")))
    ]
    with pytest.raises(UsageError, match=r"r\.txt:3: 'y"):
        list(requestfile.probes_of(lines, "r.txt"))


@pytest.mark.parametrize("line", ["shop.org/x", "GET", "https://a.org/ -X PUT", "https://a.org/ -H nothing", "'"])
def test_line_that_is_not_a_request_is_named(line: str) -> None:
    with pytest.raises(UsageError, match=r"r.txt:1: .*write \[METHOD\]"):
        list(requestfile.probes_of([line], "r.txt"))
