"""The engine and two standalone gateways: development gateways that keep their records in memory, over real HTTP."""

import asyncio
import contextlib
import json
import logging
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial

import pytest
import structlog
from pydantic import SecretStr

from apisix_ingress.errors import GatewayUnavailable
from apisix_ingress.gateway.adminapi.admin_key import SETTINGS
from apisix_ingress.gateway.adminapi.client import AdminKey
from apisix_ingress.gateway.backend import Backend
from apisix_ingress.gateway.standalone.admin import StandaloneAdmin
from apisix_ingress.gateway.standalone.document import parsed
from apisix_ingress.gateway.standalone.endpoint import Endpoint
from apisix_ingress.gateway.standalone.fleet import CHECK_SECONDS, Fleet, Resolve
from apisix_ingress.gateway.standalone.group import StandaloneGroup
from apisix_ingress.gateway.standalone.resolver import urls_of_gateways
from apisix_ingress.gateway.sync.cluster_sync import ClusterSync
from apisix_ingress.gateway.sync.config import SyncConfig
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Record
from apisix_ingress.runtime.clock import MonotonicClock
from apisix_ingress.runtime.term import Term
from e2e.devgateway.process import DevGateway
from tests.fakes.gateway import FakeWanted, make_record
from tests.waiting import until

UPSTREAM = make_record(
    RecordKey("upstreams", "u1"), type="roundrobin", nodes=[{"host": "10.0.0.1", "port": 80, "weight": 1}]
)
ROUTES = [make_record(RecordKey("routes", f"r{number}"), uri=f"/{number}", upstream_id="u1") for number in range(20)]
TIMEOUT = 5.0


@pytest.fixture(scope="module")
def started() -> Iterator[tuple[DevGateway, DevGateway]]:
    with DevGateway(standalone=True) as one, DevGateway(standalone=True) as two:
        yield one, two


@pytest.fixture
def gateways(started: tuple[DevGateway, DevGateway]) -> Iterator[tuple[DevGateway, DevGateway]]:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    for gateway in started:
        gateway.clear_faults()
        gateway.wipe()
    yield started
    structlog.reset_defaults()


def document(gateway: DevGateway) -> JsonObject:
    """Return what a gateway has."""
    request = urllib.request.Request(f"{gateway.admin_url}/configs", headers={"X-API-KEY": gateway.admin_key})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
        found: JsonObject = json.load(response)
    return found


def ids(gateway: DevGateway, kind: str) -> set[str]:
    return {item["id"] for item in document(gateway).get(kind, ())}


@contextlib.asynccontextmanager
async def connected(*gateways: DevGateway, resolve: Resolve | None = None) -> AsyncIterator[StandaloneGroup]:
    clock, key = MonotonicClock(), AdminKey(lambda: SecretStr(gateways[0].admin_key))
    admin = StandaloneAdmin(gateways[0].admin_url, key, controller="apisix-ingress", timeout=TIMEOUT / 2)

    def connect(url: str) -> Endpoint:
        return Endpoint(admin.elsewhere(url, key, SETTINGS))

    resolve = resolve or partial(urls_of_gateways, [gateway.admin_url for gateway in gateways])
    fleet = Fleet("c1", connect, resolve, seconds=TIMEOUT / 2, clock=clock)
    try:
        yield StandaloneGroup("c1", fleet, controller="apisix-ingress", timeout=TIMEOUT, clock=clock)
    finally:
        await admin.aclose()


@contextlib.asynccontextmanager
async def leading(backend: Backend, wanted: FakeWanted) -> AsyncIterator[ClusterSync]:
    clock, ready = MonotonicClock(), asyncio.Event()
    sync = ClusterSync(SyncConfig("c1", wanted, clock=clock, concurrency=100), backend)
    ready.set()
    task = asyncio.create_task(sync.run(Term(clock, holder="test"), ready))
    try:
        yield sync
    finally:
        task.cancel()
        await asyncio.wait([task])


async def until_applied(sync: ClusterSync, records: Sequence[Record]) -> None:
    def are_applied() -> bool:
        return sync.idle() and all(sync.record_state(record.key).kind == "applied" for record in records)

    await until(are_applied, "the records", state=sync.counts)


async def test_gateways_that_are_found_later_get_every_record(gateways: tuple[DevGateway, DevGateway]) -> None:
    found: list[str] = []

    async def resolve() -> list[str]:
        if not found:
            raise GatewayUnavailable("no such host", sent=False)
        return found

    async with connected(*gateways, resolve=resolve) as backend, leading(backend, FakeWanted([UPSTREAM])) as sync:
        await until(lambda: sync.outage is not None, "the outage")
        await asyncio.sleep(2 * CHECK_SECONDS)  # the checks of gateways go on
        found.extend(gateway.admin_url for gateway in gateways)
        await until_applied(sync, [UPSTREAM])

        assert [ids(gateway, "upstreams") for gateway in gateways] == [{"u1"}] * 2


def test_a_document_that_is_nested_too_deeply_is_an_error() -> None:
    deep = b"[" * 500 + b"]" * 500
    content = b'{"consumer_groups_conf_version":1,"routes":[{"id":"a","x":%b}]}' % deep
    with pytest.raises(GatewayUnavailable, match="routes that cannot be read"):
        parsed(content)


