"""The state of a host never depends on an object whose routes get no request."""

from __future__ import annotations

import random

import pytest

from tests.unit.apisix_ingress.statuspage.harness import PageHarness, make_harness, served
from tests.unit.translation.objects import make, rule, service, slice_of

HOSTS = ("a.test", "b.test", "*.a.test", "x.a.test")
PATHS = ("/*", "/a", "/a/*", "/a*", "/b")


def objects(seed: random.Random) -> list[dict[str, object]]:
    return [_route(seed, number) for number in range(6)]


def _route(seed: random.Random, number: int) -> dict[str, object]:
    match: dict[str, object] = {
        "hosts": seed.sample(HOSTS, seed.choice((1, 2))),
        "paths": seed.sample(PATHS, seed.choice((1, 2))),
    }
    if seed.random() < 0.4:
        match["methods"] = seed.choice((["GET"], ["POST"]))
    if seed.random() < 0.3:
        match["exprs"] = [{"subject": {"scope": "Header", "name": "X"}, "op": "Equal", "value": "1"}]
    backends = [{"serviceName": seed.choice(("web", "empty")), "servicePort": 80}]
    spec = {"http": [rule(match=match, backends=backends, priority=seed.choice((0, 1, 2)))]}
    return make("ApisixRoute", f"r{number}", spec=spec)


def page(routes: list[dict[str, object]]) -> PageHarness:
    return make_harness(service(), service("empty"), slice_of([{"addresses": ["10.0.0.7"]}]), *routes)


@pytest.mark.parametrize("seed", range(25))
async def test_an_object_without_requests_changes_no_state(seed: int) -> None:
    routes = objects(random.Random(seed))
    async with served(page(routes)) as harness:
        hosts = {each["host"]: each["summary"] for each in (await harness.data("hosts"))["items"]}
        unused = {each["owner"]["name"] for each in (await harness.data("records", state="not-used"))["items"]}
    left = [each for each in routes if each["metadata"]["name"] not in unused]  # type: ignore[index]
    async with served(page(left)) as harness:
        assert {each["host"]: each["summary"] for each in (await harness.data("hosts"))["items"]} == {
            host: summary for host, summary in hosts.items() if summary != "not used"
        }
