"""Whether a rewritten path stays a path: the gateway appends it to the name of its upstream.

The patterns were tried on APISIX 3.18.
"""

import pytest

from translation.safety.paths import keeps_path


@pytest.mark.parametrize(
    ("pattern", "replacement"),
    [
        ("^/api/(.*)", "/$1"),
        ("^/api(.*)", "/$1"),
        ("^/api(/.*)", "$1"),
        ("^/api(/.*)", "${1}"),
        ("(?i)^/api(/.*)", "$1"),
        (r"^/\(a(/.+)$", "$1?x=1"),
        (r"^/[(/](x)(/y)", "$2"),
        ("^/[]](/y)", "$1"),
        ("^/a(?:x)(/y)", "$1"),
        ("^(?:/__mirror/[0-9a-f]+/[0-9]+)+(/.*)$", "$1"),
        ("^/(?:a|b)(/.*)", "$1"),
        ("^(?:/v[0-9])?(/.*)", "$1"),
        ("^/a(/x)+", "$1"),
        ("^/api(/.*)?$", "$1"),
        ("^/api(?:x(/.*))?$", "$1"),
        ("^/api(/.*)?$", "$1/x"),
        ("^(.*)/old(.*)$", "$1/new$2"),
        ("(.*)/old", "$1/new"),
        ("v1", "v2"),
        (r"\.html$", ""),
        ("api/(.*)", "$1"),
        ("(?!^)(?:/old(.*))", "$1"),
    ],
)
def test_path_stays_a_path(pattern: str, replacement: str) -> None:
    assert keeps_path(pattern, replacement)


@pytest.mark.parametrize(
    ("pattern", "replacement"),
    [
        ("^/(.*)", "$1"),
        ("^/(.*)", ".evil.example/$1"),
        ("^/(.*)", ""),
        ("^/(.*)", "$0"),
        ("^/(.*)", "$2"),
        ("^/(.*)", "$arg_x"),
        ("^/(/.*)", "$"),
        ("^/(/.*)", "${1"),
        ("^/a(/.*)?(.*)", "$1.evil.example"),
        ("^/a(/.*)?$", "$1.evil.example"),
        ("^/a(/.*)?", "$1"),
        ("^/a(/?.*)", "$1"),
        ("^/a(/*x.*)", "$1"),
        ("^/a(/{0}.*)", "$1"),
        ("^/a(/x|.evil.example)", "$1"),
        ("^/a(?:(/x)|.*)", "$1"),
        ("^/a(/x)|.*", "$1"),
        ("^/a((/x))?", "$2.evil.example"),
        ("^/a((/x)){0,1}", "$2"),
        (r"^/\Q(\E(.*)(/x)", "$1"),
        ("^/[(](.*)", "$1"),
        ("^/[[:alpha:](/x)]*(.*)", "$1"),
        (r"^/\c((/x)(.*)", "$1"),
        ("^/(?=(/x))(.*)", "$1"),
        ("^/(*ACCEPT)(/x)", "$1"),
        ("^/a)(/x)", "$1"),
        ("^/a((/x)", "$1"),
        ("^/a[(/x)", "$1"),
        ("^(.)+", "$1/x"),
        ("^(/|[a-z.]*)+", "$1/x"),
        ("/api", ""),
        ("/api", "x"),
        ("v*1", "x"),
        ("v{0}/1", "x"),
        ("v1|/", "x"),
        (r"\/api", "x"),
        (r"\d", "x"),
        ("", "x"),
    ],
)
def test_what_may_become_a_part_of_a_host_is_refused(pattern: str, replacement: str) -> None:
    assert not keeps_path(pattern, replacement)


@pytest.mark.parametrize("part", ["(", "[", "(?:", "()", "|", "$1", "(/"])
def test_long_patterns_are_read_in_one_pass(part: str) -> None:
    text = part * 20_000
    assert not keeps_path(text, f"${'1' * 20_000}")
    assert not keeps_path(f"^{text}", "$1")
