"""Watches of reflectors that an API server ends, cuts, corrupts, rejects or stalls."""

from dataclasses import replace
from pathlib import Path

import pytest

from apisix_ingress.kube.informer.watch_events import ReflectorOptions
from apisix_ingress.model.keys import ObjectKey
from tests.fakes.kube.apiserver import FakeApiServer, Fault
from tests.flow.kube.informer.reflecting import QUICK, put_routes, reflecting, route


async def test_changes_reach_the_store_and_equal_objects_notify_no_reader(
    server: FakeApiServer, tmp_path: Path
) -> None:
    server.put(route("a"))
    async with reflecting(server, tmp_path) as harness:
        await harness.until_watching()
        server.put(route("b"))
        await harness.until_names("a", "b")
        server.put(route("a", http=[{"name": "x"}]))
        await harness.until(lambda: harness.get("a").spec == {"http": [{"name": "x"}]}, "the new spec")
        harness.reads.clear()
        server.put({**route("a", http=[{"name": "x"}]), "status": {"seen": True}})
        server.remove("apisixroutes", "b")
        await harness.until_names("a")
        assert harness.reads == [ObjectKey("ApisixRoute", "default", "b")]
        assert harness.notes.changes == ["add", "add", "update", "delete"]


async def test_a_watch_that_ends_resumes_without_a_list(server: FakeApiServer, tmp_path: Path) -> None:
    async with reflecting(server, tmp_path) as harness:
        for number in range(4):
            await harness.until_watching()
            server.order(harness.plural, "end" if number % 2 else "cut")
            await harness.until(lambda: not server.watching(harness.plural), "the end of the watch")
            server.put(route(f"r{number}"))
        await harness.until_names("r0", "r1", "r2", "r3")
    assert server.count("list", "apisixroutes") == 1


async def test_a_cut_in_the_middle_of_an_event_loses_nothing(server: FakeApiServer, tmp_path: Path) -> None:
    async with reflecting(server, tmp_path) as harness:
        await harness.until_watching()
        server.order(harness.plural, b'{"type":"ADDED","object":{"metadata":{"name":"half')
        server.order(harness.plural, "cut")
        server.put(route("whole"))
        await harness.until_names("whole")
    assert server.count("list", "apisixroutes") == 1


async def test_garbage_and_unknown_events_are_tolerated(server: FakeApiServer, tmp_path: Path) -> None:
    async with reflecting(server, tmp_path) as harness:
        begun = 0
        for number, line in enumerate((b"<html>\n", b"[]\n", b'{"type":"NEWS","object":{}}\n', b"{}\n", b"\xff\n")):
            # The server may not have noticed yet that the last watch was closed, and would send the line to it.
            await harness.until(lambda n=begun: server.count("watch", harness.plural) > n, "a new watch")  # type: ignore[misc]
            server.order(harness.plural, line)
            await harness.until(lambda n=number: len(harness.notes.failures) > n, "a failure")  # type: ignore[misc]
            begun = server.count("watch", harness.plural)
            server.put(route(f"r{number}"))
        await harness.until_names("r0", "r1", "r2", "r3", "r4")


async def test_a_half_open_watch_is_closed_without_losing_events(server: FakeApiServer, tmp_path: Path) -> None:
    async with reflecting(server, tmp_path) as harness:
        await harness.until_watching()
        server.order(harness.plural, "stall")
        server.put(route("late"))
        await harness.until_names("late")
        assert harness.notes.failures == ["unavailable"]
    assert server.count("list", "apisixroutes") == 1


def test_silence_is_detected_within_20_seconds() -> None:
    options = ReflectorOptions()
    assert options.watch_longest + options.watch_margin + 2 * options.backoff_base <= 20


