"""Label selectors: parsing, matching, and error messages."""

import pytest

from apisix_ingress.model.formats.selector import SelectorError, parse_selector


@pytest.mark.parametrize(
    ("text", "labels", "want"),
    [
        ("", {}, True),
        ("  ", {"a": "b"}, True),
        ("a=b", {"a": "b"}, True),
        ("a==b", {"a": "b"}, True),
        (" a = b ", {"a": "b"}, True),
        ("a=b", {"a": "c"}, False),
        ("a=b", {}, False),
        ("a=", {"a": ""}, True),
        ("a=", {}, False),
        ("c!=d", {"c": "d"}, False),
        ("c!=d", {"c": "x"}, True),
        ("c!=d", {}, True),
        ("e in (x,y)", {"e": "y"}, True),
        ("e in ( x , y )", {"e": "x"}, True),
        ("e in(x)", {"e": "x"}, True),
        ("e in (x,y)", {"e": "z"}, False),
        ("e in (x,y)", {}, False),
        ("e notin (x,y)", {"e": "x"}, False),
        ("e notin (x,y)", {"e": "z"}, True),
        ("e notin (x,y)", {}, True),
        ("f", {"f": ""}, True),
        ("f", {}, False),
        ("!f", {"f": "x"}, False),
        ("! f", {}, True),
        ("example.com/team=a", {"example.com/team": "a"}, True),
        ("a=b,c!=d,e in (x,y),!f", {"a": "b", "e": "x"}, True),
        ("a=b,c!=d,e in (x,y),!f", {"a": "b", "e": "x", "f": "1"}, False),
        ("a=b,a!=c", {"a": "b"}, True),
        ("in=notin", {"in": "notin"}, True),
    ],
)
def test_selector_matches_as_kubernetes_does(text: str, labels: dict[str, str], want: bool) -> None:
    assert parse_selector(text).matches(labels) is want


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a=b,", "a comma stands"),
        (",", "a comma stands"),
        ("a=b,,c", "a comma stands"),
        ("=b", "not a label key"),
        ("a b", "not a label key"),
        ("-a=b", "not a label key"),
        ("a=b=c", "not a label key"),
        ("e in (x,y", "not a label key"),
        ("Example.com/a=b", "not a label key"),
        ("/a=b", "not a label key"),
        ("a>5", "not a label key"),
        ("!", "not a label key"),
        ("a=-b", "not a label value"),
        ("a in (b c)", "not a label value"),
        ("a=" + "x" * 64, "not a label value"),
        ("x" * 64, "not a label key"),
    ],
)
def test_invalid_selectors_are_rejected_with_the_wrong_part(text: str, words: str) -> None:
    with pytest.raises(SelectorError, match=words):
        parse_selector(text)


def test_selector_is_shown_so_that_it_parses_to_itself() -> None:
    selector = parse_selector("a=b, c!=d,e in (y,x),e notin (z),g,!f")
    assert str(selector) == "a in (b),c notin (d),e in (x,y),e notin (z),g,!f"
    assert parse_selector(str(selector)) == selector
