"""Hosts of ingress-nginx in queues: they take turns by the namespace of their oldest Ingress."""

from __future__ import annotations

import random
from typing import Any

from apisix_ingress.diagnostics.collect.offline import stored
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.state.world import World
from providers.core.deps import ChangeSink
from providers.core.registry import Registry
from tests.fakes.clock import FakeClock
from tests.unit.translation.nginx.objects import CLASS, OPTIONS, SERVICE, ingress
from translation.nginx.options import host_key


def in_namespace(item: dict[str, Any], namespace: str) -> Any:
    """Return an object moved to a namespace."""
    return RESOURCES[item["kind"]].decode({**item, "metadata": {**item["metadata"], "namespace": namespace}})


def registry_of(world: World) -> Registry:
    """Return a registry whose queues have every host."""
    return Registry(world, OPTIONS, ChangeSink(), clock=FakeClock(), rng=random.Random(1))


def world_of(*objects: Any) -> World:
    """Return a world with the class of ingress-nginx and some objects."""
    return stored([RESOURCES["IngressClass"].decode(CLASS), *objects], OPTIONS)


def test_hosts_take_turns_by_the_namespace_of_their_oldest_ingress() -> None:
    crowd = [in_namespace(ingress(f"web{n}", ("/", "Prefix"), host=f"{n}.crowd.test"), "crowd") for n in range(9)]
    single = in_namespace(ingress("web", ("/", "Prefix"), host="single.test"), "single")
    registry = registry_of(world_of())
    queue = registry.providers["NginxHost"].queue
    while (key := queue.take()) is not None:
        queue.done(key)
    for item in (*crowd, single):
        registry._world.stores["Ingress"].set(item)

    taken = [key.name for _ in range(3) if (key := queue.take())]

    assert "single.test" in taken


def test_records_of_a_host_are_written_in_the_turn_of_its_oldest_ingress() -> None:
    older = in_namespace(ingress("old", ("/a", "Prefix"), age=1), "first")
    newer = in_namespace(ingress("new", ("/b", "Prefix"), age=2), "second")
    world = world_of(in_namespace(SERVICE, "first"), newer, older)
    registry = registry_of(world)
    registry.enqueue(host_key("shop.test"))

    registry.settle()

    owned = world.desired.of_owner(host_key("shop.test"))
    assert owned
    assert {world.desired.namespace(key, "default") for key in owned} == {"first"}


def test_hosts_share_the_budget_of_their_namespace() -> None:
    items = [in_namespace(ingress(f"web{n}", ("/", "Prefix"), host=f"{n}.test"), "shop") for n in (1, 2)]
    other = in_namespace(ingress("web", ("/", "Prefix"), host="3.test"), "other")
    world = world_of(*items, other)
    registry = registry_of(world)
    world.budget.most = 1000
    hosts = ("1.test", "2.test", "3.test")
    for host in hosts:
        registry.enqueue(host_key(host))
        registry.settle()

    def served() -> list[str]:
        return [host for host in hosts if world.desired.of_owner(host_key(host))]

    assert served() == ["1.test", "3.test"]
    assert [problem.code for problem in world.reports[host_key("2.test")].problems] == ["TooLarge"]

    world.stores["Ingress"].delete(ObjectKey("Ingress", "shop", "web1"))
    registry.settle()
    assert served() == ["2.test", "3.test"]


def test_a_host_without_ingresses_is_forgotten() -> None:
    item = in_namespace(ingress("web", ("/", "Prefix")), "shop")
    world = world_of(item)
    registry = registry_of(world)
    registry.enqueue(host_key("shop.test"))
    registry.settle()

    world.stores["Ingress"].delete(ObjectKey("Ingress", "shop", "web"))
    registry.settle()

    assert not world.desired.of_owner(host_key("shop.test"))
    assert host_key("shop.test") not in world.desired._namespaces
    assert host_key("shop.test") not in world.budget._namespaces
