"""The whole program in one process, between an API server and a gateway with all kinds of faults.

In every case, it converges, nothing is deleted by mistake, and `run` leaves nothing behind.
"""

import json
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.fakes.adminapi import AdminFault, FakeAdminApi
from tests.fakes.kube.apiserver import FakeApiServer, Fault
from tests.flow.program import QUICK, ROUTES, is_ready, meta, nodes, put_slice, put_world, route, running
from tests.samples import sample


@pytest.fixture(autouse=True)
def quick_reflectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apisix_ingress.kube.informer.reflector.ReflectorOptions", QUICK)


async def test_objects_become_records_and_the_lease_is_released(
    server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path
) -> None:
    names = put_world(server)
    async with running(server, gateway, tmp_path) as app:
        await app.until_served(*names)
        await app.until(lambda: all(map(is_ready, server.all("apisixroutes"))), "a condition on every route")
        assert (await app.probe())[0] == 200
        assert [lease["spec"]["holderIdentity"] != "" for lease in server.all("leases")] == [True]
        holder = server.all("leases")[0]["spec"]["holderIdentity"]
    assert (nodes(gateway), app.deletes) == (["10.244.1.1"], [])
    assert {agent for agent in gateway.agents if holder in agent} == gateway.agents
    assert [lease["spec"]["holderIdentity"] for lease in server.all("leases")] == [""]


@pytest.mark.parametrize(("is_gateway_listed", "seconds"), [(True, 60.0), (False, 60.0), (False, 0.0)])
async def test_translation_starts_once_gateways_have_been_updated_early_or_after_some_seconds(
    server: FakeApiServer,
    gateway: FakeAdminApi,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_gateway_listed: bool,
    seconds: float,
) -> None:
    monkeypatch.setattr("apisix_ingress.app.EARLY_SECONDS", seconds)
    names = put_world(server)
    lists = Fault("list", "apisixtlses", status=500)
    server.faults.append(lists)
    outage = AdminFault(status=503)
    gateway.faults.extend([] if is_gateway_listed else [outage])
    async with running(server, gateway, tmp_path) as app:
        state = app.controller.state
        await app.until(lambda: set(state.source.problems()) == {"apisixtlses"}, "the lists of all other kinds")
        if is_gateway_listed or not seconds:
            await app.until(lambda: len(state.world.reports) > len(names), "all reports")
        else:
            await app.until(lambda: bool(state.unhealthy_gateways()), "the outage of the gateway")
            assert len(state.world.reports) == 0
        assert gateway.writes == []
        server.faults.remove(lists)
        gateway.faults.clear()
        await app.until_served(*names)


async def test_restart_writes_nothing(server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path) -> None:
    names = put_world(server)
    async with running(server, gateway, tmp_path) as app:
        await app.until_served(*names)
    gateway.seen.clear()
    async with running(server, gateway, tmp_path) as app:
        await app.until(lambda: app.controller.state.clusters.syncs[0].idle(), "the comparison of a new term")
    assert gateway.writes == []


@pytest.mark.parametrize(
    "fault",
    [
        Fault("list", status=410, times=20),
        Fault("list", status=429, retry_after="0", times=20),
        Fault("list", status=500, times=20),
        Fault("list", status=200, body="<html>", times=20),
        Fault("list", cut=True, times=20),
        Fault("watch", status=410, times=30),
        Fault("watch", status=429, times=30),
        Fault(delay=0.1, times=60),
        Fault("create", "leases", status=500, apply=True, times=1),
    ],
    ids=lambda fault: f"{fault.verb}-{fault.status or ('cut' if fault.cut else 'slow')}",
)
async def test_the_program_survives_api_server_errors_at_the_start(
    server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path, fault: Fault
) -> None:
    names = put_world(server)
    server.faults.append(fault)
    async with running(server, gateway, tmp_path) as app:
        await app.until_served(*names)
        server.put(route("more"))
        put_slice(server, "10.244.1.2")
        await app.until_served(*names, "more")
        await app.until(lambda: nodes(gateway) == ["10.244.1.2"], "the new endpoint")
    assert app.deletes == []


