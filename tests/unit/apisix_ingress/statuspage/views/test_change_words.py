"""Changes of records are described by their differences."""

from typing import Any

import pytest

from apisix_ingress.model.records import comparable
from apisix_ingress.statuspage.views.change_words import MOST_WORDS, change_words


def node(host: str, weight: int = 1) -> dict[str, Any]:
    return {"host": host, "port": 80, "weight": weight}


def words(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return change_words(comparable("routes", before), comparable("routes", after))


@pytest.mark.parametrize(
    ("before", "after", "want"),
    [
        (
            {"nodes": [node("10.0.0.1"), node("10.0.0.2")]},
            {"nodes": [node("10.0.0.1"), node("10.0.0.2"), node("10.0.0.3")]},
            ["nodes 2 → 3: 10.0.0.3:80 added"],
        ),
        ({"nodes": [node("10.0.0.1")]}, {"nodes": []}, ["nodes 1 → 0: 10.0.0.1:80 removed"]),
        ({"nodes": [node("10.0.0.1")]}, {"nodes": [node("10.0.0.1", 5)]}, ["nodes 1 → 1: weights changed"]),
        (
            {"nodes": [node("10.0.0.1")]},
            {"nodes": [node("10.0.0.2")]},
            ["nodes 1 → 1: 10.0.0.2:80 added; 10.0.0.1:80 removed"],
        ),
        ({"uri": "/a"}, {"uris": ["/a", "/x"]}, ["path /x added"]),
        ({"hosts": ["a", "b"]}, {"host": "a"}, ["host b removed"]),
        (
            {"snis": ["a"], "cert": "1"},
            {"snis": ["a", "b"], "cert": "2"},
            ["server name b added", "certificate changed"],
        ),
        (
            {"plugins": {"cors": {"a": 1}, "gone": {}}},
            {"plugins": {"cors": {"a": "secret"}, "limit-count": {}}},
            ["plugin limit-count added", "plugin gone removed", "plugin cors changed"],
        ),
        ({"priority": 1}, {"priority": 10, "vars": [["a", "==", "b"]]}, ["priority 1 → 10", "conditions changed"]),
        ({"status": 1}, {}, ["status 1 → none"]),
        ({"enable_websocket": True}, {}, ["enable_websocket true → none"]),
        ({"name": "a", "desc": "b"}, {"name": "c", "desc": "d"}, []),
    ],
)
def test_a_difference_is_described(before: dict[str, Any], after: dict[str, Any], want: list[str]) -> None:
    assert words(before, after) == want


def test_long_lists_and_names_are_cut() -> None:
    many = words({}, {"uris": [f"/{number}" for number in range(9)]})
    assert many == [*(f"path /{number} added" for number in range(5)), "path and 4 more added"]
    assert words({}, {"host": "x" * 500}) == [f"host {'x' * 100}… added"]
    assert len(words({}, {f"field{number}": 1 for number in range(50)})) == MOST_WORDS + 1


@pytest.mark.parametrize(("before", "after"), [(b"", b'{"uri":"/a"}'), (b'{"uri":"/a"}', b""), (b"\0", b"[]")])
def test_an_unknown_body_is_not_described(before: bytes, after: bytes) -> None:
    assert change_words(before, after) == []
