"""Places of patterns: the order of ingress-nginx, and numbers that other paths do not change."""

from __future__ import annotations

import pytest

from translation.nginx.places import HIGHEST, places
from translation.nginx.servers import Location
from translation.plugins.pattern_errors import plain_start


def numbers(*paths: str) -> dict[str, int]:
    locations = [Location(path, "Prefix") for path in sorted(sorted(paths, reverse=True), key=len, reverse=True)]
    found = places(locations, exact_first=False)
    assert all(0 <= number < HIGHEST for number in found)
    return {location.path: number for location, number in zip(locations, found, strict=True)}


def test_longer_paths_come_first_and_overlapping_ones_of_one_length_by_their_text() -> None:
    got = numbers("/a", "/a(.*)", "/a(.+)", "/[a-z]", "/longer/x")

    assert sorted(got, key=lambda path: -got[path]) == ["/longer/x", "/a(.+)", "/a(.*)", "/[a-z]", "/a"]


def test_a_path_that_overlaps_no_other_one_changes_no_number() -> None:
    old = numbers("/one(/|$)(.*)", "/two(/|$)(.*)")

    assert numbers("/one(/|$)(.*)", "/two(/|$)(.*)", "/six(/|$)(.*)").items() >= old.items()


@pytest.mark.parametrize(
    ("pattern", "start"),
    [("/API/v1", "/api/v1"), ("/ab?c", "/a"), ("/a{2}", "/"), ("/a(b|c)", "/a"), ("/a|/b", ""), ("/a.b", "/a")],
)
def test_the_plain_start_of_a_pattern_is_what_each_match_begins_with(pattern: str, start: str) -> None:
    assert plain_start(pattern) == start
