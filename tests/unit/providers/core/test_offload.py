"""Large objects are translated in a thread while everything else continues; nothing can prevent their publication."""

import asyncio
import itertools
import random
import threading
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from trustme import CA

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.names import short_id, wide_id
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.runtime.clock import MonotonicClock
from apisix_ingress.runtime.tasks import cancel
from apisix_ingress.state.view import View
from apisix_ingress.state.world import World
from providers.core.deps import ChangeSink
from providers.core.offload import TRIES, is_large
from providers.core.registry import LARGE_OBJECTS, Registry, resources
from providers.route import RouteProvider
from providers.tls import TlsProvider
from tests.forging import forge
from tests.waiting import until
from translation.core.options import Options
from translation.core.outcome import Outcome

BOUND = 30.0
PADDING = "x" * 20_000


class OffloadHarness:
    """The real providers over a separate world."""

    def __init__(self, options: Options | None = None) -> None:
        options = options or Options()
        self.world = World(resources(options))
        self.registry = Registry(self.world, options, ChangeSink(), clock=MonotonicClock(), rng=random.Random(0))

    def put(self, kind: str, name: str, **fields: Any) -> None:
        meta = {"name": name, "namespace": "default", "uid": name, "resourceVersion": "1", "generation": 1}
        self.world.stores[kind].set(RESOURCES[kind].decode({"metadata": meta, **fields}))

    def put_service(self, port: int = 80) -> None:
        self.put("Service", "web", spec={"clusterIP": "10.96.0.1", "ports": [{"name": "http", "port": port}]})

    def put_route(self, name: str, padding: str = "", host: str = "") -> None:
        rule: JsonObject = {"name": "r", "match": {"paths": [f"/{name}"], **({"hosts": [host]} if host else {})}}
        rule["backends"] = [{"serviceName": "web", "servicePort": "http"}]
        rule["plugins"] = [{"name": "cors", "enable": True, "config": {"x": padding}}]
        self.put("ApisixRoute", name, spec={"http": [rule]})

    def put_secret(self, value: str) -> None:
        self.put("Secret", "values", data={"odd_name": b64encode(value.encode()).decode()})

    def upstreams(self, name: str) -> set[str]:
        """Return the names of the upstreams that a route claims, `none` for one that failed."""
        claims = self.world.claims.claims_of(ObjectKey("ApisixRoute", "default", name))
        return {str(claim.port) for claim in claims}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.registry.run())
        try:
            async with asyncio.timeout(BOUND):
                yield
        finally:
            await cancel(task)

    async def drained(self) -> None:
        await self.registry.drained()


@pytest.fixture
def harness() -> OffloadHarness:
    return OffloadHarness()


Noted = list[tuple[str, bool]]


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> Noted:
    """Return the routes that are translated, and whether that is on the event loop."""
    seen: Noted = []
    translate = RouteProvider.translate

    def note(self: RouteProvider, item: CustomObject, view: View) -> Outcome:
        seen.append((item.meta.name, threading.current_thread() is threading.main_thread()))
        return translate(self, item, view)

    monkeypatch.setattr(RouteProvider, "translate", note)
    return seen


