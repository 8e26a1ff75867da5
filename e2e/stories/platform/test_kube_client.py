"""The API client, reflectors, elector and status writer on a real API server, and the fake one held against it.

The first part is a contract: each case runs against `tests.fakes.kube.apiserver` and against the real server.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from apisix_ingress.errors import KubeConflict, KubeForbidden, KubeGone, KubeNotFound
from apisix_ingress.kube.client.api import KubeApi
from apisix_ingress.kube.election.elector import LeaderElector
from apisix_ingress.kube.election.interface import LeaseOptions
from apisix_ingress.kube.informer.reflector import Reflector
from apisix_ingress.kube.informer.watch_events import ReflectorOptions, WatchEvent, parse_event
from apisix_ingress.kube.status.events import EventRecorder
from apisix_ingress.kube.status.writer import StatusWriter
from apisix_ingress.model.condition import aborted, synced
from apisix_ingress.model.decoders import decode_config_map, decode_custom
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.resource import Resource
from apisix_ingress.model.kinds.table import CUSTOM_GROUP, RESOURCES
from apisix_ingress.runtime.clock import MonotonicClock
from apisix_ingress.runtime.term import Term
from apisix_ingress.state.store import Store
from e2e.cluster.client import KubeClient
from e2e.cluster.local import LocalCluster
from tests.fakes.kube.apiserver import FakeApiServer, Kind
from tests.fakes.kube.status import Wanted

pytest_plugins = ["e2e.cluster.fixtures"]

WAIT_SECONDS = 40.0
CONFIG_MAPS = Resource("ConfigMap", "", "v1", "configmaps", decode_config_map)
THINGS = Resource("Thing", "contract.example.com", "v1", "things", partial(decode_custom, kind="Thing"), optional=True)
LATECOMERS = Resource(
    "Latecomer", "late.example.com", "v1", "latecomers", partial(decode_custom, kind="Latecomer"), optional=True
)
OURS = Resource(
    "ContractThing",
    CUSTOM_GROUP,
    "v1",
    "contractthings",
    partial(decode_custom, kind="ContractThing"),
    status="conditions",
)


def definition(resource: Resource) -> dict[str, Any]:
    """Return a CRD with a status subresource and no schema to speak of."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema, "status": schema}}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced",
            "names": {"kind": resource.kind, "plural": resource.plural, "singular": resource.kind.lower()},
            "versions": [version],
        },
    }


@dataclass
class Ground:
    """A server to run a case on."""

    api: KubeApi
    namespace: str
    remove: Callable[[Resource, str], None]
    """Deletes an object, which the product never does."""
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
        """Watch until the server ends it."""
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
    # The real one may say it more than once.
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
async def test_status_and_spec_are_written_apart(ground: Ground) -> None:
    first = await ground.make(THINGS, "a", spec={"n": 1}, status={"ignored": True})
    assert "status" not in first
    patch = {"metadata": {"resourceVersion": first["metadata"]["resourceVersion"]}, "status": {"ok": True}}
    second = await ground.api.patch(ground.path(THINGS, "a", "status"), {**patch, "spec": {"n": 9}})
    assert (second["spec"], second["status"], second["metadata"]["generation"]) == ({"n": 1}, {"ok": True}, 1)
    third = await ground.api.patch(ground.path(THINGS, "a"), {"spec": {"n": 2}, "status": None})
    assert (third["spec"], third["status"], third["metadata"]["generation"]) == ({"n": 2}, {"ok": True}, 2)


@contract
async def test_what_is_not_there_is_not_found(ground: Ground) -> None:
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


# On the real server alone.


@contextlib.asynccontextmanager
async def running(*jobs: Any) -> AsyncIterator[list["asyncio.Task[None]"]]:
    tasks = [asyncio.create_task(job) for job in jobs]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def until(condition: Callable[[], bool], what: str) -> None:
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            while not condition():  # noqa: ASYNC110  # what is waited for has no event to wait on
                await asyncio.sleep(0.02)
    except TimeoutError:
        pytest.fail(f"never came: {what}")


def reflect(resource: Resource, api: KubeApi, **options: Any) -> tuple[Reflector, Store[Any]]:
    store: Store[Any] = Store(resource.kind, lambda read: None)
    made = Reflector(
        resource, store, api, clock=MonotonicClock(), rng=random.Random(), options=ReflectorOptions(**options)
    )
    return made, store


def names(store: Store[Any], namespace: str) -> set[str]:
    return {item.meta.name for item in store.values() if item.meta.namespace == namespace}


@pytest.fixture
async def client(kubeconfig: Path) -> AsyncIterator[KubeApi]:
    async with await KubeApi.connect(str(kubeconfig)) as made:
        yield made


def config_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}}


async def test_a_store_follows_the_api_server_over_its_death(
    local_cluster: LocalCluster, api: KubeClient, client: KubeApi, namespace: str
) -> None:
    for number in range(5):
        api.create(config_map(f"cm-{number}"), namespace=namespace)
    reflector, store = reflect(CONFIG_MAPS, client, page_size=3, backoff_cap=1.0)

    def mine() -> set[str]:
        return {name for name in names(store, namespace) if name.startswith("cm-")}

    async with running(reflector.run()):
        await asyncio.wait_for(reflector.synced.wait(), WAIT_SECONDS)
        assert mine() == {f"cm-{number}" for number in range(5)}
        api.delete("ConfigMap", "cm-0", namespace=namespace)
        await until(lambda: "cm-0" not in mine(), "the delete")
        await asyncio.to_thread(local_cluster.kill_apiserver)
        await until(lambda: reflector.problem != "", "the outage")
        await asyncio.to_thread(local_cluster.start_apiserver)
        api.delete("ConfigMap", "cm-1", namespace=namespace)
        api.create(config_map("cm-9"), namespace=namespace)
        await until(lambda: mine() == {"cm-2", "cm-3", "cm-4", "cm-9"}, "the changes made meanwhile")