@pytest.mark.parametrize(
    "fault",
    [
        AdminFault("PUT", status=500, times=12),
        AdminFault("PUT", status=429, times=12),
        AdminFault("PUT", status=503, apply=True, cut=True, times=20),
        AdminFault("PUT", cut=True, times=20),
        AdminFault("PUT", delay=1.5, times=3),
        AdminFault("GET", status=500, times=2),
    ],
    ids=["500", "429", "reply-lost", "request-lost", "slow", "list-500"],
)
async def test_the_program_survives_gateway_errors(
    server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path, fault: AdminFault
) -> None:
    names = put_world(server)
    gateway.faults.append(fault)
    async with running(server, gateway, tmp_path) as app:
        await app.until_served(*names)
        await app.until(lambda: all(map(is_ready, server.all("apisixroutes"))), "a condition on every route")
    assert (nodes(gateway), app.deletes) == (["10.244.1.1"], [])


async def test_storm_of_410_loses_no_change(server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path) -> None:
    names = put_world(server)
    async with running(server, gateway, tmp_path) as app:
        await app.until_served(*names)
        for number in range(5):
            for plural in server.kinds:
                server.order(plural, "cut")
            server.remove("apisixroutes", f"r{number}")
            server.put(route(f"new{number}"))
            put_slice(server, f"10.244.2.{number + 1}")
            server.compact()
            await app.until(lambda: nodes(gateway) == [f"10.244.2.{number + 1}"], "the endpoint")  # noqa: B023
        await app.until_served(*names[5:], *(f"new{number}" for number in range(5)))
    assert len(app.deletes) == 5


async def test_half_open_watches_are_noticed(server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path) -> None:
    names = put_world(server)
    async with running(server, gateway, tmp_path) as app:
        await app.until_served(*names)
        for plural in server.kinds:
            server.order(plural, "stall")
        server.put(route("more"))
        server.remove("apisixroutes", "r0")
        await app.until_served(*names[1:], "more")
    assert len(app.deletes) == 1


async def test_a_wrongly_empty_list_deletes_nothing(
    server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path
) -> None:
    names = put_world(server)
    body = '{"metadata": {"resourceVersion": "9000"}, "items": []}'
    async with running(server, gateway, tmp_path) as app:
        await app.until_served(*names)
        listed = server.count("list", "apisixroutes")
        server.faults.append(Fault("list", "apisixroutes", status=200, body=body, times=1))
        server.compact()
        server.order("apisixroutes", "cut")
        await app.until(lambda: server.count("list", "apisixroutes") > listed + 1, "the list that clears the suspicion")
        server.put(route("more"))
        await app.until_served(*names, "more")
    assert app.deletes == []


async def test_no_route_is_deleted_if_a_first_list_fails_and_the_next_ones_are_empty(
    server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path
) -> None:
    names = put_world(server)
    async with running(server, gateway, tmp_path) as app:
        await app.until_served(*names)
    second_page = Fault("list", "apisixroutes", status=500, when=lambda seen: "continue" in seen.query)
    server.faults.append(second_page)
    async with running(server, gateway, tmp_path) as app:
        state = app.controller.state
        await app.until(lambda: "500" in state.source.problems().get("apisixroutes", ""), "the failing page")
        await app.until(lambda: state.world.desired.counts("default")["routes"] == 10, "the routes of the first page")
        body = '{"metadata": {"resourceVersion": "9000"}, "items": []}'
        server.faults[:] = [empty := Fault("list", "apisixroutes", status=200, body=body, times=3)]
        await app.until(lambda: empty.times == 0 and state.clusters.syncs[0].idle(), "the first comparison")
        assert len(app.names()) == len(names)
    assert app.deletes == []


async def test_a_forbidden_kind_at_the_start_delays_writes(
    server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path
) -> None:
    names = put_world(server)
    forbidden = Fault("list", "secrets", status=403)
    server.faults.append(forbidden)
    async with running(server, gateway, tmp_path) as app:
        await app.until(lambda: "secrets" in str(app.controller.state.source.problems()), "the problem")
        await app.until(lambda: server.count("list", "secrets") > 3, "some tries")
        status, text = await app.probe()
        assert (status, "grant list, watch on secrets" in text, gateway.writes) == (503, True, [])
        server.faults.remove(forbidden)
        await app.until_served(*names)
        await app.until(lambda: not app.controller.state.source.problems(), "the end of the problem")
        assert (await app.probe())[0] == 200
    assert app.deletes == []


