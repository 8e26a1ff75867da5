"""API servers that are unreachable or failing for a while, and how soon reflectors continue."""

from dataclasses import replace
from pathlib import Path

from tests.fakes.kube.apiserver import FakeApiServer, Fault
from tests.flow.kube.informer.reflecting import QUICK, NoPatience, put_routes, reflecting, route


async def test_the_controller_catches_up_after_an_api_server_outage(server: FakeApiServer, tmp_path: Path) -> None:
    put_routes(server, 3)
    async with reflecting(server, tmp_path) as harness:
        await harness.until_watching()
        await server.stop()
        await harness.until(lambda: len(harness.notes.failures) >= 3, "some failures")
        server.remove("apisixroutes", "r001")
        server.put(route("new"))
        assert "cannot connect" in harness.reflector.problem
        await server.start()
        await harness.until_names("r000", "r002", "new")
    assert harness.notes.lists == [3]


async def test_any_response_ends_the_wait_for_an_unreachable_api_server(server: FakeApiServer, tmp_path: Path) -> None:
    put_routes(server, 3)
    options = replace(QUICK, backoff_base=0.3, backoff_cap=100.0)
    async with reflecting(server, tmp_path, options=options, clock=NoPatience()) as harness:
        await harness.until_watching()
        await server.stop()
        await harness.until(lambda: len(harness.notes.failures) >= 2, "the long wait")
        server.put(route("new"))
        await server.start()
        await harness.api.page("/api/v1/secrets", limit=1)
        await harness.until_names("new", "r000", "r001", "r002")


async def test_a_first_410_is_not_delayed_by_other_failures(server: FakeApiServer, tmp_path: Path) -> None:
    want = put_routes(server, 3)
    server.faults += [Fault("watch", status=500, times=1), Fault("watch", status=410, times=1)]
    options = replace(QUICK, backoff_base=0.3, backoff_cap=100.0)
    async with reflecting(server, tmp_path, options=options, clock=NoPatience()) as harness:
        await harness.until(lambda: len(harness.notes.lists) == 2, "a second list")
        assert (harness.names(), harness.notes.failures) == (want, ["unavailable", "gone"])