@pytest.mark.parametrize("way", ["the watch stalls after an event", "the answer never begins"])
async def test_silence_is_detected_after_the_bound_without_a_list(
    server: FakeApiServer, tmp_path: Path, way: str
) -> None:
    """The bound is measured from the last event, not from the start of the watch."""
    async with reflecting(server, tmp_path, options=replace(QUICK, watch_shortest=3.0, watch_longest=3.0)) as harness:
        await harness.until_watching()
        if way == "the answer never begins":
            server.faults.append(Fault("watch", hang=True, times=1))
            server.order(harness.plural, "end")
            await harness.until(lambda: not server.watching(harness.plural), "the end of the watch")
        else:
            server.put(route("first"))
            await harness.until_names("first")
            server.order(harness.plural, "stall")
        server.put(route("late"))
        await harness.until(lambda: "late" in harness.names(), "the change")
        assert harness.notes.failures[-1] == "unavailable"
    assert server.count("list", "apisixroutes") == 1


async def test_many_collections_are_watched_for_longer(server: FakeApiServer, tmp_path: Path) -> None:
    async with reflecting(server, tmp_path, options=ReflectorOptions(), collections=600) as harness:
        await harness.until_watching()
    (asked,) = [seen.query["timeoutSeconds"] for seen in server.seen if seen.verb == "watch"]
    assert 45 <= int(asked) <= 60


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
async def test_a_failed_watch_is_retried_without_a_list(server: FakeApiServer, tmp_path: Path, fault: Fault) -> None:
    server.put(route("a"))
    server.faults.append(fault)
    async with reflecting(server, tmp_path) as harness:
        await harness.until_watching()
        server.put(route("b"))
        await harness.until_names("a", "b")
    assert harness.notes.lists == [1]
    # An API server may return from an outage with an old backup: a GET of one object shows it.
    limits = [seen.query["limit"] for seen in server.seen if (seen.verb, seen.plural) == ("list", "apisixroutes")]
    assert limits[1:] == (["1"] if (fault.status or 0) >= 500 else [])


async def test_an_api_server_that_went_back_in_time_is_listed_again(server: FakeApiServer, tmp_path: Path) -> None:
    put_routes(server, 3)
    async with reflecting(server, tmp_path, options=replace(QUICK, silent_watches=2)) as harness:
        await harness.until_watching()
        server.forget("apisixroutes", "r001")
        server.roll_back(500)
        server.order(harness.plural, "stall")
        await harness.until_names("r000", "r002")
        assert "rolled_back" in harness.notes.failures


@pytest.mark.parametrize("rolls_back", [True, False])
async def test_after_an_outage_one_read_shows_whether_the_api_server_went_back_in_time(
    server: FakeApiServer, tmp_path: Path, rolls_back: bool
) -> None:
    put_routes(server, 30)
    async with reflecting(server, tmp_path) as harness:
        await harness.until_watching()
        await server.stop()
        await harness.until(lambda: len(harness.notes.failures) > 2, "the outage to be noticed")
        if rolls_back:
            server.forget("apisixroutes", "r001")
            server.roll_back(500)
        await server.start()
        await harness.until_watching()
        if not rolls_back:
            server.remove("apisixroutes", "r001")
        await harness.until_names(*(f"r{number:03}" for number in range(30) if number != 1))
    assert ("rolled_back" in harness.notes.failures, harness.notes.lists) == (
        rolls_back,
        [30, 29] if rolls_back else [30],
    )


async def test_replayed_events_end_in_the_same_state(server: FakeApiServer, tmp_path: Path) -> None:
    async with reflecting(server, tmp_path) as harness:
        await harness.until_watching()
        server.put(route("a", step=1))
        server.put(route("a", step=2))
        server.put(route("b"))
        server.remove("apisixroutes", "b")
        await harness.until_names("a")
        for watch in server._watches:
            for change in server._changes:
                watch.orders.put_nowait(change)
        server.put(route("end"))
        await harness.until_names("a", "end")
        assert harness.get("a").spec == {"step": 2}


async def test_every_event_resets_the_age_of_a_watch(server: FakeApiServer, tmp_path: Path) -> None:
    async with reflecting(server, tmp_path) as harness:
        await harness.until_watching()
        await harness.until(lambda: harness.reflector.age() > 0.05, "some age")
        before = harness.reflector.age()
        server.order(harness.plural, "bookmark")
        await harness.until(lambda: harness.reflector.age() < before, "a younger age")
