"""Reflectors against an API server over HTTP that does everything an API server was ever seen to do."""

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from apisix_ingress.kube.api import KubeApi
from apisix_ingress.kube.reflector import Reflector
from apisix_ingress.kube.watching import ReflectorOptions
from apisix_ingress.model.keys import ObjectKey, Read
from apisix_ingress.model.resources import RESOURCES, Resource
from apisix_ingress.runtime.clock import MonotonicClock
from apisix_ingress.state.store import Store
from tests.fakes import apiserver
from tests.fakes.apiserver import FakeApiServer, Fault, Kind, Manifest, error_event

QUICK = ReflectorOptions(
    page_size=10,
    watch_shortest=1.0,
    watch_longest=1.0,
    watch_margin=0.5,
    backoff_base=0.01,
    backoff_cap=0.05,
    absent_poll=0.02,
    hold_seconds=0.02,
    silent_watches=1000,
    yield_every=5,
)
WAIT_SECONDS = 15.0


class Notes:
    """An observer that writes everything down."""

    def __init__(self) -> None:
        self.lists: list[int] = []
        self.changes: list[str] = []
        self.failures: list[str] = []
        self.holds: list[int] = []
        self.undecodables = 0

    def listed(self, kind: str, objects: int, seconds: float) -> None:
        self.lists.append(objects)

    def changed(self, kind: str, operation: str) -> None:
        self.changes.append(operation)

    def undecodable(self, kind: str) -> None:
        self.undecodables += 1

    def failed(self, kind: str, reason: str) -> None:
        self.failures.append(reason)

    def held(self, kind: str, objects: int) -> None:
        self.holds.append(objects)


class Bench:
    """A server, a store and the reflector between them."""

    def __init__(
        self, server: FakeApiServer, api: KubeApi, resource: Resource, options: ReflectorOptions, clock: MonotonicClock
    ) -> None:
        self.server = server
        self.api = api
        self.reads: list[Read] = []
        self.notes = Notes()
        self.plural = resource.plural
        self.store: Store[Any] = Store(resource.kind, self.reads.append)
        self.reflector = Reflector(
            resource,
            self.store,
            api,
            clock=clock,
            rng=random.Random(1),
            options=options,
            observer=self.notes,
        )

    def names(self) -> set[str]:
        return {item.meta.name for item in self.store.values()}

    def get(self, name: str) -> Any:
        return self.store.get(ObjectKey(self.store.kind, "default", name))

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for a condition; the bound only ends a test that would never end."""
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                while not condition():  # noqa: ASYNC110  # what is waited for has no event to wait on
                    await asyncio.sleep(0.002)
        except TimeoutError:
            pytest.fail(f"never came: {what}; names {sorted(self.names())[:5]}, problem {self.reflector.problem!r}")

    async def until_names(self, *names: str) -> None:
        await self.until(lambda: self.names() == set(names), f"names {names}")

    async def until_watching(self) -> None:
        await self.until(lambda: self.server.watching(self.plural) > 0, "a watch")


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer() as running:
        yield running


@contextlib.asynccontextmanager
async def reflecting(
    server: FakeApiServer,
    tmp_path: Path,
    kind: str = "ApisixRoute",
    options: ReflectorOptions = QUICK,
    only: ObjectKey | None = None,
    clock: MonotonicClock | None = None,
) -> AsyncIterator[Bench]:
    async with await KubeApi.connect(str(server.kubeconfig(tmp_path / "kubeconfig"))) as api:
        bench = Bench(server, api, replace(RESOURCES[kind], only=only), options, clock or MonotonicClock())
        task = asyncio.create_task(bench.reflector.run())
        try:
            yield bench
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


def route(name: str, **spec: Any) -> Manifest:
    return {
        "kind": "ApisixRoute",
        "apiVersion": "apisix.apache.org/v2",
        "metadata": {"name": name},
        "spec": spec or {"http": []},
    }


NESTED = "NESTED"
"""Stands in for a value that a Python server could not write."""


@pytest.fixture
def spell(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return what makes the server write that many levels in place of NESTED, in lists and in events."""

    def spell(levels: int) -> None:
        mark, nested, event = json.dumps(NESTED), "[" * levels + "]" * levels, apiserver._event

        def respond(data: object, **options: Any) -> web.Response:
            text = json.dumps(data).replace(mark, nested)
            return web.Response(text=text, content_type="application/json", **options)

        def announce(type: str, item: Manifest) -> bytes:
            return event(type, item).replace(mark.encode(), nested.encode())

        monkeypatch.setattr(web, "json_response", respond)
        monkeypatch.setattr(apiserver, "_event", announce)

    return spell


