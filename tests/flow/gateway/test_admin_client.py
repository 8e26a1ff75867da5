"""The Admin API client and the engine against the development gateway: real HTTP, a real etcd, faults on the wire."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest
import structlog
from pydantic import SecretStr

from apisix_ingress.errors import GatewayRejected, GatewayUnauthorized, GatewayUnavailable
from apisix_ingress.gateway.adminapi.client import AdminClient, AdminKey
from apisix_ingress.gateway.backend import DependencyPending, ObservedRecord
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Record
from e2e.devgateway.process import DevGateway
from tests.fakes.gateway import FakeWanted, make_record
from tests.flow.gateway.engine import leading, until_applied
from tests.waiting import until

UPSTREAM = RecordKey("upstreams", "u1")
ROUTE = RecordKey("routes", "r1")
UPSTREAM_RECORD = make_record(UPSTREAM, type="roundrobin", nodes=[{"host": "10.0.0.1", "port": 80, "weight": 1}])
ROUTE_RECORD = make_record(ROUTE, uri="/a", upstream_id="u1", plugins={"cors": {}})
PATIENCE = 20.0
"""Seconds within which the engine must have converged; it takes far less."""


@pytest.fixture(scope="module")
def started() -> Iterator[DevGateway]:
    with DevGateway() as gateway:
        yield gateway


@pytest.fixture
def gateway(started: DevGateway) -> Iterator[DevGateway]:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    started.clear_faults()
    started.wipe()
    yield started
    structlog.reset_defaults()


@contextlib.asynccontextmanager
async def connected(gateway: DevGateway, *, key: str = "", timeout: float = 2.0) -> AsyncIterator[AdminClient]:
    backend = AdminClient(
        gateway.admin_url,
        AdminKey(lambda: SecretStr(key or gateway.admin_key)),
        controller="apisix-ingress",
        timeout=timeout,
        concurrency=16,
        tls=None,
    )
    try:
        yield backend
    finally:
        await backend.aclose()


def writes(gateway: DevGateway) -> list[tuple[str, str]]:
    return [(line["method"], line["path"].removeprefix("/apisix/admin/")) for line in gateway.write_log()]


async def test_written_records_are_listed_as_equal_and_managed(gateway: DevGateway) -> None:
    gateway.put("/routes/theirs", {"uri": "/theirs", "upstream": {"nodes": {"10.0.0.9:80": 1}}})
    async with connected(gateway) as backend:
        await backend.probe()
        await backend.put(UPSTREAM_RECORD)
        await backend.put(ROUTE_RECORD)
        got = await backend.list_managed(())
        assert got.owned == {
            UPSTREAM: ObservedRecord(UPSTREAM_RECORD.digest, frozenset(), "name-u1"),
            ROUTE: ObservedRecord(ROUTE_RECORD.digest, frozenset({UPSTREAM}), "name-r1"),
        }
        assert got.foreign == {RecordKey("routes", "theirs")}
        await backend.delete(ROUTE)
        await backend.delete(ROUTE)
        await backend.delete(UPSTREAM)
        assert (await backend.list_managed(())).owned == {}


@pytest.mark.parametrize(
    ("call", "want", "words"),
    [
        (lambda b: b.put(make_record(ROUTE, uri=1)), GatewayRejected, 'property "uri" validation failed: wrong type'),
        (lambda b: b.put(ROUTE_RECORD), DependencyPending, "failed to fetch upstream info by upstream id"),
        (lambda b: b.put(make_record(UPSTREAM, desc="x" * 1_600_000)), GatewayRejected, "request size"),
    ],
)
async def test_a_refusal_quotes_the_gateways_error(
    gateway: DevGateway, call: Callable[[AdminClient], Awaitable[None]], want: type[Exception], words: str
) -> None:
    async with connected(gateway) as backend:
        with pytest.raises(want, match=words):
            await call(backend)


async def test_a_record_in_use_is_not_deleted_and_that_is_not_a_rejection(gateway: DevGateway) -> None:
    async with connected(gateway) as backend:
        await backend.put(UPSTREAM_RECORD)
        await backend.put(ROUTE_RECORD)
        with pytest.raises(DependencyPending, match="is still using it now"):
            await backend.delete(UPSTREAM)


async def test_wrong_key_is_unauthorized(gateway: DevGateway) -> None:
    async with connected(gateway, key="wrong-admin-key") as backend:
        with pytest.raises(GatewayUnauthorized, match="set admin_key to") as caught:
            await backend.put(UPSTREAM_RECORD)
        assert "wrong-admin-key" not in str(caught.value)


@pytest.mark.parametrize(("action", "sent"), [("reset", True), ("drop_reply", True), ("hang", True)])
async def test_a_write_without_a_reply_may_have_been_applied(gateway: DevGateway, action: str, sent: bool) -> None:
    gateway.add_fault(action, method="PUT")
    async with connected(gateway, timeout=0.5) as backend:
        with pytest.raises(GatewayUnavailable) as caught:
            await backend.put(UPSTREAM_RECORD)
    assert caught.value.sent == sent


async def test_a_connection_closed_after_a_thousand_requests_causes_no_error(gateway: DevGateway) -> None:
    async with connected(gateway) as backend:

        async def put_many() -> None:
            for _ in range(1100):
                await backend.put(UPSTREAM_RECORD)

        await asyncio.gather(put_many(), put_many())
    assert len(gateway.write_log()) == 2200


async def test_a_stopped_gateway_did_not_receive_the_request() -> None:
    with DevGateway() as gateway:
        async with connected(gateway) as backend:
            await backend.put(UPSTREAM_RECORD)
            gateway.stop()
            with pytest.raises(GatewayUnavailable, match="ConnectError") as caught:
                await backend.probe()
            assert caught.value.status is None


async def test_gateway_without_streams_lists_the_other_kinds() -> None:
    stream_route = RecordKey("stream_routes", "s1")
    with DevGateway(stream=False) as gateway:
        async with connected(gateway) as backend:
            await backend.put(UPSTREAM_RECORD)
            got = await backend.list_managed(())
            assert set(got.owned) == {UPSTREAM}
            assert got.disabled == {"stream_routes"}
            with pytest.raises(GatewayRejected, match="stream mode is disabled"):
                await backend.put(make_record(stream_route, server_port=9100, upstream_id="u1"))


def world(count: int) -> list[Record]:
    upstreams = [
        make_record(RecordKey("upstreams", f"u{n}"), type="roundrobin", nodes=[{"host": "a", "port": n, "weight": 1}])
        for n in range(1, count + 1)
    ]
    routes = [make_record(RecordKey("routes", f"r{n}"), uri=f"/{n}", upstream_id=f"u{n}") for n in range(1, count + 1)]
    return [*routes, *upstreams]


async def test_engine_fills_a_gateway_once_and_a_second_one_finds_nothing_to_do(gateway: DevGateway) -> None:
    records = world(150)
    async with connected(gateway) as backend:
        async with leading(backend, FakeWanted(records)) as sync:
            await until_applied(sync, records)
        assert len(writes(gateway)) == 300
        wanted = FakeWanted(records)
        async with leading(backend, wanted) as sync:
            await until_applied(sync, records)
            assert len(writes(gateway)) == 300
            wanted.replace(())
            sync.mark_dirty([record.key for record in records])
            await until(sync.idle, "the end of writes", state=sync.counts)
        assert gateway.records("routes") == gateway.records("upstreams") == {}
        assert len(writes(gateway)) == 600


@pytest.mark.parametrize("action", ["reset", "drop_reply", "status", "hang"])
async def test_engine_converges_over_faults_on_the_wire(gateway: DevGateway, action: str) -> None:
    records = world(20)
    gateway.add_fault(action, method="PUT", path=".*/(u|r)[12]", times=4)
    async with connected(gateway, timeout=0.5) as backend, leading(backend, FakeWanted(records)) as sync:
        await until_applied(sync, records)
        assert len(gateway.records("routes")) == len(gateway.records("upstreams")) == 20


async def test_the_engine_continues_after_a_gateway_restart(gateway: DevGateway) -> None:
    records = world(100)
    async with connected(gateway) as backend, leading(backend, FakeWanted(records)) as sync:
        await until(lambda: sum(kind.applied for kind in sync.counts().values()) >= 50, "50 records", state=sync.counts)
        await asyncio.to_thread(gateway.kill)
        await asyncio.to_thread(gateway.start)
        await until_applied(sync, records)
        assert len(gateway.records("routes")) == 100


async def test_bodies_are_those_of_every_record_and_of_any_kind(gateway: DevGateway) -> None:
    gateway.put("/services/s1", {"hosts": ["a.example.org"]})
    async with connected(gateway) as backend:
        await backend.put(UPSTREAM_RECORD)
        services, upstreams = await backend.bodies("services"), await backend.bodies("upstreams")
        assert await backend.bodies("nonsense") is None
    assert services is not None
    assert upstreams is not None
    assert services["s1"]["hosts"] == ["a.example.org"]
    assert upstreams["u1"].items() >= UPSTREAM_RECORD.body.items()
    assert backend.version.startswith("APISIX/")


async def test_label_leaves_the_rest_of_a_record_unchanged(gateway: DevGateway) -> None:
    async with connected(gateway) as backend:
        await backend.put(Record(UPSTREAM, "", {**UPSTREAM_RECORD.body, "labels": {"team": "shop"}}))
        await backend.label(UPSTREAM, {"managed-by": "me"})
        after = await backend.bodies("upstreams")
        with pytest.raises(GatewayRejected, match="Key not found"):
            await backend.label(RecordKey("upstreams", "none"), {"managed-by": "me"})
    assert after is not None
    assert after["u1"]["nodes"] == UPSTREAM_RECORD.body["nodes"]
    assert after["u1"]["labels"] == {"team": "shop", "managed-by": "me"}