async def test_a_crd_is_picked_up_when_it_is_installed_and_its_removal_noticed(
    api: KubeClient, client: KubeApi, namespace: str
) -> None:
    reflector, store = reflect(LATECOMERS, client, absent_poll=0.2)
    async with running(reflector.run()):
        await asyncio.wait_for(reflector.synced.wait(), WAIT_SECONDS)
        assert reflector.absent
        await asyncio.to_thread(api.apply, definition(LATECOMERS))
        body = {"apiVersion": LATECOMERS.api_version, "kind": "Latecomer", "metadata": {"name": "a"}, "spec": {}}
        await asyncio.to_thread(api.create, body, namespace=namespace)
        await until(lambda: names(store, namespace) == {"a"}, "the object")
        api.delete("CustomResourceDefinition", "latecomers.late.example.com")
        await until(lambda: len(store) == 0 and reflector.absent, "the end of the kind")


async def test_a_missing_permission_names_itself(local_cluster: LocalCluster, api: KubeClient, namespace: str) -> None:
    api.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "poor"}}, namespace=namespace)
    kubeconfig = local_cluster.kubeconfig_for(api.account_token("poor", namespace=namespace), "poor")
    async with await KubeApi.connect(str(kubeconfig)) as poor:
        with pytest.raises(KubeForbidden):
            await poor.page("/api/v1/secrets", limit=1)
        reflector, store = reflect(RESOURCES["Secret"], poor)
        async with running(reflector.run()):
            await until(lambda: reflector.problem != "", "the refusal")
            assert reflector.problem.startswith("listing secrets is forbidden: grant list, watch on secrets")
            assert not store.synced
    nobody = local_cluster.kubeconfig_for("not-a-token", "nobody")
    async with await KubeApi.connect(str(nobody)) as refused:
        with pytest.raises(KubeForbidden) as error:
            await refused.get("/api/v1/namespaces")
        assert error.value.status == 401


async def test_a_lease_is_created_handed_over_and_counted(client: KubeApi, namespace: str, api: KubeClient) -> None:
    leads = {name: asyncio.Event() for name in ("one", "two")}

    def elector(name: str) -> LeaderElector:
        options = LeaseOptions("leader", namespace, name, lease_duration=3.0, renew_deadline=2.0, retry_period=0.3)
        return LeaderElector(client, options, clock=MonotonicClock(), rng=random.Random())

    async def work(name: str, term: Term) -> None:
        leads[name].set()
        await asyncio.Event().wait()

    async with running(elector("one").lead(partial(work, "one"))) as [one]:
        await asyncio.wait_for(leads["one"].wait(), WAIT_SECONDS)
        async with running(elector("two").lead(partial(work, "two"))):
            await asyncio.sleep(1)  # three attempts of the follower
            assert not leads["two"].is_set()
            one.cancel()
            await asyncio.wait_for(leads["two"].wait(), WAIT_SECONDS)
            spec = api.get("Lease", "leader", namespace=namespace)["spec"]
            got = {name: spec[name] for name in ("holderIdentity", "leaseDurationSeconds", "leaseTransitions")}
            assert got == {"holderIdentity": "two", "leaseDurationSeconds": 3, "leaseTransitions": 1}
    released = api.get("Lease", "leader", namespace=namespace)["spec"]
    assert released.get("holderIdentity", "") == ""


async def test_a_condition_and_its_event_are_written(client: KubeApi, namespace: str, api: KubeClient) -> None:
    kind, resource = OURS.kind, OURS
    api.apply(definition(resource))
    body = {"apiVersion": resource.api_version, "kind": kind, "metadata": {"name": "a"}, "spec": {}}
    api.create(body, namespace=namespace)
    reflector, store = reflect(resource, client)
    key = ObjectKey(kind, namespace, "a")
    clock, rng = MonotonicClock(), random.Random()
    term = Term(clock, holder="tester")
    wanted = Wanted({key: synced(1)})
    recorder = EventRecorder(client, clock=clock, rng=rng, resources={kind: resource})
    writer = StatusWriter(
        client, {kind: store}, wanted, clock=clock, rng=rng, recorder=recorder, resources={kind: resource}
    )

    def condition() -> dict[str, Any]:
        found: list[dict[str, Any]] = api.get(kind, "a", namespace=namespace).get("status", {}).get("conditions", [{}])
        return found[0]

    async with running(reflector.run(), writer.run(term), recorder.run(term)):
        await until(lambda: store.get(key) is not None, "the object")
        writer.wake(key)
        await until(lambda: condition().get("status") == "True", "the condition")
        theirs = {"type": "Theirs", "status": "True"}
        path = resource.path(namespace, "a", "status")
        await client.patch(path, {"status": {"conditions": [condition(), theirs]}}, manager="another")
        wanted.conditions[key] = aborted(1, "x" * 3000)
        writer.wake(key)
        await until(lambda: condition().get("status") == "False", "the other condition")
        assert len(condition()["message"]) == 1024
        assert api.get(kind, "a", namespace=namespace)["status"]["conditions"][1] == theirs
        await until(lambda: len(api.events("a", namespace=namespace)) == 2, "two Events")
        reasons = {event["reason"] for event in api.events("a", namespace=namespace)}
        assert reasons == {"ResourcesSynced", "ResourceSyncAborted"}
