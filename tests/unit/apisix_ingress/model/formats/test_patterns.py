"""Patterns: which engine matches a text, what it accepts, and what limits it."""

import re

import pytest
import re2

from apisix_ingress.model.formats.patterns import (
    LONGEST_FOREIGN_PATTERN,
    LONGEST_FOREIGN_TEXT,
    LONGEST_VALUE,
    ForeignPattern,
    TextPattern,
    ValuePattern,
    escaped_literal,
    group_numbers,
    has_python_syntax,
)

_TEXTS = ["", "a", "aéb\n", "é\ud800b", "x\nxé\nx", "ab" * 5, "\u2028é"]


@pytest.mark.parametrize("text", _TEXTS)
@pytest.mark.parametrize("pattern", ["a*", "é|b", "[b-é]*", "(?m)^x", "(?m)x$", ".", "(a)(b)?", "[^a]", r"(?s).+"])
def test_positions_and_parts_are_those_of_re(pattern: str, text: str) -> None:
    expected = list(re.finditer(pattern, text))
    found = list(TextPattern(pattern).finditer(text))
    assert [(each.start, each.end, each[0]) for each in found] == [(*each.span(), each[0]) for each in expected]
    assert [each.groups() for each in found] == [each.groups("") for each in expected]
    assert TextPattern(pattern).sub("<>", text) == re.sub(pattern, "<>", text)
    assert TextPattern(pattern).found(text) == bool(expected)
    assert ValuePattern(pattern).fits(text) == bool(re.fullmatch(pattern, text))


def test_our_patterns_run_in_re2() -> None:
    assert type(ValuePattern("a")._engine) is type(re2.compile("a"))
    assert type(TextPattern("a")._engine) is type(re2.compile("a"))


def test_a_pattern_that_backtracks_elsewhere_is_matched() -> None:
    assert not ValuePattern("(a|aa|a?)*b", 10**6).fits("a" * 10**6)


def test_a_value_beyond_the_maximum_does_not_match() -> None:
    assert ValuePattern("a*").fits("a" * LONGEST_VALUE)
    assert not ValuePattern("a*").fits("a" * (LONGEST_VALUE + 1))
    assert ValuePattern("a*").fullmatch("a" * (LONGEST_VALUE + 1)) is None
    assert ValuePattern("a*", 3).fullmatch("aaaa") is None


def test_a_dollar_does_not_match_before_a_line_break() -> None:
    assert not ValuePattern("a$").fits("a\n")
    assert not TextPattern("a$").found("a\n")


def test_a_named_group_is_read_by_its_name() -> None:
    found = ValuePattern(r"(?P<host>[^:]+)(?::(?P<port>[0-9]+))?").fullmatch("é.example")
    assert found is not None
    assert (found["host"], found["port"], found.has("port")) == ("é.example", "", False)


def test_the_pattern_of_a_user_has_a_time_limit() -> None:
    slow = ForeignPattern("^(?:a|a|aa)+$")
    with pytest.raises(TimeoutError):
        slow.found("a" * 5000 + "!", seconds=0.01)


def test_the_pattern_of_a_user_is_written_for_pcre() -> None:
    assert ForeignPattern(r"^(?<!x)(a++)\b", ignore_case=True).found("AA b", seconds=1)
    assert not ForeignPattern("(?!)").found("a", seconds=1)


@pytest.mark.parametrize("pattern", ["(", "a" * (LONGEST_FOREIGN_PATTERN + 1), "(" * 2000 + ")" * 2000])
def test_an_invalid_pattern_of_a_user_is_an_error(pattern: str) -> None:
    assert not has_python_syntax(pattern)
    assert group_numbers(pattern) == {}
    with pytest.raises(ValueError, match="regular expression"):
        ForeignPattern(pattern)


def test_a_text_beyond_the_maximum_is_not_matched_with_the_pattern_of_a_user() -> None:
    with pytest.raises(TimeoutError):
        ForeignPattern("a").found("a" * (LONGEST_FOREIGN_TEXT + 1), seconds=1)


def test_names_of_groups_have_numbers() -> None:
    assert dict(group_numbers("(?P<a>x)(y)(?P<b>z)")) == {"a": 1, "b": 3}


@pytest.mark.parametrize("text", ["a.b*c", "-/ é", "^$|()[]{}\\"])
def test_an_escaped_literal_matches_itself_only(text: str) -> None:
    assert ValuePattern(escaped_literal(text)).fits(text)
    assert not ValuePattern(escaped_literal(text)).fits(text + "x")
