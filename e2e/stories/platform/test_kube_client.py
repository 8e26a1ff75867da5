"""The API client, reflectors, elector and status writer against a real API server."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from apisix_ingress.errors import KubeForbidden
from apisix_ingress.kube.client.api import KubeApi
from apisix_ingress.kube.election.elector import LeaderElector
from apisix_ingress.kube.election.interface import LeaseOptions
from apisix_ingress.kube.informer.reflector import Reflector
from apisix_ingress.kube.informer.watch_events import ReflectorOptions
from apisix_ingress.kube.status.events import EventRecorder
from apisix_ingress.kube.status.writer import StatusWriter
from apisix_ingress.model.condition import aborted, synced
from apisix_ingress.model.decoders import decode_custom
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.resource import Resource
from apisix_ingress.model.kinds.table import CUSTOM_GROUP, RESOURCES
from apisix_ingress.runtime.clock import MonotonicClock
from apisix_ingress.runtime.term import Term
from apisix_ingress.state.store import Store
from e2e.cluster.client import KubeClient
from e2e.cluster.local import LocalCluster
from e2e.definitions.contract_kinds import CONFIG_MAPS, LATECOMERS, definition
from tests.fakes.kube.status import Wanted

pytest_plugins = ["e2e.cluster.fixtures"]

WAIT_SECONDS = 40.0
OURS = Resource(
    "ContractThing",
    CUSTOM_GROUP,
    "v1",
    "contractthings",
    partial(decode_custom, kind="ContractThing"),
    status="conditions",
)


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


async def test_a_store_recovers_after_the_api_server_is_killed(
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


async def test_a_crd_is_detected_when_it_is_installed_and_removed(
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


async def test_a_missing_permission_is_reported_by_name(
    local_cluster: LocalCluster, api: KubeClient, namespace: str
) -> None:
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