def put_routes(server: FakeApiServer, count: int) -> set[str]:
    return {server.put(route(f"r{number:03}"))["metadata"]["name"] for number in range(count)}


async def test_all_pages_are_read_before_the_store_is_synced(server: FakeApiServer, tmp_path: Path) -> None:
    want = put_routes(server, 35)
    async with reflecting(server, tmp_path) as bench:
        await bench.reflector.synced.wait()
        assert bench.names() == want
        assert bench.store.synced
    assert server.count("list", "apisixroutes") == 4


async def test_of_a_restricted_kind_one_object_is_asked_for(server: FakeApiServer, tmp_path: Path) -> None:
    only = ObjectKey("ApisixRoute", "default", "a")
    async with reflecting(server, tmp_path, only=only) as bench:
        await bench.until_watching()
    asked = {(seen.verb, seen.path, seen.query.get("fieldSelector")) for seen in server.seen if seen.plural}
    path = "/apis/apisix.apache.org/v2/namespaces/default/apisixroutes"
    assert asked == {("list", path, "metadata.name=a"), ("watch", path, "metadata.name=a")}


async def test_changes_reach_the_store_and_equal_ones_stay_silent(server: FakeApiServer, tmp_path: Path) -> None:
    server.put(route("a"))
    async with reflecting(server, tmp_path) as bench:
        await bench.until_watching()
        server.put(route("b"))
        await bench.until_names("a", "b")
        server.put(route("a", http=[{"name": "x"}]))
        await bench.until(lambda: bench.get("a").spec == {"http": [{"name": "x"}]}, "the new spec")
        bench.reads.clear()
        server.put({**route("a", http=[{"name": "x"}]), "status": {"seen": True}})
        server.remove("apisixroutes", "b")
        await bench.until_names("a")
        assert bench.reads == [ObjectKey("ApisixRoute", "default", "b")]
        assert bench.notes.changes == ["add", "add", "update", "delete"]


async def test_a_watch_that_ends_goes_on_without_a_list(server: FakeApiServer, tmp_path: Path) -> None:
    async with reflecting(server, tmp_path) as bench:
        for number in range(4):
            await bench.until_watching()
            server.order(bench.plural, "end" if number % 2 else "cut")
            await bench.until(lambda: not server.watching(bench.plural), "the end of the watch")
            server.put(route(f"r{number}"))
        await bench.until_names("r0", "r1", "r2", "r3")
    assert server.count("list", "apisixroutes") == 1


async def test_a_cut_in_the_middle_of_an_event_loses_nothing(server: FakeApiServer, tmp_path: Path) -> None:
    async with reflecting(server, tmp_path) as bench:
        await bench.until_watching()
        server.order(bench.plural, b'{"type":"ADDED","object":{"metadata":{"name":"half')
        server.order(bench.plural, "cut")
        server.put(route("whole"))
        await bench.until_names("whole")
    assert server.count("list", "apisixroutes") == 1


async def test_garbage_and_unknown_events_are_survived(server: FakeApiServer, tmp_path: Path) -> None:
    async with reflecting(server, tmp_path) as bench:
        begun = 0
        for number, line in enumerate((b"<html>\n", b"[]\n", b'{"type":"NEWS","object":{}}\n', b"{}\n", b"\xff\n")):
            # The server may not have noticed yet that the last watch was left: what it is told then reaches nobody.
            await bench.until(lambda n=begun: server.count("watch", bench.plural) > n, "a new watch")  # type: ignore[misc]
            server.order(bench.plural, line)
            await bench.until(lambda n=number: len(bench.notes.failures) > n, "a failure")  # type: ignore[misc]
            begun = server.count("watch", bench.plural)
            server.put(route(f"r{number}"))
        await bench.until_names("r0", "r1", "r2", "r3", "r4")


