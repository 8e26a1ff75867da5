"""Patterns that a gateway may fail to match: nested repetitions, many choices, and whatever is not a simple pattern."""

from __future__ import annotations

import re

import pytest

from translation.plugins.pattern_errors import may_fail, on_error


@pytest.mark.parametrize(
    "pattern",
    [
        "/", "/a.b", "/v1(/|$)(.*)", "/v[0-9]+/(.*)", "/v[0-9]+/x", "/(?:a|b)/.*", r"/a\.html", r"/\d+", "/a?b?c?",
        "/(a|b|c|d)/(.*)", "/a(b)?",
    ],
)  # fmt: skip
def test_simple_patterns_cannot_fail(pattern: str) -> None:
    assert not may_fail(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "/secure/((a|b)(/)?)*$", "/(a+)+$", "/.*/x/.*y", "/a*b*", "/(?=a)", "/(a)\\1", "/a{9}", "/(?:ab)*", r"/\Qa",
        "/(a|b)(c|d)(e|f)?g?.*x",
        "/(?<a>b)",
    ],
)  # fmt: skip
def test_other_patterns_may_fail(pattern: str) -> None:
    assert may_fail(pattern)


@pytest.mark.parametrize("pattern", ["^/a", "/a|/b", "^/a|b$", "x", "(a)(b)?", "^"])
@pytest.mark.parametrize("path", ["/", "/a", "/b", "/x/ab", "/a\n"])
def test_without_an_error_the_condition_of_an_error_never_holds(pattern: str, path: str) -> None:
    name, negation, operator, whole = on_error(pattern, "~*")

    assert (name, negation, operator) == ("uri", "!", "~*")
    assert re.search(whole, path, re.IGNORECASE)
