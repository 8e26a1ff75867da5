"""Matches that pass from one route to another: at every moment, some route has each of them."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from apisix_ingress.errors import GatewayUnavailable
from apisix_ingress.gateway.sync.observer import RecordState
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Former, Record
from tests.fakes.gateway import make_record
from tests.unit.apisix_ingress.gateway.sync.stage import UPSTREAM_RECORD, FailingBackend, Play, Stage, on_stage

GUARD: dict[str, Any] = {"plugins": {"key-auth": {}}}


def route(id_: int, path: str, **fields: Any) -> Record:
    body = {"uri": path, "hosts": ["a.example"], "upstream_id": "u1", **(GUARD if path != "/*" else {})}
    return make_record(RecordKey("routes", f"r{id_}"), **body, **fields)


def rules(*paths: str, **fields: Any) -> list[Record]:
    """Return routes that are named by their numbers, as those of the rules of an HTTPRoute."""
    return [UPSTREAM_RECORD, *(route(number, path, **fields) for number, path in enumerate(paths))]


class Watched(Stage):
    """A stage that notes which paths have a route after each write."""

    def __init__(self, records: list[Record]) -> None:
        super().__init__(records)
        self.seen: list[set[str]] = []
        put, delete = self.backend.put, self.backend.delete

        async def noted_put(record: Record) -> bool:
            try:
                return await put(record)
            finally:
                self.seen.append(self.paths())

        async def noted_delete(key: RecordKey) -> bool:
            try:
                return await delete(key)
            finally:
                self.seen.append(self.paths())

        self.backend.put, self.backend.delete = noted_put, noted_delete  # type: ignore[method-assign]

    def paths(self) -> set[str]:
        return {str(body["uri"]) for key, body in self.gateway.stored.items() if key.kind == "routes"}

    async def change(self, records: list[Record], seconds: float = 5.0) -> set[str]:
        """Replace the records of an owner; return the paths that had a route at every moment meanwhile."""
        self.seen, former = [self.paths()], Former("", dict(self.wanted.records))
        self.sync.mark_dirty(self.wanted.replace(records), former=former)
        await asyncio.sleep(seconds)
        return set.intersection(*self.seen)


EDITS = (
    ("/a", "/b", "/*"),
    ("/new", "/a", "/b", "/*"),
    ("/new", "/other", "/third", "/a", "/b", "/*"),
    ("/a", "/b", "/*"),
    ("/x", "/b", "/a", "/*"),
    ("/b", "/*"),
)


@pytest.mark.parametrize("edit", list(pairwise(EDITS)))
def test_a_path_of_both_versions_has_a_route_at_every_moment(
    play: Play, edit: tuple[tuple[str, ...], tuple[str, ...]]
) -> None:
    async def story() -> None:
        before, after = edit
        stage = Watched(rules(*before))
        async with stage.running():
            kept = await stage.change(rules(*after))
            assert kept == set(before) & set(after)
            assert stage.paths() == set(after)

    play(story())


@on_stage
async def test_routes_that_exchange_their_paths_are_written() -> None:
    stage = Watched(rules("/a", "/b", "/c", "/*"))
    async with stage.running():
        await stage.change(rules("/b", "/c", "/a", "/*"))
        assert {record.key: record.body for record in rules("/b", "/c", "/a", "/*")} == stage.gateway.stored
        assert stage.sync.idle()


@on_stage
async def test_routes_in_several_cycles_are_written() -> None:
    stage = Watched(rules("/a", "/b", "/a", "/b"))
    async with stage.running():
        await stage.change(rules("/b", "/a", "/b", "/a"))
        assert {record.key: record.body for record in rules("/b", "/a", "/b", "/a")} == stage.gateway.stored
        assert stage.sync.idle()


@on_stage
async def test_a_route_keeps_its_path_while_the_gateway_rejects_the_one_that_takes_it_over() -> None:
    stage = Watched(rules("/a", "/b", "/*"))
    bad = [UPSTREAM_RECORD, route(0, "/b", bad=True), route(1, "/*")]
    async with stage.running():
        kept = await stage.change(bad, seconds=100)
        assert kept == {"/a", "/b", "/*"}
        assert stage.gateway.stored[RecordKey("routes", "r1")] == route(1, "/b").body
        why = "waits for routes/r0, which the gateway rejected: routes/r0 is bad"
        assert stage.sync.record_state(RecordKey("routes", "r1")) == RecordState("waiting", why)
        await stage.change(rules("/b", "/*"))
        assert stage.paths() == {"/b", "/*"}
        assert stage.sync.idle()


@on_stage
async def test_a_route_is_not_deleted_while_the_gateway_rejects_the_one_that_takes_its_path_over() -> None:
    stage = Watched(rules("/a", "/b"))
    async with stage.running():
        assert await stage.change([UPSTREAM_RECORD, route(0, "/b", bad=True)], seconds=100) == {"/a", "/b"}
        await stage.change(rules())
        assert stage.paths() == set()


@on_stage
async def test_a_route_keeps_its_path_while_the_response_to_another_write_is_lost() -> None:
    stage = Watched(rules("/a", "/b", "/*"))
    async with stage.running():
        failing = FailingBackend(stage, RecordKey("routes", "r3"), GatewayUnavailable("no response", sent=True))
        assert await stage.change(rules("/new", "/a", "/b", "/*"), seconds=1) == {"/a", "/b", "/*"}
        failing.error = None
        await asyncio.sleep(5)
        assert stage.paths() == {"/new", "/a", "/b", "/*"}


@on_stage
async def test_routes_of_different_namespaces_do_not_wait_for_each_other() -> None:
    stage = Watched(rules("/a", "/b"))
    stage.wanted.namespaces = {RecordKey("routes", "r0"): "one", RecordKey("routes", "r1"): "two"}
    async with stage.running():
        await stage.change([UPSTREAM_RECORD, route(0, "/b", bad=True), route(1, "/x")], seconds=100)
        assert stage.paths() == {"/a", "/x"}


@on_stage
async def test_a_deleted_object_does_not_wait_for_the_mistake_of_another_one() -> None:
    stage = Watched(rules("/a", "/b"))
    async with stage.running():
        stage.want(UPSTREAM_RECORD, route(0, "/b", bad=True))
        await asyncio.sleep(100)
        assert stage.paths() == {"/a"}