async def test_an_event_of_several_megabytes_arrives_whole(server: FakeApiServer, tmp_path: Path) -> None:
    async with reflecting(server, tmp_path) as bench:
        await bench.until_watching()
        server.put(route("big", text="<" * 6_000_000))
        await bench.until_names("big")
        assert len(bench.store.values()[0].spec["text"]) == 6_000_000


@pytest.mark.parametrize("way", ["stream", "status", "twice"])
async def test_after_410_deletes_made_meanwhile_are_found(server: FakeApiServer, tmp_path: Path, way: str) -> None:
    put_routes(server, 5)
    async with reflecting(server, tmp_path) as bench:
        await bench.until_watching()
        server.forget("apisixroutes", "r001")
        server.compact()
        if way == "twice":
            server.faults.append(Fault("watch", "apisixroutes", status=410, times=2))
        server.order(bench.plural, error_event(410) if way == "stream" else "end")
        await bench.until_names("r000", "r002", "r003", "r004")
        await bench.until_watching()
    assert bench.notes.failures.count("gone") == (2 if way == "twice" else 1)
    assert len(bench.notes.lists) == 1 + bench.notes.failures.count("gone")


async def test_a_list_that_expires_between_pages_begins_anew(server: FakeApiServer, tmp_path: Path) -> None:
    want = put_routes(server, 25)
    third = Fault("list", "apisixroutes", status=410, when=lambda seen: "continue" in seen.query, times=1)
    server.faults.append(third)
    async with reflecting(server, tmp_path) as bench:
        await bench.reflector.synced.wait()
        assert bench.names() == want
        assert bench.notes.lists == [25]


async def test_a_half_open_watch_is_given_up_and_nothing_is_lost(server: FakeApiServer, tmp_path: Path) -> None:
    async with reflecting(server, tmp_path) as bench:
        await bench.until_watching()
        server.order(bench.plural, "stall")
        server.put(route("late"))
        await bench.until_names("late")
        assert bench.notes.failures == ["unavailable"]
    assert server.count("list", "apisixroutes") == 1


def test_no_silence_can_last_longer_than_75_seconds() -> None:
    options = ReflectorOptions()
    assert options.watch_longest + options.watch_margin + options.backoff_base <= 75


@pytest.mark.parametrize(
    "fault",
    [
        Fault("watch", status=429, retry_after="0", times=3),
        Fault("watch", status=500, times=3),
        Fault("watch", status=502, body="<html>bad gateway</html>", times=3),
        Fault("watch", status=200, body="", times=3),
        Fault("watch", status=200, body="<html>log in</html>\n", times=2),
        Fault("watch", cut=True, times=3),
    ],
    ids=["429", "500", "502 HTML", "empty 200", "HTML 200", "cut"],
)
async def test_a_watch_that_fails_is_tried_again_without_a_list(
    server: FakeApiServer, tmp_path: Path, fault: Fault
) -> None:
    server.put(route("a"))
    server.faults.append(fault)
    async with reflecting(server, tmp_path) as bench:
        await bench.until_watching()
        server.put(route("b"))
        await bench.until_names("a", "b")
    assert server.count("list", "apisixroutes") == 1


@pytest.mark.parametrize(
    "fault",
    [
        Fault("list", status=200, body="<html></html>", times=2),
        Fault("list", status=200, body='{"items": []}', times=2),
        Fault("list", status=200, body='{"metadata": {"resourceVersion": "7"}}', times=2),
        Fault("list", status=200, body='{"metadata": {"resourceVersion": "7"}, "items": {}}', times=2),
        Fault("list", status=429, times=2),
        Fault("list", status=500, when=lambda seen: "continue" in seen.query, times=2),
        Fault("list", cut=True, when=lambda seen: "continue" in seen.query, times=2),
    ],
    ids=["HTML", "no version", "no items", "items no list", "429", "second page 500", "second page cut"],
)
async def test_what_is_no_whole_list_is_never_acted_upon(server: FakeApiServer, tmp_path: Path, fault: Fault) -> None:
    want = put_routes(server, 15)
    async with reflecting(server, tmp_path) as bench:
        await bench.until_watching()
        server.compact()
        server.put(route("r000", http=[]))
        server.faults.append(fault)
        server.version += 1
        server.compact()
        server.order(bench.plural, "end")
        await bench.until(lambda: len(bench.notes.lists) == 2, "a second list")
        assert bench.names() == want
        assert "delete" not in bench.notes.changes