async def test_a_kind_that_becomes_forbidden_affects_no_other(
    server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path
) -> None:
    names = put_world(server)
    async with running(server, gateway, tmp_path) as app:
        await app.until_served(*names)
        server.faults.append(Fault("*", "secrets", status=403))
        server.order("secrets", "cut")
        await app.until(lambda: "secrets" in app.controller.state.source.problems(), "the problem")
        server.remove("apisixroutes", "r0")
        server.put(route("more"))
        await app.until_served(*names[1:], "more")
    assert len(app.deletes) == 1


async def test_object_that_cannot_be_read_affects_only_itself(
    server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path
) -> None:
    names = put_world(server)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": meta("odd"), "data": {"key": "no base64!"}}
    server.put(secret)
    server.put({**route("odd"), "spec": {"http": "no list"}})
    async with running(server, gateway, tmp_path) as app:
        await app.until_served(*names)
        assert (await app.probe())[0] == 200
        await app.until(lambda: conditions(server, "odd") == ["False"], "the condition of the odd route")
        server.put(route("odd"))
        await app.until_served(*names, "odd")
        await app.until(lambda: conditions(server, "odd") == ["True"], "its recovery")
    assert app.deletes == []


def conditions(server: FakeApiServer, name: str) -> list[str]:
    item = server.get("apisixroutes", name) or {}
    return [condition["status"] for condition in (item.get("status") or {}).get("conditions", [])]


async def test_lost_lease_stops_writing_until_it_is_won_again(
    server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path
) -> None:
    names = put_world(server)
    async with running(server, gateway, tmp_path) as app:
        await app.until_served(*names)
        await app.until(lambda: app.controller.state.clusters.syncs[0].idle(), "nothing left to do")
        lease = server.all("leases")[0]
        server.put({**lease, "spec": {**lease["spec"], "holderIdentity": "somebody-else"}})
        await app.until(lambda: not app.controller.state.source.election.leading, "the end of the term")
        written = len(gateway.writes)
        server.put(route("more"))
        await app.until(lambda: len(app.controller.state.world.desired.keys()) > ROUTES + 1, "the translation")
        assert (await app.probe())[0] == 200
        assert len(gateway.writes) == written
        server.put({**lease, "spec": {**lease["spec"], "holderIdentity": ""}})
        await app.until_served(*names, "more")
        assert gateway.writes[written:] == [gateway.writes[-1]]
    assert app.deletes == []


@pytest.mark.parametrize(
    ("fault", "reason", "headline", "cause"),
    [
        (None, "unreachable", "not reachable", "{place}: Connection refused"),
        (AdminFault(delay=60.0), "unreachable", "not reachable", "{place}: no response within 1 s"),
        (AdminFault(status=503), "failing", "failing", "{place}: HTTP 503: fault"),
    ],
)
async def test_a_dead_gateway_is_reported_everywhere_without_pending_writes(
    server: FakeApiServer,
    gateway: FakeAdminApi,
    tmp_path: Path,
    fault: AdminFault | None,
    reason: str,
    headline: str,
    cause: str,
) -> None:
    names, place = put_world(server), f"127.0.0.1:{gateway.port}"
    async with running(server, gateway, tmp_path) as app:
        await app.until_served(*names)
        await app.until(lambda: app.controller.state.clusters.syncs[0].idle(), "the end of the writes")
        with capture_logs() as lines:
            if fault is None:
                await gateway.stop()
            else:
                gateway.faults.append(fault)
            await app.until(lambda: app.controller.state.clusters.syncs[0].outage is not None, "the outage")
        outage = app.controller.state.clusters.syncs[0].outage
        assert outage is not None
        assert (outage.reason, outage.cause) == (reason, cause.format(place=place))
        words = f"cluster default: {headline} since {outage.since:%Y-%m-%dT%H:%M:%SZ}: {outage.cause}"
        assert await app.ask("/apisix/healthz") == (500, json.dumps({"status": words}, separators=(",", ":")))
        assert json.loads((await app.probe())[1])["notes"] == {"clusters": words}
        assert ((await app.probe())[0], (await app.ask("/healthz"))[0], app.is_paused()) == (200, 200, 1)
        labels = {"cluster": "default", "reason": reason}
        since = sample(app.controller.metrics, "outage_start_timestamp_seconds", labels)
        assert since == outage.since.timestamp()
        (reported,) = json.loads((await app.ask("/status/api/overview"))[1])["clusters"]
        assert (reported["state"], reported["reason"]) == (reason, outage.cause)
        assert reported["since"] == f"{outage.since:%Y-%m-%dT%H:%M:%SZ}"
        shown = (await app.ask("/status"))[1]
        assert f"{headline.capitalize()} since" in shown
        assert outage.cause in shown
    (line,) = [line for line in lines if line["log_level"] in ("warning", "error")]
    assert (line["event"], line["error"]) == ("cluster.unreachable", outage.cause)
    assert line["since"] == outage.since.isoformat(timespec="seconds")


