"""The contract between the fake API server and a real one.

Each case runs against `tests.fakes.kube.apiserver` and against the real server.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from apisix_ingress.errors import KubeConflict, KubeGone, KubeNotFound
from apisix_ingress.kube.client.api import KubeApi
from apisix_ingress.kube.informer.watch_events import WatchEvent, parse_event
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.kinds.resource import Resource
from e2e.cluster.client import KubeClient
from e2e.definitions.contract_kinds import CONFIG_MAPS, LATECOMERS, THINGS, definition
from tests.fakes.kube.apiserver import FakeApiServer, Kind

pytest_plugins = ["e2e.cluster.fixtures"]


@dataclass
class Ground:
    """A server to run a case against."""

    api: KubeApi
    namespace: str
    remove: Callable[[Resource, str], None]
    """Deletes an object; the product has no such function."""
    fake: FakeApiServer | None = None

    def path(self, resource: Resource, name: str = "", subresource: str = "") -> str:
        return resource.path(self.namespace, name, subresource)

    async def make(self, resource: Resource, name: str, **fields: Any) -> JsonObject:
        body = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": name, "namespace": self.namespace},
            **fields,
        }
        return await self.api.create(self.path(resource), body)

    async def watch(self, resource: Resource, version: str, seconds: int = 3) -> list[WatchEvent]:
        """Watch until the server closes the watch."""
        async with self.api.watch(self.path(resource), version=version, seconds=seconds, margin=10) as lines:
            return [parse_event(line, "case") async for line in lines]


@pytest.fixture
async def ground(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Ground]:
    if request.param == "fake":
        async with FakeApiServer() as server:
            server.install(Kind("Thing", THINGS.api_version, THINGS.plural))
            async with await KubeApi.connect(str(server.kubeconfig(tmp_path / "kubeconfig"))) as api:
                yield Ground(api, "ours", lambda kind, name: server.remove(kind.plural, name, "ours"), server)
        return
    cluster_api: KubeClient = request.getfixturevalue("api")
    cluster_api.apply(definition(THINGS))
    kubeconfig, namespace = request.getfixturevalue("kubeconfig"), request.getfixturevalue("namespace")

    def remove(kind: Resource, name: str) -> None:
        cluster_api.delete(kind.kind, name, namespace=namespace)

    async with await KubeApi.connect(str(kubeconfig)) as api:
        yield Ground(api, namespace, remove)


contract = pytest.mark.parametrize("ground", ["fake", "real"], indirect=True)


@contract
async def test_pages_make_one_list_of_one_version(ground: Ground) -> None:
    for number in range(5):
        await ground.make(CONFIG_MAPS, f"cm-{number}", data={"n": str(number)})
    path = ground.path(CONFIG_MAPS)
    pages = [await ground.api.page(path, limit=2)]
    await ground.make(CONFIG_MAPS, "late", data={})
    while pages[-1].more:
        pages.append(await ground.api.page(path, limit=2, more=pages[-1].more))
    names = [item["metadata"]["name"] for page in pages for item in page.items]
    assert [name for name in names if name.startswith("cm-")] == [f"cm-{number}" for number in range(5)]
    assert "late" not in names
    assert {page.version for page in pages} == {pages[0].version}
    assert not any("kind" in item for item in pages[0].items)


@contract
async def test_a_watch_replays_from_its_version(ground: Ground) -> None:
    first = await ground.make(THINGS, "a", spec={"n": 1})
    version = first["metadata"]["resourceVersion"]
    await ground.api.patch(ground.path(THINGS, "a"), {"spec": {"n": 2}})
    await ground.make(THINGS, "b", spec={})
    ground.remove(THINGS, "b")
    events = await ground.watch(THINGS, version, 2)
    got = [(event.type, event.item["metadata"].get("name")) for event in events]
    assert got == [("MODIFIED", "a"), ("ADDED", "b"), ("DELETED", "b")]
    assert events[0].item["metadata"]["generation"] == 2
    assert events[2].version != events[1].version


@contract
async def test_a_watch_that_saw_news_ends_with_a_bookmark(ground: Ground) -> None:
    version = (await ground.make(THINGS, "a", spec={}))["metadata"]["resourceVersion"]

    async def make_news() -> None:
        await asyncio.sleep(0.5)  # the watch is open by then; otherwise it replays the same events
        await ground.make(THINGS, "b", spec={})

    events, _ = await asyncio.gather(ground.watch(THINGS, version, 2 if ground.fake else 8), make_news())
    # The real one may send it more than once.
    assert list(dict.fromkeys(event.type for event in events)) == ["ADDED", "BOOKMARK"]
    assert set(events[-1].item["metadata"]) >= {"resourceVersion"}


@contract
async def test_an_expired_resource_version_is_gone(ground: Ground) -> None:
    await ground.make(THINGS, "a", spec={})
    if ground.fake is not None:
        ground.fake.compact()
    with pytest.raises(KubeGone):
        await ground.watch(THINGS, "1")


@contract
async def test_an_object_is_replaced_and_patched_only_as_the_version_that_was_read(ground: Ground) -> None:
    first = await ground.make(CONFIG_MAPS, "a", data={"x": "1", "y": "1"})
    path = ground.path(CONFIG_MAPS, "a")
    second = await ground.api.update(path, {**first, "data": {"x": "2", "y": "1"}})
    with pytest.raises(KubeConflict):
        await ground.api.update(path, first)
    with pytest.raises(KubeConflict):
        await ground.api.patch(path, {"metadata": {"resourceVersion": first["metadata"]["resourceVersion"]}})
    version = second["metadata"]["resourceVersion"]
    patch = {"metadata": {"resourceVersion": version}, "data": {"x": None, "z": "3"}}
    assert (await ground.api.patch(path, patch))["data"] == {"y": "1", "z": "3"}
    unchanged = await ground.api.patch(path, {"data": {"z": "3"}})
    third = await ground.api.get(path)
    assert unchanged["metadata"]["resourceVersion"] == third["metadata"]["resourceVersion"]
    with pytest.raises(KubeConflict):
        await ground.make(CONFIG_MAPS, "a")


@contract
async def test_fields_are_edited_if_the_tests_hold(ground: Ground) -> None:
    await ground.make(CONFIG_MAPS, "a", data={"x": "1", "y": "1"})
    path, add = ground.path(CONFIG_MAPS, "a"), {"op": "add", "path": "/data/y", "value": "2"}
    edited = await ground.api.edit(path, [{"op": "test", "path": "/data/x", "value": "1"}, add])
    assert edited["data"] == {"x": "1", "y": "2"}
    with pytest.raises(KubeConflict) as error:
        await ground.api.edit(path, [{"op": "test", "path": "/data/x", "value": "2"}, {**add, "value": "3"}])
    assert error.value.status == 422
    assert (await ground.api.get(path))["data"] == {"x": "1", "y": "2"}


@contract
async def test_status_and_spec_are_written_separately(ground: Ground) -> None:
    first = await ground.make(THINGS, "a", spec={"n": 1}, status={"ignored": True})
    assert "status" not in first
    patch = {"metadata": {"resourceVersion": first["metadata"]["resourceVersion"]}, "status": {"ok": True}}
    second = await ground.api.patch(ground.path(THINGS, "a", "status"), {**patch, "spec": {"n": 9}})
    assert (second["spec"], second["status"], second["metadata"]["generation"]) == ({"n": 1}, {"ok": True}, 1)
    third = await ground.api.patch(ground.path(THINGS, "a"), {"spec": {"n": 2}, "status": None})
    assert (third["spec"], third["status"], third["metadata"]["generation"]) == ({"n": 2}, {"ok": True}, 2)


@contract
async def test_absent_objects_and_kinds_are_not_found(ground: Ground) -> None:
    for path in (
        ground.path(CONFIG_MAPS, "none"),
        ground.path(LATECOMERS),
        ground.path(LATECOMERS, "none"),
        LATECOMERS.base_path,
    ):
        with pytest.raises(KubeNotFound):
            await ground.api.get(path)
    await ground.make(CONFIG_MAPS, "a")
    with pytest.raises(KubeNotFound):
        await ground.api.patch(ground.path(CONFIG_MAPS, "a", "status"), {"status": {}})
    assert await ground.api.discovery.serves(THINGS)
    assert not await ground.api.discovery.serves(LATECOMERS)