async def test_one_empty_list_empties_nothing_and_two_do(server: FakeApiServer, tmp_path: Path) -> None:
    want = put_routes(server, 40)
    empty = Fault("list", status=200, body='{"metadata": {"resourceVersion": "9000"}, "items": []}', times=1)
    async with reflecting(server, tmp_path) as bench:
        await bench.until_watching()
        server.faults.append(empty)
        server.order(bench.plural, error_event(410))
        await bench.until(lambda: len(bench.notes.lists) == 3, "the list that clears the suspicion")
        assert (bench.names(), bench.notes.holds) == (want, [40, 0])
        assert "delete" not in bench.notes.changes
        await bench.until_watching()
        for name in want:
            server.forget("apisixroutes", name)
        server.order(bench.plural, error_event(410))
        await bench.until_names()
        assert bench.notes.holds == [40, 0, 40, 0]


async def test_an_empty_list_of_a_few_objects_has_to_come_twice_too(server: FakeApiServer, tmp_path: Path) -> None:
    want = put_routes(server, 3)
    empty = Fault("list", status=200, body='{"metadata": {"resourceVersion": "9000"}, "items": []}', times=1)
    async with reflecting(server, tmp_path) as bench:
        await bench.until_watching()
        server.faults.append(empty)
        server.order(bench.plural, error_event(410))
        await bench.until(lambda: len(bench.notes.lists) == 3, "two more lists")
        assert (bench.names(), bench.notes.holds) == (want, [3, 0])
        await bench.until_watching()
        for name in want:
            server.forget(bench.plural, name)
        server.order(bench.plural, error_event(410))
        await bench.until_names()
        assert bench.notes.holds == [3, 0, 3, 0]


async def test_few_missing_objects_are_deleted_at_once(server: FakeApiServer, tmp_path: Path) -> None:
    put_routes(server, 40)
    async with reflecting(server, tmp_path) as bench:
        await bench.until_watching()
        for number in range(20):
            server.forget("apisixroutes", f"r{number:03}")
        server.order(bench.plural, error_event(410))
        await bench.until(lambda: len(bench.store) == 20, "20 objects")
        assert bench.notes.holds == []


