"""Objects that are read by name while translations refer to them: which of them, and how many."""

import asyncio
from typing import Any

import pytest

from apisix_ingress.kube.informer import referenced
from apisix_ingress.kube.informer.referenced import ReferencedObjects
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.objects import Meta, Secret
from apisix_ingress.state.world import World
from tests.factories import make_key

WEB, API = make_key("web"), make_key("api")


class Reading:
    """A reflector that lists nothing until a test sets it."""

    def __init__(self, resource: Any, part: Any, *, collections: int) -> None:
        self.synced = asyncio.Event()
        self.part, self.only = part, resource.only
        self.is_running = False

    async def run(self) -> None:
        self.is_running = True
        try:
            await asyncio.Event().wait()
        finally:
            self.is_running = False


def secret(name: str, namespace: str = "default") -> ObjectKey:
    return ObjectKey("Secret", namespace, name)


def following(*namespaces: str) -> tuple[World, ReferencedObjects]:
    world = World(RESOURCES.values())
    return world, ReferencedObjects(RESOURCES["Secret"], world, namespaces, Reading)  # type: ignore[arg-type]


def test_a_secret_is_read_from_its_first_to_its_last_reference() -> None:
    world, objects = following()
    world.dependents.record(WEB, [secret("a"), make_key("other")])
    world.dependents.record(API, [secret("a"), secret("b")])
    assert list(objects.reflectors) == [secret("a"), secret("b")]
    world.dependents.record(WEB, [])
    assert list(objects.reflectors) == [secret("a"), secret("b")]
    world.stores["Secret"].set(Secret(Meta("Secret", "default", "a")))
    world.dependents.record(API, [secret("b")])
    assert (list(objects.reflectors), world.stores["Secret"].keys()) == ([secret("b")], ())


@pytest.mark.parametrize(
    "key",
    [
        secret("a,metadata.name!=b"),
        secret("A"),
        secret(""),
        secret("a\n"),
        secret("a" * 254),
        secret("a", "../../x"),
        secret("a", ""),
        secret("a", "elsewhere"),
    ],
    ids=str,
)
def test_names_that_no_readable_secret_can_have_are_not_requested(key: ObjectKey) -> None:
    world, objects = following("default")
    world.dependents.record(WEB, [key])
    world.dependents.record(WEB, [])
    assert objects.reflectors == {}


def test_a_namespace_has_a_limited_number_of_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(referenced, "LARGEST_NAMESPACE", 2)
    world, objects = following()
    world.dependents.record(WEB, [secret(name) for name in "abcd"])
    world.dependents.record(API, [secret("a", "elsewhere")])
    assert list(objects.reflectors) == [secret("a"), secret("b"), secret("a", "elsewhere")]
    world.dependents.record(WEB, [secret(name) for name in "bd"])
    assert list(objects.reflectors) == [secret("b"), secret("a", "elsewhere"), secret("d")]


async def test_each_object_is_watched_from_the_moment_of_its_reference() -> None:
    world, objects = following()
    world.dependents.record(WEB, [secret("early")])
    async with asyncio.TaskGroup() as group:
        task = group.create_task(objects.run())
        await asyncio.sleep(0)
        world.dependents.record(API, [secret("late")])
        running: Any = dict(objects.reflectors)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert [each.is_running for each in running.values()] == [True, True]
        world.dependents.record(API, [])
        await asyncio.sleep(0)
        assert [each.is_running for each in running.values()] == [True, False]
        task.cancel()


async def test_waiting_ends_when_every_referenced_object_was_listed_or_is_not_needed_any_more() -> None:
    world, objects = following()
    assert not await objects.loaded()
    world.dependents.record(WEB, [secret("a")])
    world.dependents.record(API, [secret("b")])
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(objects.loaded())
        await asyncio.sleep(0)
        objects.reflectors[secret("a")].synced.set()
        await asyncio.sleep(0)
        assert not waiting.done()
        world.dependents.record(API, [])
    assert waiting.result()
    assert not await objects.loaded()


def test_a_part_of_a_store_is_one_object() -> None:
    world, objects = following()
    world.dependents.record(WEB, [secret("a")])
    reflector: Any = objects.reflectors[secret("a")]
    part, store = reflector.part, world.stores["Secret"]
    store.set(Secret(Meta("Secret", "default", "b")))
    assert (reflector.only, part.keys(), part.synced) == (secret("a"), (), False)
    part.set(Secret(Meta("Secret", "default", "a")))
    part.synced = True
    assert (part.keys(), part.synced, store.synced) == ((secret("a"),), True, True)
