"""Endpoints that changed while no controller was running are written before everything has been translated."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from apisix_ingress.errors import GatewayUnavailable, LeadershipLost
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.names import short_id, wide_id
from apisix_ingress.model.records import Record
from tests.fakes.gateway import OURS
from tests.unit.apisix_ingress.gateway.sync.stage import FailingBackend, Play, Stage, on_stage

SERVICES = [f"team_web{number}_80" for number in range(5)]
NAME = SERVICES[0]
FIRST = RecordKey("upstreams", short_id(NAME))


def to(*hosts: str) -> list[JsonObject]:
    return [{"host": host, "port": 80, "weight": 100} for host in hosts]


def upstream(name: str, *hosts: str, **body: Any) -> Record:
    id_ = body.pop("id", short_id(name))
    whole = {"id": id_, "name": name, "labels": OURS, "type": "roundrobin", "nodes": to(*hosts), **body}
    return Record(RecordKey("upstreams", id_), name, whole)


def route(to_upstream: Record) -> Record:
    name = f"{to_upstream.name}_route"
    key = RecordKey("routes", short_id(name))
    body = {"id": key.id, "name": name, "labels": OURS, "uri": "/", "upstream_id": to_upstream.key.id}
    return Record(key, name, body, meant={to_upstream.key: to_upstream.name})


class Nodes:
    """The current nodes of upstreams; others have not changed."""

    def __init__(self, listed: bool = True, /, **current: Sequence[str]) -> None:
        self.listed = asyncio.Event()
        if listed:
            self.listed.set()
        self.is_address_fixed = True
        self.current = current
        self.asked: list[tuple[str, int]] = []

    async def wait_until_listed(self) -> bool:
        await self.listed.wait()
        return self.is_address_fixed

    def changed(self, name: str, nodes: Sequence[JsonObject], upstreams: int) -> Sequence[Mapping[str, object]] | None:
        self.asked.append((name, upstreams))
        current = to(*self.current.get(name, ()))
        return current if current and current != nodes else None


def restarted(nodes: Nodes, *, first: Record | None = None, wanted: Record | None = None) -> Stage:
    """Return a stage whose gateway has five upstreams with routes; `first` and `wanted` replace the first one."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    others = [upstream(name, "10.0.0.1") for name in SERVICES[1:]]
    before = [first or upstream(SERVICES[0], "10.0.0.1"), *others]
    after = [wanted or upstream(SERVICES[0], "10.0.0.2"), *others]
    stage = Stage([*after, *map(route, after)], [*before, *map(route, before)])
    stage.sync = stage.new_sync(nodes=nodes)
    return stage


def hosts(stage: Stage, key: RecordKey = FIRST) -> list[str]:
    return [node["host"] for node in stage.gateway.stored[key]["nodes"]]


@on_stage
async def test_a_new_endpoint_is_written_before_everything_is_translated() -> None:
    stage = restarted(Nodes(team_web0_80=["10.0.0.2"]))
    before = dict(stage.gateway.stored[FIRST])
    with capture_logs() as logs:
        async with stage.running(ready=False):
            assert stage.log == [("put", str(FIRST))]
            assert stage.sync.updated_early.is_set()
            assert stage.gateway.stored[FIRST] == {**before, "nodes": to("10.0.0.2")}
            stage.ready.set()
            await asyncio.sleep(5)
            assert (stage.sync.taken_over, stage.sync.idle()) == (True, True)
    assert len(stage.gateway.log) == 1
    (line,) = [line for line in logs if line["event"] == "endpoints.updated"]
    assert line["upstreams"] == 1


@on_stage
async def test_a_body_with_the_same_meaning_is_not_written_again() -> None:
    stage = restarted(Nodes(team_web0_80=["10.0.0.2"]), wanted=upstream(SERVICES[0], "10.0.0.2", retries=2.0))
    stage.gateway.stored[FIRST] = {**stage.gateway.stored[FIRST], "retries": 2}
    async with stage.running(ready=False):
        stage.ready.set()
        await asyncio.sleep(5)
        assert len(stage.gateway.log) == 1


@on_stage
async def test_other_changes_of_the_record_follow_when_everything_is_translated() -> None:
    stage = restarted(Nodes(team_web0_80=["10.0.0.2"]), wanted=upstream(SERVICES[0], "10.0.0.2", retries=3))
    async with stage.running(ready=False):
        assert "retries" not in stage.gateway.stored[FIRST]
        stage.ready.set()
        await asyncio.sleep(5)
        assert (hosts(stage), stage.gateway.stored[FIRST]["retries"]) == (["10.0.0.2"], 3)


@on_stage
async def test_a_record_that_is_not_desired_is_deleted_afterwards() -> None:
    stage = restarted(Nodes(team_web0_80=["10.0.0.2"]))
    stage.wanted.replace([])
    async with stage.running(ready=False):
        assert hosts(stage) == ["10.0.0.2"]
        stage.ready.set()
        await asyncio.sleep(5)
        assert stage.gateway.stored == {}


@on_stage
async def test_nothing_is_written_before_the_endpoints_are_listed() -> None:
    nodes = Nodes(False, team_web0_80=["10.0.0.2"])
    stage = restarted(nodes)
    async with stage.running(ready=False):
        assert (stage.log, nodes.asked, stage.sync.updated_early.is_set()) == ([], [], False)
        nodes.listed.set()
        await asyncio.sleep(1)
        assert stage.log == [("put", str(FIRST))]


