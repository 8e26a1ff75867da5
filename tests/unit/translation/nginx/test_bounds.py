"""The work for a host of ingress-nginx is linear in its Ingresses and their paths."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from apisix_ingress.state import store
from tests.unit.translation.nginx.objects import SERVICE, ingress, translated
from translation.nginx import sources
from translation.nginx.sources import Source

NEXT = {**SERVICE, "metadata": {"name": "next", "namespace": "shop"}}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the paths of Ingresses that are read, and the Ingresses that are looked up and interpreted."""
    seen: Counter[str] = Counter()
    paths, source_of, key = Source.paths, sources.source_of, store._key

    def counted_paths(self: Source, host: str) -> object:
        found = tuple(paths(self, host))
        seen["paths"] += len(found)
        return found

    def counted_source(*args: object) -> object:
        seen["sources"] += 1
        return source_of(*args)  # type: ignore[arg-type]

    def counted_key(*args: object) -> object:
        seen["lookups"] += 1
        return key(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "_key", counted_key)
    monkeypatch.setattr(Source, "paths", counted_paths)
    monkeypatch.setattr(sources, "source_of", counted_source)
    monkeypatch.setattr(sources, "MOST", 8)
    return seen


def work(calls: Counter[str], count: int, shape: str) -> Counter[str]:
    calls.clear()
    paths = [(f"/{number}", "Exact") for number in range(count)]
    if shape == "paths":
        canary = ingress("canary", *paths, service="next", age=2, canary="true", canary_weight="10")
        translated(ingress("main", *paths), canary, NEXT)
    elif shape == "canaries":
        hosts = [f"h{number}.test" for number in range(count)]
        mains = [ingress(f"main-{host}", ("/", "Prefix"), host=host) for host in hosts]
        given = {"service": "next", "canary": "true", "canary_weight": "10"}
        places = enumerate(hosts)
        every = [ingress(f"next-{host}", ("/", "Prefix"), host=host, age=age, **given) for age, host in places]
        translated(*mains, *every, NEXT)
    elif shape in ("hosts", "sticky hosts"):
        # Created in the same second, like manifests without a time; all have one Service.
        sticky: dict[str, Any] = {"affinity": "cookie"} if shape == "sticky hosts" else {}
        translated(
            *(ingress(f"main-{path[1:]}", ("/", "Prefix"), host=f"h{path[1:]}.test", **sticky) for path, _ in paths)
        )
    else:
        translated(*(ingress(f"main-{path[1:]}", (path, kind)) for path, kind in paths))
    return Counter(calls)


@pytest.mark.parametrize("shape", ["paths", "ingresses", "canaries", "hosts"])
def test_twice_as_much_takes_twice_the_work(calls: Counter[str], shape: str) -> None:
    few, many = work(calls, 20, shape), work(calls, 40, shape)

    assert all(many[what] <= 2.2 * few[what] for what in many)


def test_a_host_interprets_few_of_the_ingresses_with_affinity_of_its_service(calls: Counter[str]) -> None:
    few, many = work(calls, 20, "sticky hosts"), work(calls, 40, "sticky hosts")

    assert many["sources"] <= 2.2 * few["sources"]