async def test_the_first_document_of_empty_gateways_has_every_valid_record(
    gateways: tuple[DevGateway, DevGateway],
) -> None:
    bad = make_record(RecordKey("routes", "bad"), uri=1, upstream_id="u1")
    records = [UPSTREAM, *ROUTES, bad]
    async with connected(*gateways) as backend, leading(backend, FakeWanted(records)) as sync:
        await until_applied(sync, [UPSTREAM, *ROUTES])

        for gateway in gateways:
            assert ids(gateway, "routes") == {record.key.id for record in ROUTES}
            assert ids(gateway, "upstreams") == {"u1"}
            assert len([line for line in gateway.write_log() if line["path"] == "/apisix/admin/configs"]) == 1


async def test_a_gateway_that_restarts_gets_its_records_again(gateways: tuple[DevGateway, DevGateway]) -> None:
    records = [UPSTREAM, *ROUTES]
    async with connected(*gateways) as backend, leading(backend, FakeWanted(records)) as sync:
        await until_applied(sync, records)
        gateways[1].restart()

        await until(lambda: len(ids(gateways[1], "routes")) == len(ROUTES), "the routes of the restarted gateway")


async def test_an_edit_changes_the_version_of_its_kind_only(gateways: tuple[DevGateway, DevGateway]) -> None:
    wanted = FakeWanted([UPSTREAM, *ROUTES])
    async with connected(*gateways) as backend, leading(backend, wanted) as sync:
        await until_applied(sync, [UPSTREAM, *ROUTES])
        before = document(gateways[0])
        edited = make_record(UPSTREAM.key, type="roundrobin", nodes=[{"host": "10.0.0.2", "port": 80, "weight": 1}])
        sync.mark_dirty(wanted.replace([edited, *ROUTES]))
        await until_applied(sync, [edited])
        after = document(gateways[0])

    changed = {name for name in before if before[name] != after[name]}
    assert changed - {"X-Digest", "X-Last-Modified"} == {"upstreams", "upstreams_conf_version"}


async def test_one_bad_record_harms_only_itself(gateways: tuple[DevGateway, DevGateway]) -> None:
    bad = make_record(RecordKey("routes", "bad"), uri=1, upstream_id="u1")
    records = [UPSTREAM, *ROUTES, bad]
    async with connected(*gateways) as backend, leading(backend, FakeWanted(records)) as sync:
        await until_applied(sync, [UPSTREAM, *ROUTES])

        state = sync.record_state(bad.key)
        assert (state.kind, "wrong type: expected string" in state.message) == ("rejected", True)
        assert [ids(gateway, "routes") for gateway in gateways] == [{record.key.id for record in ROUTES}] * 2


async def test_a_gateway_that_hangs_does_not_delay_the_others_for_long(
    gateways: tuple[DevGateway, DevGateway],
) -> None:
    records = [UPSTREAM, *ROUTES]
    wanted = FakeWanted(records[:1])
    async with connected(*gateways) as backend, leading(backend, wanted) as sync:
        await until_applied(sync, records[:1])
        gateways[1].pause()
        try:
            sync.mark_dirty(wanted.replace(records))
            await until_applied(sync, records)
            assert len(ids(gateways[0], "routes")) == len(ROUTES)
        finally:
            gateways[1].resume()

        await until(lambda: len(ids(gateways[1], "routes")) == len(ROUTES), "the routes of the other gateway")


async def test_records_of_other_clients_stay(gateways: tuple[DevGateway, DevGateway]) -> None:
    theirs = {"id": "theirs", "uri": "/theirs", "upstream": {"type": "roundrobin", "nodes": {"10.0.0.9:80": 1}}}
    put(gateways[0], {"routes": [theirs]})
    async with connected(*gateways) as backend, leading(backend, FakeWanted([UPSTREAM])) as sync:
        await until_applied(sync, [UPSTREAM])

        await until(lambda: ids(gateways[1], "routes") == {"theirs"}, "the route of the other client")
        put(gateways[0], {"routes": [theirs, {**theirs, "id": "more"}]})
        for gateway in gateways:
            await until(lambda: ids(gateway, "routes") == {"theirs", "more"}, "the other route")  # noqa: B023
            await until(lambda: ids(gateway, "upstreams") == {"u1"}, "our upstream")  # noqa: B023


async def test_a_document_of_a_former_leader_is_refused(gateways: tuple[DevGateway, DevGateway]) -> None:
    async with connected(*gateways) as former, leading(former, FakeWanted([UPSTREAM])) as sync:
        await until_applied(sync, [UPSTREAM])
        stale = document(gateways[0])
    async with connected(*gateways) as backend, leading(backend, FakeWanted([UPSTREAM, *ROUTES])) as sync:
        await until_applied(sync, ROUTES)

        assert put(gateways[0], stale) == 400
        assert len(ids(gateways[0], "routes")) == len(ROUTES)


async def test_records_of_a_term_before_are_kept_or_deleted(gateways: tuple[DevGateway, DevGateway]) -> None:
    async with connected(*gateways) as backend, leading(backend, FakeWanted([UPSTREAM, *ROUTES])) as sync:
        await until_applied(sync, ROUTES)
    async with connected(*gateways) as backend, leading(backend, FakeWanted([UPSTREAM, *ROUTES[1:]])) as sync:
        await until_applied(sync, ROUTES[1:])

        for gateway in gateways:
            await until(lambda: len(ids(gateway, "routes")) == len(ROUTES) - 1, "the deletion")  # noqa: B023


def put(gateway: DevGateway, body: JsonObject) -> int:
    """Write a document as another client; return the status."""
    kept = {name: value for name, value in body.items() if not name.startswith("X-")}
    request = urllib.request.Request(
        f"{gateway.admin_url}/configs",
        json.dumps(kept).encode(),
        {"X-API-KEY": gateway.admin_key, "X-Digest": str(hash(json.dumps(body)))},
        method="PUT",
    )
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code