async def test_an_object_that_cannot_be_read_harms_only_itself(server: FakeApiServer, tmp_path: Path) -> None:
    def secret(name: str, value: str) -> Manifest:
        return {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": name}, "data": {"key": value}}

    server.put(secret("bad", "not base64!"))
    server.put(secret("good", "b2s="))
    async with reflecting(server, tmp_path, "Secret") as bench:
        await bench.reflector.synced.wait()
        assert bench.names() == {"good"}
        await bench.until_watching()
        server.put(secret("good", "broken!"))
        server.put(secret("next", "b2s="))
        await bench.until_names("good", "next")
        assert bench.get("good").data == {"key": b"ok"}
        server.order(bench.plural, error_event(410))
        await bench.until(lambda: len(bench.notes.lists) == 2, "a second list")
        assert bench.names() == {"good", "next"}
        assert bench.notes.undecodables == 2
        server.put(secret("bad", "b2s="))
        await bench.until_names("bad", "good", "next")


@pytest.mark.parametrize("levels", [250, 1_100, 9_000])
async def test_an_object_that_is_nested_too_deep_harms_only_itself(
    server: FakeApiServer, tmp_path: Path, levels: int, spell: Callable[[int], None]
) -> None:
    spell(levels)
    server.put(route("deep", http=[{"plugins": [{"config": NESTED}]}]))
    server.put(route("good"))
    with capture_logs() as logs:
        async with reflecting(server, tmp_path) as bench:
            await bench.reflector.synced.wait()
            assert bench.names() == {"good"}
            await bench.until_watching()
            server.put(route("good", http=[{"plugins": [{"config": NESTED}]}]))
            server.put(route("next"))
            await bench.until_names("good", "next")
            assert (bench.get("good").spec, bench.notes.failures) == ({"http": []}, [])
            server.put(route("deep"))
            await bench.until_names("deep", "good", "next")
            server.remove("apisixroutes", "good")
            await bench.until_names("deep", "next")
    got = [(line["object"], line["error"]) for line in logs if line["event"] == "object.undecodable"]
    reason = "ValueError: nested deeper than 200 levels"
    assert got == [("ApisixRoute default/deep", reason), ("ApisixRoute default/good", reason)]


async def test_a_kind_that_is_missing_counts_as_synced_and_is_picked_up(server: FakeApiServer, tmp_path: Path) -> None:
    kind = server.uninstall("apisixroutes")
    async with reflecting(server, tmp_path) as bench:
        await bench.reflector.synced.wait()
        assert (bench.reflector.absent, bench.store.synced) == (True, True)
        assert "apisix.apache.org/v2 apisixroutes" in bench.reflector.problem
        server.install(kind)
        server.put(route("a"))
        await bench.until_names("a")
        await bench.until_watching()
        assert (bench.reflector.absent, bench.reflector.problem) == (False, "")


async def test_a_core_kind_that_is_missing_is_never_synced(server: FakeApiServer, tmp_path: Path) -> None:
    server.uninstall("endpointslices")
    async with reflecting(server, tmp_path, "EndpointSlice") as bench:
        await bench.until(lambda: bench.notes.failures.count("absent") >= 3, "some looks")
        assert not bench.reflector.synced.is_set()


async def test_one_404_empties_nothing(server: FakeApiServer, tmp_path: Path) -> None:
    want = put_routes(server, 3)
    async with reflecting(server, tmp_path) as bench:
        await bench.until_watching()
        server.faults.append(Fault("watch", "apisixroutes", status=404, times=1))
        server.faults.append(Fault("list", "apisixroutes", status=404, times=1))
        server.order(bench.plural, "end")
        await bench.until(lambda: len(bench.notes.lists) == 2, "a second list")
        assert (bench.names(), bench.reflector.absent) == (want, False)
        assert "delete" not in bench.notes.changes


async def test_a_kind_that_is_removed_is_emptied_and_comes_back(server: FakeApiServer, tmp_path: Path) -> None:
    put_routes(server, 3)
    async with reflecting(server, tmp_path) as bench:
        await bench.until_watching()
        kind = server.uninstall("apisixroutes")
        server.order(bench.plural, "end")
        await bench.until(lambda: bench.reflector.absent, "the absence")
        assert bench.names() == set()
        server.install(kind)
        server.put(route("again"))
        await bench.until_names("again")


@pytest.mark.parametrize("version", ["v1beta1", "v1"])
async def test_of_several_versions_the_one_that_is_served_is_read(
    server: FakeApiServer, tmp_path: Path, version: str
) -> None:
    def grant(name: str, version: str) -> Manifest:
        api_version = f"gateway.networking.k8s.io/{version}"
        return {"kind": "ReferenceGrant", "apiVersion": api_version, "metadata": {"name": name}, "spec": {}}

    def kind(version: str) -> Kind:
        return Kind("ReferenceGrant", f"gateway.networking.k8s.io/{version}", "referencegrants")

    server.install(kind(version))
    server.put(grant("a", version))
    async with reflecting(server, tmp_path, "ReferenceGrant") as bench:
        await bench.until_names("a")
        await bench.until_watching()
        assert (bench.reflector.resource.version, bench.reflector.problem) == (version, "")
        other = {"v1": "v1beta1", "v1beta1": "v1"}[version]
        server.kinds["referencegrants"] = kind(other)
        server.order(bench.plural, error_event(410))
        await bench.until(lambda: bench.reflector.resource.version == other, "the other version")
        server.put(grant("b", other))
        await bench.until_names("a", "b")
        assert "delete" not in bench.notes.changes


async def test_a_permission_that_is_missing_is_named_and_its_return_noticed(
    server: FakeApiServer, tmp_path: Path
) -> None:
    server.put({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "a"}, "data": {}})
    forbidden = Fault("*", "secrets", status=403)
    server.faults.append(forbidden)
    async with reflecting(server, tmp_path, "Secret") as bench:
        await bench.until(lambda: "forbidden" in bench.notes.failures, "a refusal")
        assert bench.reflector.problem.startswith("listing secrets is forbidden: grant list, watch on secrets")
        assert not bench.reflector.synced.is_set()
        server.faults.remove(forbidden)
        await bench.until_names("a")
        await bench.until_watching()
        assert bench.reflector.problem == ""
        server.faults.append(forbidden)
        server.order("secrets", error_event(410))
        await bench.until(lambda: bench.reflector.problem.startswith("listing secrets"), "a refusal")
        assert (bench.names(), bench.store.synced) == ({"a"}, True)


