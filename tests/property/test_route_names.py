"""Names of routes: an edit adds and deletes routes, but moves none to other requests, whatever was there before.

Between two writes, requests that lost their route would reach one with a shorter path, without the guard.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from tests.unit.translation.gateway.objects import CLASS, gateway, route, rule
from tests.unit.translation.nginx.objects import COMPACT, ingress, translated
from tests.unit.translation.objects import service
from tests.unit.translation.settling import bodies, settle

Bodies = Mapping[str, Mapping[str, Any]]
"""By id."""

ANNOTATIONS = {
    "whitelist_source_range": "10.0.0.0/8",
    "denylist_source_range": "10.1.0.0/16",
    "enable_cors": "true",
    "cors_allow_origin": "https://a.test",
    "limit_rps": "5",
    "auth_url": "http://auth.test/",
    "satisfy": "any",
    "affinity": "cookie",
    "force_ssl_redirect": "true",
    "app_root": "/app",
    "permanent_redirect": "https://new.test/",
    "custom_http_errors": "404",
    "proxy_body_size": "1m",
}


def moved(before: Bodies, after: Bodies) -> Iterator[tuple[object, object]]:
    """Yield what each route matches before and after an edit, if that differs."""
    for key in before.keys() & after.keys():
        if "uris" in before[key] and (old := matched(before[key])) != (new := matched(after[key])):
            yield old, new


def matched(body: Mapping[str, Any]) -> list[object]:
    """Return the paths, methods and conditions of a route, without lists such as those of addresses."""
    conditions = [[part for part in each if not isinstance(part, list)] for each in body.get("vars", ())]
    return [body["uris"], body.get("methods"), conditions]


def served(annotations: Sequence[str]) -> Bodies:
    given: dict[str, Any] = {name: ANNOTATIONS[name] for name in annotations}
    got = translated(ingress("web", ("/", "Prefix"), ("/a", "Prefix"), **given), options=COMPACT)
    return {record.key.id: record.body for record in got.records}


@pytest.mark.parametrize("seed", range(50))
def test_an_edit_of_annotations_moves_no_route_of_ingress_nginx(seed: int) -> None:
    rng = random.Random(seed)
    before, after = (served(rng.sample(sorted(ANNOTATIONS), rng.randint(0, 6))) for _ in range(2))

    assert [*moved(before, after)] == []


MATCHES = [
    {"path": {"type": "PathPrefix", "value": "/a"}},
    {"path": {"type": "PathPrefix", "value": "/b"}},
    {"path": {"type": "PathPrefix", "value": "/b"}, "method": "GET"},
    {"path": {"type": "RegularExpression", "value": "/a.*"}},
    {"headers": [{"name": "X-A", "value": "1"}]},
    {"headers": [{"name": "X-B", "value": "1"}]},
]


@pytest.mark.parametrize("seed", range(20))
def test_an_edit_of_rules_moves_no_route_of_an_http_route(seed: int) -> None:
    rng = random.Random(seed)
    versions = [rng.choices(MATCHES, k=rng.randint(1, 6)) for _ in range(2)]

    found = [
        settle(CLASS, gateway(), service(), route(*(rule(matches=[each]) for each in rules))) for rules in versions
    ]

    assert [*moved(bodies(found[0]), bodies(found[1]))] == []
