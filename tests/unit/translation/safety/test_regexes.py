"""Regular expressions of tenants that occupy a gateway. Seconds in comments were measured with a path of 7 kB."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from translation.core.options import Options
from translation.plugins.rewrites import rewrite, whole_rewrite
from translation.safety.expressions import regex_faults
from translation.safety.faults import dotted
from translation.safety.records import faults_of
from translation.safety.regexes import LONGEST, regex_fault

CHEAP = [
    r"^/api(/|$)(.*)",
    r"(?i)^(?:/v\d+/[^/]+/.*)$",
    r"\.(jpg|jpe?g|png)$",
    r"foo.*bar",
    r"https?://.*",
    r"(Baiduspider)/(\d+)\.(\d+)",
    r"\w+@[a-z0-9-]+\.com",
    r"[^/]+/login",
    r"[]a]+b",
    r"(?!x)(?<name>a+)b",
    r"root.m+",
    r"^(?|/api(.*)()|(/)())",
    r"(?<a>x)(?P<b>y)(?'c'z)(?=[[a]])",
    r"/(foo|bar|baz|qux)/.*",
    r"(?i)(bot|crawl|spider|slurp|curl|wget|python|java|scan|go-http|nikto|zgrab)",
    r"[\x{41}\x42\pL-]+\.html",
    "a{²}",
    "",
    "(((",
    "[",
    "\\",
]

COSTLY = [
    (r"(a*)\1[bc]", "backreferences"),  # 26 s
    (r"^(?<x>a*)\k<x>[bc]", "backreferences"),
    (r"^(a*)(?1)", "backreferences"),
    (r"^(?R)?", "backreferences"),
    (r"(*NO_JIT)^a", "backreferences"),
    (r"a{0,1000}a{0,1000}[bc]", "begin with ^"),  # 17 s
    (r"a{0,300}a{0,300}[bc]", "begin with ^"),  # 2.7 s
    (r".*foo.*", "begin with ^"),
    (r"(?:a+)+[bc]", "begin with ^"),
    (r"(?:a|b)+[bc]", "begin with ^"),
    (r"^/a|x.*y.*", "begin with ^"),
    (r"(?m)^a*a*[bc]", "begin with ^"),
    (r"a?" * 20, "begin with ^"),
    ("^" + "a" * LONGEST, "longer"),
    (r"(?|a{0,1000}a{0,1000}[bc]|:)", "begin with ^"),
    (r"(?'n'a{0,1000}a{0,1000}[bc]|>)", "begin with ^"),
    (r"(?i:a{0,1000}a{0,1000}[bc])^", "begin with ^"),  # 22 s
    (r"(a|a)(a|a)(a|a)(a|a).*[bc]", "begin with ^"),
    (r"\x61*a\x61*a[bc]", "begin with ^"),
    (r"\p{L}*a\p{L}*a[bc]", "begin with ^"),
    ("(?x)^Z#(\n|a{0,1000}a{0,1000}[bc]#)\n", "comments"),  # 11 s
    (r"^Z(?#:()|a{0,1000}a{0,1000}[bc](?#))", "comments"),
    (r"^\c(Z|a{0,1000}a{0,1000}[bc]\c)", "comments"),  # 41 s
    (r"^[\c]]a", "comments"),
    (r"^\Q(\E|a{0,1000}a{0,1000}[bc]\Q)\E", "comments"),  # 23 s
    (r"^[[:alpha:](]Z|a{0,1000}a{0,1000}[bc][)]", "comments"),  # 11 s
    (r"(?i-s)a", "comments"),
]


@pytest.mark.parametrize("pattern", CHEAP)
def test_a_pattern_that_costs_little_is_permitted(pattern: str) -> None:
    assert regex_fault(pattern) == ""


@pytest.mark.parametrize(("pattern", "why"), COSTLY, ids=lambda text: text[:30])
def test_a_pattern_that_occupies_a_gateway_has_a_fault(pattern: str, why: str) -> None:
    assert why in regex_fault(pattern)


def test_a_pattern_for_bodies_has_no_part_of_any_length() -> None:
    assert regex_fault(r"foo\d{1,8}", searches_bodies=True) == ""
    assert "since bodies are long" in regex_fault(r"^foo\d+x", searches_bodies=True)


@given(st.text(alphabet="a.*+?{}()[]^$|\\1d,:<>=!-P", max_size=40))
def test_any_text_has_a_verdict(pattern: str) -> None:
    assert isinstance(regex_fault(pattern), str)


@pytest.mark.parametrize("pattern", ["/api(.*)()", "/api(/|$)(.*)", "/a/([0-9]+)/(.*)/x"])
@pytest.mark.parametrize("replacement", ["$1", "$2$1", "/$2", "x"])
@pytest.mark.parametrize("generate", [rewrite, whole_rewrite])
def test_generated_pairs_for_rewritten_paths_are_permitted(
    pattern: str, replacement: str, generate: Callable[[str, str], list[str]]
) -> None:
    pairs = {"plugins": {"proxy-rewrite": {"regex_uri": generate(f"^{pattern}", replacement)}}}
    assert list(regex_faults(pairs)) == []
    costly = {"plugins": {"proxy-rewrite": {"regex_uri": generate(f"^{pattern}\\1", replacement)}}}
    assert list(regex_faults(costly)) != []


BAD = r"(a*)\1b"


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"vars": [["uri", "~~", BAD]]}, ["vars[0]"]),
        ({"vars": [["uri", "~~", BAD, "x", "^/a"]]}, ["vars[0]"]),
        ({"vars": [["OR", ["uri", "!", "~*", BAD], ["arg_a", "==", BAD]]]}, ["vars[0][1]"]),
        ({"plugins": {"uri-blocker": {"block_rules": ["^/ok", BAD]}}}, ["plugins.uri-blocker.block_rules[1]"]),
        ({"plugins": {"cors": {"_meta": {"filter": [["uri", "~~", BAD]]}}}}, ["plugins.cors._meta.filter[0]"]),
        (
            {"plugins": {"redirect": {"regex_uri": ["^/(.*)", "/$1"]}, "proxy-rewrite": {"regex_uri": [BAD, "/x"]}}},
            ["plugins.proxy-rewrite.regex_uri[0]"],
        ),
        (
            {"plugins": {"response-rewrite": {"filters": [{"regex": "a.*b", "replace": ""}]}}},
            ["plugins.response-rewrite.filters[0].regex"],
        ),
        (
            {"plugins": {"traffic-split": {"rules": [{"match": [{"vars": [["uri", "~~", BAD]]}]}]}}},
            ["plugins.traffic-split.rules[0].match[0].vars[0]"],
        ),
        (
            {"plugins": {"acl": {"external_user_label_field_separator": BAD}}},
            ["plugins.acl.external_user_label_field_separator"],
        ),
        ({"client": {"skip_mtls_uri_regex": ["^/a", BAD]}}, ["client.skip_mtls_uri_regex[1]"]),
        ({"plugins": {"multi-auth": {"auth_plugins": [{"key-auth": {}}]}}}, []),
    ],
)
def test_patterns_are_found_wherever_a_gateway_matches_them(body: dict[str, Any], where: list[str]) -> None:
    faults = faults_of("routes", body, Options(plugins="reviewed"))

    assert [dotted(fault.steps) for fault in faults if "regex_uri[1]" not in dotted(fault.steps)] == where
    assert faults_of("routes", {"vars": body.get("vars", [])}, Options()) == []


@pytest.mark.parametrize(
    ("pattern", "most"),
    [
        ("^/api/(.*)$", 100),
        (r"\.(jpg|png)$", 100),
        ("a.*[bc]", 64),
        (r"^/(.*)/(.*)$", 32),
        ("^/a{0,1000}a{0,1000}[bc]", 8),
        ("^(?:a*)*[bc]", 8),
    ],
)
def test_costly_patterns_of_a_record_are_limited_in_number(pattern: str, most: int) -> None:
    def faulty(number: int) -> list[str]:
        return [dotted(fault.steps) for fault in regex_faults({"vars": [["uri", "~~", pattern]] * number})]

    assert faulty(most) == []
    assert faulty(2 * most) == ([] if most == 100 else [f"vars[{most - 1}]"])