def interrupting(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Run something on the event loop while a translation in a thread is about to return."""
    loop, translate = asyncio.get_running_loop(), RouteProvider.translate

    def slow(self: RouteProvider, item: CustomObject, view: View) -> Outcome:
        found = translate(self, item, view)
        if threading.current_thread() is not threading.main_thread():
            done = threading.Event()
            loop.call_soon_threadsafe(act)
            loop.call_soon_threadsafe(done.set)
            assert done.wait(BOUND)
        return found

    monkeypatch.setattr(RouteProvider, "translate", slow)


async def test_only_large_objects_are_translated_in_a_thread(harness: OffloadHarness, noted: Noted) -> None:
    harness.put_service()
    async with harness.running():
        harness.put_route("small")
        harness.put_route("large", PADDING)
        await harness.drained()
    assert sorted(noted) == [("large", False), ("small", True)]
    assert harness.upstreams("large") == harness.upstreams("small") != set()


@pytest.mark.parametrize("kind", ["ApisixConsumer", "ApisixRoute"])
async def test_large_objects_delay_no_other(
    harness: OffloadHarness, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    harness.put_service()
    loop, translate, seen = asyncio.get_running_loop(), RouteProvider.translate, list[bool]()
    other = ObjectKey(kind, "default", "other")

    def change() -> None:
        spec = {"authParameter": {"keyAuth": {"value": {"key": "a"}}}}
        harness.put_route("other") if kind == "ApisixRoute" else harness.put(kind, "other", spec=spec)

    def slow(self: RouteProvider, item: CustomObject, view: View) -> Outcome:
        if item.meta.name == "large" and not seen:
            done = threading.Event()

            def look() -> None:
                if other in harness.world.reports:
                    done.set()
                else:
                    loop.call_soon(look)

            loop.call_soon_threadsafe(change)
            loop.call_soon_threadsafe(look)
            seen.append(done.wait(BOUND / 2))
        return translate(self, item, view)

    monkeypatch.setattr(RouteProvider, "translate", slow)
    async with harness.running():
        for name in ("large", "large-2", "large-3"):  # more than the provider has workers
            harness.put_route(name, PADDING)
        await harness.drained()
    assert seen == [True]


async def test_large_certificates_are_translated_in_a_thread(
    harness: OffloadHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = list[bool]()
    translate = TlsProvider.translate

    def note(self: TlsProvider, item: CustomObject, view: View) -> Outcome:
        seen.append(threading.current_thread() is threading.main_thread())
        return translate(self, item, view)

    monkeypatch.setattr(TlsProvider, "translate", note)
    leaf = CA().issue_cert("*.a.test")
    pair = {"cert": leaf.cert_chain_pems[0].bytes(), "key": leaf.private_key_pem.bytes()}
    data = {name: b64encode(pem).decode() for name, pem in pair.items()}
    harness.put("Secret", "pair", data=data)
    secret = {"name": "pair", "namespace": "default"}
    async with harness.running():
        harness.put("ApisixTls", "large", spec={"hosts": [f"{n}.a.test" for n in range(1000)], "secret": secret})
        await harness.drained()
    assert seen == [False]


async def test_what_was_read_and_changed_meanwhile_is_read_again(
    harness: OffloadHarness, noted: Noted, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.put_service()
    interrupting(monkeypatch, lambda: harness.put_service(81))
    async with harness.running():
        harness.put_route("large", PADDING)
        await harness.drained()
        harness.put_route("small")
        await harness.drained()
    assert noted.count(("large", False)) >= 2
    assert harness.upstreams("large") == harness.upstreams("small")


async def test_constant_changes_delay_an_object_a_few_times_and_never_block_the_event_loop(
    harness: OffloadHarness, noted: Noted, monkeypatch: pytest.MonkeyPatch
) -> None:
    ports = itertools.count(80)
    harness.put_service(next(ports))
    published: list[int] = []

    def change() -> None:
        harness.put_service(next(ports))
        published.append(len(harness.upstreams("large")))

    interrupting(monkeypatch, change)
    async with harness.running():
        harness.put_route("large", PADDING)
        while len(published) < 5:  # noqa: ASYNC110  # what flaps is never drained
            await asyncio.sleep(0)
        assert published[:TRIES] == [0] * TRIES
        assert published[TRIES] == 1
        assert ("large", True) not in noted


async def test_what_is_deleted_meanwhile_is_not_published(
    harness: OffloadHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.put_service()
    key = ObjectKey("ApisixRoute", "default", "large")
    interrupting(monkeypatch, lambda: harness.world.stores["ApisixRoute"].delete(key))
    async with harness.running():
        harness.put_route("large", PADDING)
        await harness.drained()
        assert (harness.world.reports.get(key), harness.world.desired.of_owner(key)) == (None, {})
        assert not harness.world.dependents.reads_of(key)


async def test_ids_assigned_meanwhile_stay_with_their_names(
    harness: OffloadHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.put_service()
    harness.world.ids.settle()
    name = "default_large_r"
    twin = forge(name, "other_")
    given: list[str] = []
    interrupting(monkeypatch, lambda: given.append(harness.world.ids.id_of("routes", twin)))
    async with harness.running():
        harness.put_route("large", PADDING)
        await harness.drained()
    ids = {key.id for key in harness.world.desired.of_owner(ObjectKey("ApisixRoute", "default", "large"))}
    assert given[0] == short_id(name)
    assert ids == {wide_id(name)}


async def test_hosts_taken_meanwhile_stay_with_their_owners(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = OffloadHarness(Options(host_ownership="namespace"))
    harness.put_service()
    harness.world.host_holders.settle()
    rival = ObjectKey("ApisixRoute", "rival", "web")
    interrupting(monkeypatch, lambda: harness.world.host_holders.claim(rival, ["a.test"]))
    async with harness.running():
        harness.put_route("large", PADDING, host="a.test")
        await harness.drained()
    key = ObjectKey("ApisixRoute", "default", "large")
    assert not harness.world.desired.of_owner(key)
    assert [problem.code for problem in harness.world.reports[key].problems] == ["HostNotOwned"]


async def test_large_objects_that_wait_are_seen_in_their_queue(
    harness: OffloadHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.put_service()
    depths: list[int] = []
    interrupting(monkeypatch, lambda: depths.append(harness.registry.queues[LARGE_OBJECTS].depth))
    async with harness.running():
        harness.put_route("large", PADDING)
        harness.put_route("large-2", PADDING)
        await harness.drained()
    assert depths == [1, 0]


async def test_a_crash_in_a_thread_is_reported(harness: OffloadHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(self: RouteProvider, item: CustomObject, view: View) -> Outcome:
        raise RuntimeError("dictionary changed size during iteration")

    monkeypatch.setattr(RouteProvider, "translate", crash)
    key = ObjectKey("ApisixRoute", "default", "large")
    async with harness.running():
        harness.put_route("large", PADDING)
        await until(lambda: key in harness.world.reports, "a report")  # a failed object is never drained
    assert [problem.code for problem in harness.world.reports[key].problems] == ["InternalError"]


def test_an_object_is_large_by_its_encoded_size(harness: OffloadHarness) -> None:
    harness.put_route("small")
    harness.put_route("large", PADDING)
    harness.put_service()
    routes = harness.world.stores["ApisixRoute"]
    assert [is_large(routes.get(ObjectKey("ApisixRoute", "default", name))) for name in ("small", "large")] == [
        False,
        True,
    ]
    deep: Any = []
    for _ in range(300):
        deep = [deep]
    assert is_large(CustomObject(routes.values()[0].meta, {"x": deep}))
    assert not is_large(harness.world.stores["Service"].values()[0])
    assert not is_large(None)


@pytest.mark.parametrize("padding", ["", PADDING], ids=["small", "large"])
async def test_records_hold_the_version_of_a_secret_that_they_were_generated_from(padding: str) -> None:
    harness, key = OffloadHarness(), ObjectKey("ApisixRoute", "default", "a")
    harness.put_service()
    harness.put_secret("former")
    plugin = {"name": "echo", "enable": True, "config": {"x": padding}, "secretRef": "values"}
    rule = {"name": "r", "match": {"paths": ["/a"]}, "backends": [{"serviceName": "web", "servicePort": 80}]}
    harness.put("ApisixRoute", "a", spec={"http": [{**rule, "plugins": [plugin]}]})

    def values() -> set[bytes]:
        """Return the values that the records hold, which are those in their bodies."""
        records = harness.world.desired.of_owner(key).values()
        assert all(value.decode() in str(each.body) for each in records for value in each.secrets[0].data.values())
        return {value for each in records for secret in each.secrets for value in secret.data.values()}

    async with harness.running():
        await until(lambda: values() == {b"former"}, "the first translation")
        harness.put_secret("later")
        assert values() == {b"former"}
        await until(lambda: values() == {b"later"}, "the second translation")
