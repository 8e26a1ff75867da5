"""A gateway, or a proxy in front of one, that redirects: the target is reported and not followed."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import httpx
import pytest
import structlog
from pydantic import SecretStr
from structlog.testing import capture_logs

from apisix_ingress.errors import GatewayRedirected, GatewayRejected
from apisix_ingress.gateway.adminapi.admin_key import SETTINGS, Fields
from apisix_ingress.gateway.adminapi.client import AdminClient, AdminKey
from apisix_ingress.gateway.adminapi.redirects import STATUSES
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Record
from tests.fakes.gateway import FakeBackend, make_record
from tests.unit.apisix_ingress.gateway.adminapi.replies import make_backend
from tests.unit.apisix_ingress.gateway.adminapi.transport.servers import OK, Behaviour, read_request, serving
from tests.unit.apisix_ingress.gateway.sync.stage import (
    APPLIED,
    OTHER,
    UPSTREAM,
    UPSTREAM_RECORD,
    FailingBackend,
    Stage,
    many,
    on_stage,
)

Call = Callable[[AdminClient], Awaitable[object]]
ROUTE = RecordKey("routes", "1a2b")
ITSELF = "the address of the Admin API itself, as http://gateway:9180/apisix/admin"
KEY = "sesame-key"


def redirected_client(status: int, location: str | None, *, fields: Fields = SETTINGS) -> AdminClient:
    headers = {} if location is None else {"Location": location}
    return make_backend(lambda request: httpx.Response(status, headers=headers), fields=fields)


async def reported(call: Awaitable[object]) -> str:
    with pytest.raises(GatewayRedirected) as caught:
        await call
    assert not caught.value.sent
    return str(caught.value)


@pytest.mark.parametrize("status", sorted(STATUSES))
async def test_a_redirect_is_reported_with_its_target_and_the_remedy(status: int) -> None:
    backend = redirected_client(status, "https://gw.example:9443/apisix/admin/routes/1a2b")
    got = await reported(backend.put(make_record(ROUTE)))
    where = "https://gw.example:9443/apisix/admin"
    want = f"redirected to {where}/routes/1a2b (HTTP {status}), which is not followed: set admin_url to {where}"
    assert got == f"PUT routes/1a2b: {want}"


@pytest.mark.parametrize(
    ("call", "path"),
    [
        (lambda backend: backend.delete(ROUTE), "/apisix/admin/routes/1a2b"),
        (lambda backend: backend.label(ROUTE, {"a": "b"}), "/apisix/admin/routes/1a2b"),
        (AdminClient.probe, "/apisix/admin/routes?page=1&page_size=10"),
        (lambda backend: backend.list_managed(()), "/apisix/admin/ssls"),
        (lambda backend: backend.bodies("services"), "/apisix/admin/services"),
        (lambda backend: backend.read("plugins?all=true"), "/apisix/admin/plugins?all=true"),
    ],
)
async def test_every_request_reports_a_redirect(call: Call, path: str) -> None:
    assert (await reported(call(redirected_client(301, f"https://gw{path}")))).endswith(
        ": set admin_url to https://gw/apisix/admin"
    )


@pytest.mark.parametrize(
    ("location", "shown", "remedy"),
    [
        ("/other/routes/1a2b", "to http://gateway/other/routes/1a2b", "http://gateway/other"),
        ("//gw/routes/1a2b", "to http://gw/routes/1a2b", "http://gw"),
        ("HTTPS://[::1]:9443/a/routes/1a2b", "to https://[::1]:9443/a/routes/1a2b", "https://[::1]:9443/a"),
        ("https://u:p4ss@gw/a/routes/1a2b?k=v#f", "to https://gw/a/routes/1a2b", "https://gw/a"),
        ("https://sso/login;id=s3cret?back=s3cret", "to https://sso/login", ITSELF),
        (f"https://sso/{KEY}/routes/1a2b", "to https://sso/***/routes/1a2b", ITSELF),
        ("https://gw/a b/routes/1a2b", "to https://gw/a b/routes/1a2b", ITSELF),
        ("http://gateway/apisix/admin/routes/1a2b", "to http://gateway/apisix/admin/routes/1a2b", ITSELF),
        ("http://gateway/apisix/admin/routes/1a2b/", "to http://gateway/apisix/admin/routes/1a2b/", ITSELF),
        ("https://[gw/routes/1a2b", "without an address", ITSELF),
        ("https://gw:99999/routes/1a2b", "without an address", ITSELF),
        ("mailto:admin", "without an address", ITSELF),
        ("", "without an address", ITSELF),
        (None, "without an address", ITSELF),
    ],
)
async def test_address_is_shown_without_what_may_be_secret(location: str | None, shown: str, remedy: str) -> None:
    got = await reported(redirected_client(302, location).put(make_record(ROUTE)))
    assert got == f"PUT routes/1a2b: redirected {shown} (HTTP 302), which is not followed: set admin_url to {remedy}"


async def test_the_field_to_set_is_the_source_of_the_address() -> None:
    backend = redirected_client(
        308, "https://gw/a/routes/1a2b", fields=Fields("spec.admin.baseURL", "spec.admin.adminKey")
    )
    assert (await reported(backend.delete(ROUTE))).endswith(": set spec.admin.baseURL to https://gw/a")


@pytest.mark.parametrize("status", [300, 304])
async def test_other_statuses_do_not_redirect(status: int) -> None:
    with pytest.raises(GatewayRejected):
        await redirected_client(status, "https://gw/").put(make_record(ROUTE))


async def test_write_cut_off_and_then_redirected_may_have_been_carried_out() -> None:
    cut = [httpx.RemoteProtocolError("cut")]

    def handle(request: httpx.Request) -> httpx.Response:
        if cut:
            raise cut.pop()
        return httpx.Response(307, headers={"Location": "https://gw/routes/1a2b"})

    carrier = httpx.MockTransport(handle)
    key = AdminKey(lambda: SecretStr(KEY))
    with pytest.raises(GatewayRedirected) as caught:
        await AdminClient("http://g", key, controller="c", timeout=5.0, transport=carrier).put(make_record(ROUTE))
    assert caught.value.sent


def redirecting(target: str, heads: list[bytes]) -> Behaviour:
    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head, _ = await read_request(reader)
            heads.append(head)
            place = head.split(b" ")[1]
            writer.write(b"HTTP/1.1 307 x\r\nContent-Length: 0\r\nLocation: %s%s\r\n\r\n" % (target.encode(), place))

    return behave


@pytest.mark.parametrize("size", [10, 100_000], ids=["small", "large"])
async def test_a_redirect_is_requested_once_and_not_followed(size: int) -> None:
    heads: list[bytes] = []
    followed: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        followed.append((await read_request(reader))[0])
        writer.write(OK)

    async with serving(answer) as target, serving(redirecting(target, heads)) as url:
        key = AdminKey(lambda: SecretStr(KEY))
        backend = AdminClient(f"{url}/admin", key, controller="c", timeout=5.0, concurrency=1)
        got = await reported(backend.put(make_record(ROUTE, desc="x" * size)))
        await backend.aclose()
    assert got.endswith(f"set admin_url to {target}/admin")
    assert (len(heads), followed) == (1, [])


MOVED = GatewayRedirected("redirected to https://gw: set admin_url to https://gw", status=301, sent=False)


class Redirecting(FakeBackend):
    """A gateway behind a proxy that redirects while this is enabled."""

    moved = False

    async def put(self, record: Record) -> bool:
        self.check()
        return await super().put(record)

    async def probe(self) -> None:
        await super().probe()
        self.check()

    def check(self) -> None:
        if self.moved:
            raise MOVED


def redirecting_stage(*records: Record) -> tuple[Stage, Redirecting]:
    stage = Stage(records)
    stage.backend = backend = Redirecting(stage.gateway)
    stage.sync = stage.new_sync()
    return stage, backend


@on_stage
async def test_cluster_that_redirects_gets_few_probes_and_catches_up() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    stage, backend = redirecting_stage()
    with capture_logs() as logs:
        async with stage.running():
            backend.moved = True
            stage.want(*many(100))
            await asyncio.sleep(300)
            state = stage.sync.record_state(RecordKey("routes", "many7"))
            assert (state.kind, state.message, state.is_away) == ("unreachable", str(MOVED), False)
            assert len(stage.notes.writes) <= 3 + 4
            assert stage.gateway.probes <= 300 / 2
            backend.moved = False
            await asyncio.sleep(10)
            assert len(stage.gateway.stored) == 100
    shut = [(line["event"], line["error"], "remedy" in line) for line in logs]
    assert shut == [("cluster.redirects", str(MOVED), False)]


@on_stage
async def test_a_redirected_record_affects_only_itself() -> None:
    stage = Stage([UPSTREAM_RECORD])
    failing = FailingBackend(stage, UPSTREAM, MOVED)
    async with stage.running():
        await asyncio.sleep(120)
        stage.want(UPSTREAM_RECORD, make_record(OTHER))
        await asyncio.sleep(1)
        assert stage.sync.record_state(OTHER) == APPLIED
        assert stage.sync.record_state(UPSTREAM).message == str(MOVED)
        assert failing.calls <= 120 / 2.5 + 10
        failing.error = None
        await asyncio.sleep(10)
        assert stage.sync.record_state(UPSTREAM) == APPLIED
    assert stage.notes.breakers == []
