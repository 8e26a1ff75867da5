"""Inconsistent responses that reflectors reject: old events, lists that hide objects, and 404 for everything."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fakes.kube import wire
from tests.fakes.kube.apiserver import FakeApiServer, Fault, Manifest, error_event
from tests.flow.kube.informer.reflecting import QUICK, ReflectorHarness, put_routes, reflecting, route

EMPTY = '{"metadata": {"resourceVersion": "9000"}, "items": []}'


def is_next_page(query: object) -> bool:
    return "continue" in getattr(query, "query", {})


def bookmark(version: object) -> bytes:
    return wire.event("BOOKMARK", {"kind": "ApisixRoute", "metadata": {"resourceVersion": version}})


@pytest.mark.parametrize("word", ["ADDED", "MODIFIED", "DELETED"])
async def test_a_repeated_event_undoes_nothing(server: FakeApiServer, tmp_path: Path, word: str) -> None:
    async with reflecting(server, tmp_path) as harness:
        await harness.until_watching()
        old = server.put(route("a", step=1))
        server.put(route("a", step=2))
        await harness.until(lambda: harness.get("a") and harness.get("a").spec == {"step": 2}, "the second step")
        server.order(harness.plural, wire.event(word, old))
        server.put(route("end"))
        await harness.until_names("a", "end")
        assert harness.get("a").spec == {"step": 2}
        await harness.until_watching()
    assert harness.notes.failures == ["rolled_back"]
    assert "delete" not in harness.notes.changes


async def test_a_deleted_object_does_not_return_with_an_old_event(server: FakeApiServer, tmp_path: Path) -> None:
    async with reflecting(server, tmp_path) as harness:
        await harness.until_watching()
        old = server.put(route("gone"))
        await harness.until_names("gone")
        server.remove(harness.plural, "gone")
        await harness.until_names()
        server.order(harness.plural, wire.event("ADDED", old))
        await harness.until(lambda: len(harness.notes.lists) == 2, "a list")
        assert harness.names() == set()


async def test_a_bookmark_ahead_of_events_loses_no_event(server: FakeApiServer, tmp_path: Path) -> None:
    put_routes(server, 2)
    async with reflecting(server, tmp_path) as harness:
        await harness.until_watching()
        server.order(harness.plural, bookmark("999999"))
        server.remove(harness.plural, "r001")
        await harness.until_names("r000")
        await harness.until_watching()
        server.put(route("new"))
        await harness.until_names("r000", "new")


@pytest.mark.parametrize("version", ["", "0", 7, None], ids=["empty", "zero", "number", "null"])
async def test_no_bookmark_makes_a_watch_begin_anywhere(server: FakeApiServer, tmp_path: Path, version: object) -> None:
    put_routes(server, 2)
    async with reflecting(server, tmp_path) as harness:
        await harness.until_watching()
        server.order(harness.plural, bookmark(version))
        server.order(harness.plural, "end")
        await harness.until(lambda: server.count("watch", harness.plural) > 1, "another watch")
        server.put(route("new"))
        await harness.until_names("r000", "r001", "new")
    asked = [seen.query["resourceVersion"] for seen in server.seen if seen.verb == "watch"]
    assert {"", "0"}.isdisjoint(asked)


async def test_a_version_that_the_api_server_does_not_understand_is_left(server: FakeApiServer, tmp_path: Path) -> None:
    put_routes(server, 2)
    async with reflecting(server, tmp_path) as harness:
        await harness.until_watching()
        server.order(harness.plural, bookmark("odd"))
        server.faults.append(Fault("watch", status=500, when=lambda seen: seen.query["resourceVersion"] == "odd"))
        server.order(harness.plural, "cut")
        server.forget(harness.plural, "r000")
        await harness.until_names("r001")


async def test_watches_that_end_with_an_error_each_time_are_listed_for(server: FakeApiServer, tmp_path: Path) -> None:
    put_routes(server, 2)
    server.faults.append(Fault("watch", status=200, body=error_event(500).decode()))
    async with reflecting(server, tmp_path) as harness:
        await harness.until_names("r000", "r001")
        server.put(route("new"))
        await harness.until_names("r000", "r001", "new")


@pytest.mark.parametrize(
    ("status", "body"), [(200, ""), (500, ""), (200, EMPTY), (200, "<p>\n")], ids=["empty", "500", "a list", "HTML"]
)
async def test_changes_are_read_by_lists_if_watches_fail(
    server: FakeApiServer, tmp_path: Path, status: int, body: str
) -> None:
    put_routes(server, 2)
    server.faults.append(Fault("watch", status=status, body=body))
    async with reflecting(server, tmp_path) as harness:
        await harness.until_names("r000", "r001")
        server.put(route("new"))
        server.forget(harness.plural, "r000")
        await harness.until_names("r001", "new")


async def test_throttled_watches_are_not_listed_for(server: FakeApiServer, tmp_path: Path) -> None:
    put_routes(server, 2)
    server.faults.append(Fault("watch", status=200, body=error_event(429).decode()))
    async with reflecting(server, tmp_path) as harness:
        await harness.until(lambda: len(harness.notes.failures) > 4, "some refusals")
        assert harness.notes.lists == [2]


def note_waits(harness: ReflectorHarness) -> list[float]:
    """Let the reflector skip its waits; return the growing delays that it would have had."""
    waits: list[float] = []

    async def noted(seconds: float) -> None:
        waits.append(seconds)
        await asyncio.sleep(0)

    harness.reflector._pause = noted  # type: ignore[method-assign]
    return waits


async def test_watches_that_break_after_one_event_back_off(server: FakeApiServer, tmp_path: Path) -> None:
    put_routes(server, 2)
    server.faults.append(Fault("watch", status=200, body=(bookmark("999999") + error_event(410)).decode()))
    async with reflecting(server, tmp_path) as harness:
        waits = note_waits(harness)
        await harness.until(lambda: len(waits) > 5, "some waits")
        assert waits[5] > 2 * waits[0]


@pytest.mark.parametrize(
    ("status", "asked", "want"), [(429, "60", 60.0), (429, "1e9", 120.0), (503, "7", 7.0), (503, "inf", 15.0)]
)
async def test_retry_after_is_limited_by_status(
    server: FakeApiServer, tmp_path: Path, status: int, asked: str, want: float
) -> None:
    server.faults.append(Fault("list", status=status, retry_after=asked))
    async with reflecting(server, tmp_path) as harness:
        waits = note_waits(harness)
        await harness.until(lambda: len(waits) > 2, "some waits")
    assert set(waits) == {want}


async def test_a_list_whose_pages_always_expire_is_read_as_one(server: FakeApiServer, tmp_path: Path) -> None:
    want = put_routes(server, 25)
    server.faults.append(Fault("list", status=410, when=is_next_page))
    async with reflecting(server, tmp_path) as harness:
        await harness.reflector.synced.wait()
        assert harness.names() == want
    asked = [(seen.query["limit"], "continue" in seen.query) for seen in server.seen if seen.verb == "list"]
    assert asked == [("10", False), ("10", True), ("10", False), ("10", True), ("0", False)]


async def test_endless_pages_are_given_up(server: FakeApiServer, tmp_path: Path) -> None:
    page = '{"metadata": {"resourceVersion": "9000", "continue": "again"}, "items": []}'
    endless = Fault("list", status=200, body=page)
    want = put_routes(server, 3)
    server.faults.append(endless)
    async with reflecting(server, tmp_path) as harness:
        await harness.until(lambda: "unavailable" in harness.notes.failures, "a failure")
        assert "the continue token repeats" in harness.reflector.problem
        server.faults.remove(endless)
        await harness.until_names(*want)


@pytest.mark.parametrize("may_get", [True, False], ids=["get", "list only"])
async def test_objects_found_by_name_are_not_deleted_even_if_lists_lack_them(
    server: FakeApiServer, tmp_path: Path, may_get: bool
) -> None:
    want = put_routes(server, 40)
    empty = Fault("list", status=200, body=EMPTY, when=lambda seen: "fieldSelector" not in seen.query)
    async with reflecting(server, tmp_path) as harness:
        await harness.until_watching()
        server.faults += [empty] if may_get else [empty, Fault("get", "apisixroutes", status=403)]
        server.order(harness.plural, error_event(410))
        await harness.until(lambda: len(harness.notes.lists) > 4, "some lists")
        assert (harness.names(), harness.notes.holds) == (want, [40])
        assert harness.reflector.problem.startswith("40 objects are missing from lists, but GET finds them")
        server.faults.remove(empty)
        await harness.until(lambda: harness.notes.holds == [40, 0], "the end of the suspicion")
        assert harness.names() == want
    assert "delete" not in harness.notes.changes


async def test_deletes_wait_while_the_existence_of_an_object_is_unknown(server: FakeApiServer, tmp_path: Path) -> None:
    want = put_routes(server, 3)
    faults = [Fault("list", status=200, body=EMPTY), Fault("get", "apisixroutes", status=200, body=EMPTY)]
    async with reflecting(server, tmp_path) as harness:
        await harness.until_watching()
        server.faults += faults
        server.order(harness.plural, error_event(410))
        await harness.until(lambda: harness.notes.failures.count("unavailable") > 2, "some tries")
        assert harness.names() == want
        for name in want:
            server.forget(harness.plural, name)
        server.faults.remove(faults[1])
        await harness.until_names()


async def test_unusual_deletes_are_verified_again(server: FakeApiServer, tmp_path: Path) -> None:
    want = put_routes(server, 3)
    faults = [Fault("list", status=200, body=EMPTY), Fault("get", "apisixroutes", status=404)]
    async with reflecting(server, tmp_path) as harness:
        await harness.until_watching()
        server.faults += faults
        server.order(harness.plural, error_event(410))
        await harness.until_names()
        server.faults.clear()
        await harness.until_names(*want)


@pytest.mark.parametrize("kind", ["EndpointSlice", "Service", "Namespace"])
async def test_a_first_list_without_the_default_objects_is_repeated(
    server: FakeApiServer, tmp_path: Path, kind: str
) -> None:
    api_version = "discovery.k8s.io/v1" if kind == "EndpointSlice" else "v1"
    server.put({"kind": kind, "apiVersion": api_version, "metadata": {"name": "a"}, "spec": {}})
    server.faults.append(Fault("list", status=200, body=EMPTY, times=1))
    async with reflecting(server, tmp_path, kind) as harness:
        await harness.until(lambda: len(harness.store) == 1, "the object")
        await harness.until(lambda: len(harness.notes.lists) == 3, "the second look")
        await harness.until_watching()
    assert harness.notes.lists == [0, 1, 1]


@pytest.mark.parametrize("body", [None, "404 page not found"], ids=["Status", "text"])
async def test_a_proxy_that_returns_404_for_everything_empties_nothing(
    server: FakeApiServer, tmp_path: Path, body: str | None
) -> None:
    want = put_routes(server, 3)
    lost = Fault(status=404, body=body)
    async with reflecting(server, tmp_path) as harness:
        await harness.until_watching()
        server.faults.append(lost)
        server.order(harness.plural, "end")
        await harness.until(lambda: harness.notes.failures.count("unavailable") > 3, "some looks")
        assert (harness.names(), harness.reflector.absent) == (want, False)
        assert "which an API server never returns here" in harness.reflector.problem
        server.faults.remove(lost)
        await harness.until_watching()
    assert "delete" not in harness.notes.changes


async def test_objects_stay_while_their_crds_are_replaced(server: FakeApiServer, tmp_path: Path) -> None:
    want = put_routes(server, 3)
    async with reflecting(server, tmp_path, options=replace(QUICK, absent_hold=3600.0)) as harness:
        await harness.until_watching()
        kind = server.kinds.pop("apisixroutes")
        server.order(harness.plural, "end")
        await harness.until(lambda: harness.notes.failures.count("absent") > 3, "some looks")
        assert (harness.names(), harness.reflector.absent) == (want, False)
        assert "3 objects without a delete event stay for 3600 s" in harness.reflector.problem
        server.install(kind)
        await harness.until(lambda: harness.reflector.problem == "", "the end of the problem")
        assert harness.names() == want
    assert "delete" not in harness.notes.changes


@pytest.mark.parametrize(
    "answer",
    [
        Fault("get", "", status=200, body="{}"),
        Fault("get", "", status=404, when=lambda seen: seen.path != "/apis"),
        Fault("get", "", status=200, body='{"groups": [{"versions": null}]}', when=lambda seen: seen.path == "/apis"),
    ],
    ids=["no resource list", "the list of groups disagrees", "no list of groups"],
)
async def test_a_kind_is_not_absent_while_it_is_not_clear(server: FakeApiServer, tmp_path: Path, answer: Fault) -> None:
    served: list[Manifest] = [server.put(route("a"))]
    server.faults += [Fault("list", status=404), answer, Fault("get", "", status=404)]
    async with reflecting(server, tmp_path) as harness:
        await harness.until(lambda: harness.notes.failures.count("unavailable") > 3, "some looks")
        assert (harness.reflector.synced.is_set(), harness.reflector.absent) == (False, False)
        server.faults.clear()
        await harness.until_names(*(item["metadata"]["name"] for item in served))
