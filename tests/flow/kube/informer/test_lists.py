"""Lists of reflectors: after the first, only complete lists have an effect; deletes without an event are checked."""

from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from apisix_ingress.kube.client.api import KubeApi, Page
from apisix_ingress.kube.informer.store_writer import StoreWriter
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.objects import KubeObject
from tests.fakes.kube.apiserver import FakeApiServer, Fault, error_event
from tests.flow.kube.informer.reflecting import put_routes, reflecting, route


async def test_all_pages_are_read_before_the_store_is_synced(server: FakeApiServer, tmp_path: Path) -> None:
    want = put_routes(server, 35)
    async with reflecting(server, tmp_path) as harness:
        await harness.reflector.synced.wait()
        assert harness.names() == want
        assert harness.store.synced
    assert server.count("list", "apisixroutes") == 4


async def test_a_page_is_requested_while_the_one_before_is_decoded(
    server: FakeApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_routes(server, 35)
    steps: list[str] = []
    page, decode = KubeApi.page, StoreWriter.decode

    def noted_page(api: KubeApi, path: str, **rest: Any) -> Awaitable[Page]:
        steps.append("page")
        return page(api, path, **rest)

    def noted_decode(writer: StoreWriter, raw: JsonObject) -> KubeObject | None:
        steps.append("decode")
        return decode(writer, raw)

    monkeypatch.setattr(KubeApi, "page", noted_page)
    monkeypatch.setattr(StoreWriter, "decode", noted_decode)
    async with reflecting(server, tmp_path) as harness:
        await harness.reflector.synced.wait()
    assert steps == ["page", *(["page", *["decode"] * 10] * 3), *["decode"] * 5]


async def test_a_list_that_expires_between_pages_starts_again(server: FakeApiServer, tmp_path: Path) -> None:
    want = put_routes(server, 25)
    third = Fault("list", "apisixroutes", status=410, when=lambda seen: "continue" in seen.query, times=1)
    server.faults.append(third)
    async with reflecting(server, tmp_path) as harness:
        await harness.reflector.synced.wait()
        assert harness.names() == want
        assert harness.notes.lists == [25]


async def test_the_first_list_is_stored_page_by_page(server: FakeApiServer, tmp_path: Path) -> None:
    put_routes(server, 25)
    second = Fault("list", "apisixroutes", status=500, when=lambda seen: "continue" in seen.query)
    server.faults.append(second)
    async with reflecting(server, tmp_path) as harness:
        await harness.until(lambda: bool(harness.notes.failures), "the failure of the second page")
        assert (len(harness.store), harness.store.synced) == (10, False)
        for number in range(9):
            server.forget("apisixroutes", f"r{number:03}")
        server.faults.remove(second)
        await harness.reflector.synced.wait()
        assert harness.names() == {f"r{number:03}" for number in range(9, 25)}
        assert harness.notes.holds == []


@pytest.mark.parametrize("way", ["stream", "status", "twice"])
async def test_deletes_missed_because_of_a_410_are_found(server: FakeApiServer, tmp_path: Path, way: str) -> None:
    put_routes(server, 5)
    async with reflecting(server, tmp_path) as harness:
        await harness.until_watching()
        server.forget("apisixroutes", "r001")
        server.compact()
        if way == "twice":
            server.faults.append(Fault("watch", "apisixroutes", status=410, times=2))
        server.order(harness.plural, error_event(410) if way == "stream" else "end")
        await harness.until_names("r000", "r002", "r003", "r004")
        await harness.until_watching()
    assert harness.notes.failures.count("gone") == (2 if way == "twice" else 1)
    assert len(harness.notes.lists) == 1 + harness.notes.failures.count("gone")


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
async def test_incomplete_lists_have_no_effect(server: FakeApiServer, tmp_path: Path, fault: Fault) -> None:
    want = put_routes(server, 15)
    async with reflecting(server, tmp_path) as harness:
        await harness.until_watching()
        server.compact()
        server.put(route("r000", http=[]))
        server.faults.append(fault)
        server.version += 1
        server.compact()
        server.order(harness.plural, "end")
        await harness.until(lambda: len(harness.notes.lists) == 2, "a second list")
        assert harness.names() == want
        assert "delete" not in harness.notes.changes


@pytest.mark.parametrize("count", [40, 3])
async def test_only_two_empty_lists_delete_objects(server: FakeApiServer, tmp_path: Path, count: int) -> None:
    want = put_routes(server, count)
    empty = Fault("list", status=200, body='{"metadata": {"resourceVersion": "9000"}, "items": []}', times=1)
    async with reflecting(server, tmp_path) as harness:
        await harness.until_watching()
        server.faults.append(empty)
        server.order(harness.plural, error_event(410))
        await harness.until(lambda: len(harness.notes.lists) == 3, "the list that clears the suspicion")
        assert (harness.names(), harness.notes.holds) == (want, [count, 0])
        assert "delete" not in harness.notes.changes
        await harness.until_watching()
        for name in want:
            server.forget(harness.plural, name)
        server.order(harness.plural, error_event(410))
        await harness.until_names()
        assert harness.notes.holds == [count, 0, count, 0]


async def test_few_missing_objects_are_deleted_immediately(server: FakeApiServer, tmp_path: Path) -> None:
    put_routes(server, 40)
    async with reflecting(server, tmp_path) as harness:
        await harness.until_watching()
        for number in range(20):
            server.forget("apisixroutes", f"r{number:03}")
        server.order(harness.plural, error_event(410))
        await harness.until(lambda: len(harness.store) == 20, "20 objects")
        assert harness.notes.holds == []
