"""How uris with stars match, as lua-resty-radixtree reads them, and the work that hostile ones take."""

from __future__ import annotations

import pytest

from apisix_ingress.explain import routing
from apisix_ingress.explain.patterns import RouteFacts, uri_level
from apisix_ingress.explain.request import ProbeRequest
from tests.steps import steps


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("/a/*/c", "/a/b/c", True),
        ("/a/*/c", "/a/b/b/c", True),
        ("/a/*/c", "/a/c", False),
        ("/a/*/c/", "/a/b/c/", True),
        ("/a/*/c/", "/a/b/c", False),
        ("/a/*/c/*", "/a/x/c/y/z", True),
        # What follows a star in its segment is a name.
        ("/a/*id/c", "/a/x/c", True),
        ("/****Z", "/shop", True),
        # A star inside a segment cuts the uri.
        ("/a*b", "/axc", True),
        ("/a*b", "/b", False),
        # With another star, such a segment is a regular expression.
        ("/a*b/*", "/aaab/x", True),
        ("/a*b/*", "/axb/x", False),
        ("/v[1/*x/y", "/v[1/x/y", False),
        # A colon only matters next to a star.
        ("/*/:id", "/a/b", True),
        ("/:id/*/c", "/:id/b/c", True),
    ],
)
def test_a_uri_with_stars_matches_like_the_gateway(pattern: str, path: str, fits: bool) -> None:
    assert (uri_level(pattern, path) is not None) == fits


@pytest.mark.parametrize("segment", ["*", "/*", "/*a", "/**", "/a*", "*/:b"])
def test_the_work_for_a_uri_does_not_depend_on_the_number_of_its_stars(segment: str) -> None:
    def work(stars: int) -> int:
        pattern, path = f"/{segment * stars}/Z", "/products" * 100
        return steps(lambda: uri_level(pattern, path))

    few, many = work(10), work(100)
    assert many <= 10 * few + 1000


def test_the_paths_of_other_hosts_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []

    def level(pattern: str, path: str) -> None:
        compared.append(pattern)

    monkeypatch.setattr(routing, "uri_level", level)
    routes = [
        RouteFacts("a", {"host": "evil.example", "uri": "/**"}),
        RouteFacts("b", {"host": "shop.org", "uri": "/x"}),
    ]
    routing.choose(ProbeRequest("GET", "http", "shop.org", "/"), routes)
    assert compared == ["/x"]