async def test_only_the_current_leader_reports_an_outage(
    server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path
) -> None:
    names = put_world(server)
    async with running(server, gateway, tmp_path) as app:
        await app.until_served(*names)
        gateway.faults.append(AdminFault(status=503))
        for number in range(12):
            server.put(route(f"late{number}"))
        await app.until(lambda: not app.controller.state.clusters.syncs[0].reachable, "the breaker to open")
        assert ((await app.ask("/apisix/healthz"))[0], app.is_paused()) == (500, 1)
        assert '"notes"' in (await app.probe())[1]
        lease = server.all("leases")[0]
        server.put({**lease, "spec": {**lease["spec"], "holderIdentity": "somebody-else"}})
        await app.until(lambda: not app.controller.state.source.election.leading, "the end of the term")
        assert ((await app.ask("/apisix/healthz"))[0], app.is_paused()) == (200, 0)
        assert '"notes"' not in (await app.probe())[1]


async def test_a_key_rejected_on_a_follower_is_forgotten_by_a_term(
    server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path
) -> None:
    names = put_world(server)
    async with running(server, gateway, tmp_path) as app:
        await app.until_served(*names)
        lease = server.all("leases")[0]
        taken = {**lease, "spec": {**lease["spec"], "holderIdentity": "somebody-else"}}
    server.put(taken)
    async with running(server, gateway, tmp_path, key="another-key") as app:
        await app.until(lambda: app.controller.state.unhealthy_gateways() is not None, "the refusal")
        assert ((await app.ask("/apisix/healthz"))[0], app.is_paused()) == (500, 1)
        gateway.key = "another-key"
        server.put({**lease, "spec": {**lease["spec"], "holderIdentity": ""}})
        await app.until(lambda: app.controller.state.clusters.syncs[0].taken_over, "the term")
        server.put(taken)
        await app.until(lambda: not app.controller.state.source.election.leading, "the end of the term")
        assert ((await app.ask("/apisix/healthz"))[0], app.is_paused()) == (200, 0)


async def test_a_stop_during_the_first_sync_starts_no_late_write(
    server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apisix_ingress.app.DRAIN_SECONDS", 0.3)
    put_world(server)
    gateway.faults.append(AdminFault(method="PUT", path="routes/", delay=0.9))
    async with running(server, gateway, tmp_path) as app:
        await app.until(lambda: len(gateway.writes) > 2, "the first writes")
    asked = [path for method, path in gateway.seen if method == "PUT"]
    carried_out = {f"{kind}/{id_}" for kind, records in gateway.records.items() for id_ in records}
    assert set(asked) == carried_out
    assert len(asked) < ROUTES
    assert server.all("leases")[0]["spec"]["holderIdentity"] == ""


async def test_stop_returns_before_any_server_responds(
    server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path
) -> None:
    server.faults.append(Fault(hang=True))
    async with running(server, gateway, tmp_path) as app:
        await app.until(lambda: len(server.seen) > 3, "the first requests")
        assert (await app.probe())[0] == 503
    assert gateway.writes == []
