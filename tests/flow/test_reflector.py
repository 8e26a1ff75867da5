"""Watches of reflectors, which an API server ends, cuts, garbles, refuses or forgets in every way that was seen."""

from dataclasses import replace
from pathlib import Path

import pytest

from apisix_ingress.kube.informer.watch_events import ReflectorOptions
from apisix_ingress.model.keys import ObjectKey
from tests.fakes.apiserver import FakeApiServer, Fault
from tests.flow.reflecting import QUICK, put_routes, reflecting, route


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


async def test_a_half_open_watch_is_given_up_and_nothing_is_lost(server: FakeApiServer, tmp_path: Path) -> None:
    async with reflecting(server, tmp_path) as bench:
        await bench.until_watching()
        server.order(bench.plural, "stall")
        server.put(route("late"))
        await bench.until_names("late")
        assert bench.notes.failures == ["unavailable"]
    assert server.count("list", "apisixroutes") == 1


def test_no_silence_can_last_longer_than_20_seconds() -> None:
    options = ReflectorOptions()
    assert options.watch_longest + options.watch_margin + 2 * options.backoff_base <= 20


@pytest.mark.parametrize("way", ["the watch stalls after an event", "the answer never begins"])
async def test_silence_is_noticed_after_the_bound_and_costs_no_list(
    server: FakeApiServer, tmp_path: Path, way: str
) -> None:
    """The bound runs from the last word, not from the beginning of the watch."""
    async with reflecting(server, tmp_path, options=replace(QUICK, watch_shortest=3.0, watch_longest=3.0)) as bench:
        await bench.until_watching()
        if way == "the answer never begins":
            server.faults.append(Fault("watch", hang=True, times=1))
            server.order(bench.plural, "end")
            await bench.until(lambda: not server.watching(bench.plural), "the end of the watch")
        else:
            server.put(route("first"))
            await bench.until_names("first")
            server.order(bench.plural, "stall")
        server.put(route("late"))
        await bench.until(lambda: "late" in bench.names(), "the change")
        assert bench.notes.failures[-1] == "unavailable"
    assert server.count("list", "apisixroutes") == 1


async def test_many_collections_are_watched_for_longer(server: FakeApiServer, tmp_path: Path) -> None:
    async with reflecting(server, tmp_path, options=ReflectorOptions(), collections=600) as bench:
        await bench.until_watching()
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
async def test_a_watch_that_fails_is_tried_again_without_a_list(
    server: FakeApiServer, tmp_path: Path, fault: Fault
) -> None:
    server.put(route("a"))
    server.faults.append(fault)
    async with reflecting(server, tmp_path) as bench:
        await bench.until_watching()
        server.put(route("b"))
        await bench.until_names("a", "b")
    assert bench.notes.lists == [1]
    # Whoever was away may have come back with an old backup: a look at one object tells.
    limits = [seen.query["limit"] for seen in server.seen if (seen.verb, seen.plural) == ("list", "apisixroutes")]
    assert limits[1:] == (["1"] if (fault.status or 0) >= 500 else [])


async def test_an_api_server_that_went_back_in_time_is_listed_anew(server: FakeApiServer, tmp_path: Path) -> None:
    put_routes(server, 3)
    async with reflecting(server, tmp_path, options=replace(QUICK, silent_watches=2)) as bench:
        await bench.until_watching()
        server.forget("apisixroutes", "r001")
        server.roll_back(500)
        server.order(bench.plural, "stall")
        await bench.until_names("r000", "r002")
        assert "rolled_back" in bench.notes.failures


@pytest.mark.parametrize("rolls_back", [True, False])
async def test_after_an_outage_one_look_tells_whether_the_api_server_went_back_in_time(
    server: FakeApiServer, tmp_path: Path, rolls_back: bool
) -> None:
    put_routes(server, 30)
    async with reflecting(server, tmp_path) as bench:
        await bench.until_watching()
        await server.stop()
        await bench.until(lambda: len(bench.notes.failures) > 2, "the outage to be noticed")
        if rolls_back:
            server.forget("apisixroutes", "r001")
            server.roll_back(500)
        await server.start()
        await bench.until_watching()
        if not rolls_back:
            server.remove("apisixroutes", "r001")
        await bench.until_names(*(f"r{number:03}" for number in range(30) if number != 1))
    assert ("rolled_back" in bench.notes.failures, bench.notes.lists) == (rolls_back, [30, 29] if rolls_back else [30])


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
