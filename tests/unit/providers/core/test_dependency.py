"""Changes of Namespaces and Pods: the watch callback is short, and their owners are queued in batches."""

import asyncio
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from apisix_ingress.model.formats.selector import parse_selector
from apisix_ingress.model.keys import IndexKey, ObjectKey, Read
from apisix_ingress.runtime.queue.workqueue import WorkQueue
from apisix_ingress.runtime.tasks import cancel
from providers.core.dependency import BATCH, DependencyProvider
from providers.core.registry import Registry
from tests.factories import make_key, make_namespace, make_pod, make_service
from tests.unit.providers.harness import ProviderHarness, make_route
from translation.core.options import Options

OURS, OTHERS = make_namespace(labels={"team": "a"}), make_namespace(labels={"team": "b"})


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> ProviderHarness:
    return ProviderHarness(monkeypatch, Options(namespace_selector=parse_selector("team=a")))


def queue_of(loop: ProviderHarness, kind: str) -> WorkQueue[Read]:
    return loop.registry.queues[kind]


def dependency(loop: ProviderHarness, kind: str) -> DependencyProvider:
    (found,) = (each for each in loop.registry.all() if isinstance(each, DependencyProvider) and each.kind == kind)
    return found


def read_by_services(loop: ProviderHarness, read: ObjectKey | IndexKey, count: int) -> list[ObjectKey]:
    owners = [make_key(f"web-{number}", kind="Service") for number in range(count)]
    loop.settle(*(make_service(owner.name) for owner in owners))
    for owner in owners:
        loop.world.dependents.record(owner, [read])
    return owners


def test_watch_callback_adds_one_key_however_many_owners_there_are(loop: ProviderHarness) -> None:
    loop.settle(OURS, *(make_route(f"r{number}") for number in range(250)))
    loop.put(OTHERS)
    assert (queue_of(loop, "Namespace").depth, queue_of(loop, "ApisixRoute").depth) == (1, 0)
    loop.registry.settle()
    assert loop.world.reports == {}


def test_an_unread_object_has_no_cost(loop: ProviderHarness) -> None:
    loop.put(make_namespace("other"), make_pod())
    assert (queue_of(loop, "Namespace").depth, queue_of(loop, "Pod").depth) == (0, 0)


async def test_other_tasks_get_their_turn_between_batches(loop: ProviderHarness) -> None:
    pod = make_pod()
    read_by_services(loop, pod.meta.key, 3 * BATCH)
    running = asyncio.create_task(dependency(loop, "Pod").run())
    loop.put(pod)
    depths = []
    for _ in range(20):
        await asyncio.sleep(0)
        depths.append(len(loop.services.queue))
    await cancel(running)
    assert sorted({*depths}) == [0, BATCH, 2 * BATCH, 3 * BATCH]


async def test_drained_waits_until_all_owners_were_translated(loop: ProviderHarness) -> None:
    loop.put(OURS, *(make_route(f"r{number}", records={f"r{number}": "/"}) for number in range(2 * BATCH)))
    running = asyncio.create_task(loop.registry.run())
    await loop.registry.drained()
    assert len(loop.wanted) == 2 * BATCH
    loop.put(OTHERS)
    await loop.registry.drained()
    assert loop.wanted == {}
    loop.registry.shut_down()
    await running


@pytest.mark.parametrize(("live", "want"), [(False, "other"), (True, "web-0")])
async def test_owners_of_a_pod_go_ahead_once_live(loop: ProviderHarness, live: bool, want: str) -> None:
    pod = make_pod()
    loop.world.dependents.record(make_key("web-0", kind="Service"), [pod.meta.key])
    if live:
        await loop.registry.drained()
    loop.put(make_service("other"), pod)
    await dependency(loop, "Pod").handle(pod.meta.key)
    got = loop.services.queue.take()
    assert got is not None
    assert got.name == want


async def test_owner_is_queued_since_the_change_was_seen(loop: ProviderHarness) -> None:
    pod, queue = make_pod(), loop.services.queue
    (owner,) = read_by_services(loop, pod.meta.key, 1)
    loop.put(pod)
    seen = loop.clock.monotonic()
    assert queue_of(loop, "Pod").take() == pod.meta.key
    loop.clock.shift(3.0)
    await dependency(loop, "Pod").handle(pod.meta.key)
    assert (queue.take(), queue.dirty_since(owner)) == (owner, seen)


def test_deleted_owners_are_queued_last(loop: ProviderHarness) -> None:
    pod = make_pod()
    gone, there = read_by_services(loop, pod.meta.key, 2)
    loop.world.stores["Service"].delete(gone)
    assert loop.services.queue.take() == gone
    loop.services.queue.done(gone)
    dependency(loop, "Pod").settle_one(pod.meta.key)
    assert [loop.services.queue.take(), loop.services.queue.take()] == [there, gone]


def test_a_change_of_an_address_queues_its_readers(loop: ProviderHarness) -> None:
    address = IndexKey("Pod", "address", "10.0.0.9")
    (owner,) = read_by_services(loop, address, 1)
    loop.put(replace(make_pod(), addresses=("10.0.0.9",)))
    assert queue_of(loop, "Pod").take() == address
    dependency(loop, "Pod").settle_one(address)
    assert loop.services.queue.take() == owner


async def test_a_failure_is_logged_and_retried(loop: ProviderHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    pod = make_pod()
    read_by_services(loop, pod.meta.key, 1)
    calls: list[ObjectKey] = []
    real = Registry.enqueue

    def enqueue(registry: Registry, owner: ObjectKey, *, urgent: bool = False, since: float | None = None) -> None:
        calls.append(owner)
        if len(calls) == 1:
            raise ZeroDivisionError
        real(registry, owner, urgent=urgent, since=since)

    monkeypatch.setattr(Registry, "enqueue", enqueue)
    loop.put(pod)
    running = asyncio.create_task(dependency(loop, "Pod").run())
    with capture_logs() as logs:
        await loop.clock.settle()
    assert [(log["event"], log["read"]) for log in logs] == [("dependents.wake_failed", "Pod default/web-0")]
    await loop.clock.advance(1.0)
    await cancel(running)
    assert len(calls) == 2