@on_stage
async def test_nothing_is_written_early_if_the_cluster_may_have_another_address() -> None:
    nodes = Nodes(team_web0_80=["10.0.0.2"])
    nodes.is_address_fixed = False
    stage = restarted(nodes)
    async with stage.running(ready=False):
        await asyncio.sleep(1)
        assert (nodes.asked, stage.log) == ([], [])
        stage.ready.set()
        await asyncio.sleep(5)
        assert (nodes.asked, hosts(stage)) == ([], ["10.0.0.2"])


@on_stage
async def test_nothing_is_written_early_once_everything_is_translated() -> None:
    nodes = Nodes(False, team_web0_80=["10.0.0.3"])
    stage = restarted(nodes)
    async with stage.running(ready=False):
        stage.ready.set()
        nodes.listed.set()
        await asyncio.sleep(5)
        assert (nodes.asked, hosts(stage)) == ([], ["10.0.0.2"])


@on_stage
async def test_a_replica_that_does_not_lead_writes_nothing() -> None:
    stage = restarted(Nodes(team_web0_80=["10.0.0.2"]))
    stage.term.end()
    with pytest.raises(LeadershipLost):
        await stage.sync.run(stage.term, stage.ready)
    assert stage.log == []


@on_stage
async def test_many_changed_services_wait_until_everything_is_translated() -> None:
    """An API server with other endpoints for most Services may be the wrong one."""
    stage = restarted(Nodes(team_web0_80=["10.0.0.2"], team_web1_80=["10.0.0.2"]))
    with capture_logs() as logs:
        async with stage.running(ready=False):
            assert stage.log == []
    (line,) = [line for line in logs if line["event"] == "endpoints.deferred"]
    assert (line["upstreams"], line["changed"]) == (5, 2)


def untouched(first: Record, *, routed: bool = True) -> Callable[[Play], None]:
    """Check that this record gets no early update."""

    @on_stage
    async def story() -> None:
        stage = restarted(Nodes(True, **{first.name: ["10.0.0.2"]}), first=first)
        if not routed:
            del stage.gateway.stored[route(first).key]
        async with stage.running(ready=False):
            assert stage.log == []

    return story


test_a_record_of_another_controller_stays = untouched(upstream(NAME, "10.0.0.1", labels={"managed-by": "else"}))
test_a_record_without_routes_stays = untouched(upstream(NAME, "10.0.0.1"), routed=False)
test_a_record_with_the_id_of_another_name_stays = untouched(upstream(NAME, "10.0.0.1", id="abc"))
test_a_record_with_a_client_certificate_stays = untouched(upstream(NAME, "10.0.0.1", tls={"client_cert": "c"}))
test_a_record_with_an_empty_field_stays = untouched(upstream(NAME, "10.0.0.1", checks={"active": {}}))
test_a_record_with_service_discovery_stays = untouched(upstream(NAME, nodes=None, discovery_type="dns"))
test_a_record_of_a_subset_stays = untouched(upstream("team_web0_v1_80", "10.0.0.1"))


@on_stage
async def test_a_wide_id_is_updated_as_well() -> None:
    wide = wide_id(NAME)
    stage = restarted(
        Nodes(team_web0_80=["10.0.0.2"]),
        first=upstream(NAME, "10.0.0.1", id=wide),
        wanted=upstream(NAME, "10.0.0.2", id=wide),
    )
    async with stage.running(ready=False):
        assert stage.log == [("put", f"upstreams/{wide}")]


@on_stage
async def test_a_write_without_a_response_is_repeated_when_everything_is_translated() -> None:
    stage = restarted(Nodes(team_web0_80=["10.0.0.2"]))
    failing = FailingBackend(stage, FIRST, GatewayUnavailable("no response", sent=True))
    async with stage.running(ready=False):
        assert (failing.calls, stage.counts().unknown) == (1, 1)
        failing.error = None
        stage.ready.set()
        await asyncio.sleep(30)
        assert (hosts(stage), stage.counts().unknown, stage.sync.idle()) == (["10.0.0.2"], 0, True)


@on_stage
async def test_ids_are_adopted_as_if_nothing_had_been_written() -> None:
    stage = restarted(Nodes(team_web0_80=["10.0.0.2"]))
    async with stage.running(ready=False):
        assert (len(stage.gateway.log), stage.sync.names(FIRST)) == (1, ())
        stage.ready.set()
        await asyncio.sleep(1)
        assert stage.sync.names(FIRST) == (NAME,)


@on_stage
async def test_a_crash_ends_no_term() -> None:
    class Broken(Nodes):
        def changed(self, name: str, nodes: Sequence[JsonObject], upstreams: int) -> None:
            raise ValueError(name)

    stage = restarted(Broken())
    with capture_logs() as logs:
        async with stage.running(ready=False):
            stage.ready.set()
            await asyncio.sleep(5)
            assert hosts(stage) == ["10.0.0.2"]
    assert "endpoints.crashed" in [line["event"] for line in logs]


@on_stage
async def test_a_crash_of_a_write_ends_no_term() -> None:
    stage = restarted(Nodes(team_web0_80=["10.0.0.2"]))
    failing = FailingBackend(stage, FIRST, ValueError("a bug"))
    async with stage.running(ready=False):
        failing.error = None
        stage.ready.set()
        await asyncio.sleep(30)
        assert hosts(stage) == ["10.0.0.2"]


@on_stage
async def test_the_number_of_upstreams_of_a_service_is_passed_on() -> None:
    nodes = Nodes()
    stage = restarted(nodes)
    other = upstream("team_web0_81", "10.0.0.1")
    stage.gateway.stored[other.key] = other.body
    async with stage.running(ready=False):
        assert dict(nodes.asked) == {**dict.fromkeys(SERVICES, 1), SERVICES[0]: 2, other.name: 2}
