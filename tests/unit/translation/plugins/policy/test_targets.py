"""Whether a rewritten path stays a path: the gateway appends it to the name of its upstream."""

import pytest

from translation.plugins.policy.targets import keeps_path


@pytest.mark.parametrize(
    ("pattern", "replacement"),
    [
        ("^/api/(.*)", "/$1"),
        ("^/api(/.*)", "$1"),
        ("^/api(/.*)", "${1}"),
        (r"^/\(a(/.+)$", "$1?x=1"),
        (r"^/[(/](x)(/y)", "$2"),
        ("^/[]](/y)", "$1"),
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
        ("^/a(/.*)?(.*)", "$1.evil.example"),
        ("^/a(/?.*)", "$1"),
        ("^/a(/*x.*)", "$1"),
        ("^/a(/{0}.*)", "$1"),
        ("^/a(/x|.evil.example)", "$1"),
        ("^/a((/x))?", "$2.evil.example"),
        ("^/a(?:x)(/y)", "$1"),
        (r"^/\Q(\E(.*)(/x)", "$1"),
        ("^/[(](.*)", "$1"),
    ],
)
def test_what_may_become_a_part_of_a_host_is_refused(pattern: str, replacement: str) -> None:
    assert not keeps_path(pattern, replacement)