async def test_an_api_server_that_goes_and_comes_is_caught_up_with(server: FakeApiServer, tmp_path: Path) -> None:
    put_routes(server, 3)
    async with reflecting(server, tmp_path) as bench:
        await bench.until_watching()
        await server.stop()
        await bench.until(lambda: len(bench.notes.failures) >= 3, "some failures")
        server.remove("apisixroutes", "r001")
        server.put(route("new"))
        assert "can't connect" in bench.reflector.problem
        await server.start()
        await bench.until_names("r000", "r002", "new")
    assert server.count("list", "apisixroutes") == 1


class NoPatience(MonotonicClock):
    """A clock on which long waits have no end."""

    async def sleep(self, seconds: float) -> None:
        await (asyncio.Event().wait() if seconds > 0.3 else super().sleep(seconds))


async def test_any_answer_ends_the_wait_for_an_api_server_that_was_away(server: FakeApiServer, tmp_path: Path) -> None:
    put_routes(server, 3)
    options = replace(QUICK, backoff_base=0.3, backoff_cap=100.0)
    async with reflecting(server, tmp_path, options=options, clock=NoPatience()) as bench:
        await bench.until_watching()
        await server.stop()
        await bench.until(lambda: len(bench.notes.failures) >= 2, "the long wait")
        server.put(route("new"))
        await server.start()
        await bench.api.page("/api/v1/secrets", limit=1)
        await bench.until_names("new", "r000", "r001", "r002")


async def test_a_first_410_is_not_slowed_down_by_failures_of_another_sort(
    server: FakeApiServer, tmp_path: Path
) -> None:
    want = put_routes(server, 3)
    server.faults += [Fault("watch", status=500, times=1), Fault("watch", status=410, times=1)]
    options = replace(QUICK, backoff_base=0.3, backoff_cap=100.0)
    async with reflecting(server, tmp_path, options=options, clock=NoPatience()) as bench:
        await bench.until(lambda: len(bench.notes.lists) == 2, "a second list")
        assert (bench.names(), bench.notes.failures) == (want, ["unavailable", "gone"])


async def test_an_api_server_that_went_back_in_time_is_listed_anew(server: FakeApiServer, tmp_path: Path) -> None:
    put_routes(server, 3)
    async with reflecting(server, tmp_path, options=replace(QUICK, silent_watches=2)) as bench:
        await bench.until_watching()
        server.forget("apisixroutes", "r001")
        server.roll_back(500)
        server.order(bench.plural, "stall")
        await bench.until_names("r000", "r002")
        assert "rolled_back" in bench.notes.failures


async def test_replayed_events_end_in_the_same_state(server: FakeApiServer, tmp_path: Path) -> None:
    async with reflecting(server, tmp_path) as bench:
        await bench.until_watching()
        server.put(route("a", step=1))
        server.put(route("a", step=2))
        server.put(route("b"))
        server.remove("apisixroutes", "b")
        await bench.until_names("a")
        for watch in server._watches:
            for change in server._changes:
                watch.orders.put_nowait(change)
        server.put(route("end"))
        await bench.until_names("a", "end")
        assert bench.get("a").spec == {"step": 2}


async def test_the_age_of_a_watch_starts_over_with_every_word(server: FakeApiServer, tmp_path: Path) -> None:
    async with reflecting(server, tmp_path) as bench:
        await bench.until_watching()
        await bench.until(lambda: bench.reflector.age() > 0.05, "some age")
        before = bench.reflector.age()
        server.order(bench.plural, "bookmark")
        await bench.until(lambda: bench.reflector.age() < before, "a younger age")
