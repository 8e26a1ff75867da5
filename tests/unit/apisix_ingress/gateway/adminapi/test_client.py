"""Requests of the Admin API client: when a write is complete, retried, cut off or given up (replies of APISIX 3.18)."""

import asyncio
import gc
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr

from apisix_ingress.errors import GatewayError, GatewayUnauthorized, GatewayUnavailable
from apisix_ingress.gateway.adminapi.client import AdminClient, AdminKey
from apisix_ingress.model.keys import RecordKey
from tests.unit.apisix_ingress.gateway.adminapi.replies import ROUTE, WRITTEN, make_backend, make_record, replying


async def test_put_sends_the_payload_with_the_key() -> None:
    seen: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(201, json=WRITTEN)

    record = make_record(uri="/a")
    await make_backend(handle).put(record)
    got = [(r.method, str(r.url), r.headers["x-api-key"], r.content) for r in seen]
    assert got == [("PUT", "http://gateway/apisix/admin/routes/1a2b", "sesame-key", record.payload)]


async def test_id_is_quoted_in_the_path() -> None:
    seen: list[bytes] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request.url.raw_path)
        return httpx.Response(200, json={"deleted": "1"})

    await make_backend(handle).delete(RecordKey("routes", "a/b"))
    assert seen == [b"/apisix/admin/routes/a%2Fb"]


async def test_delete_of_an_absent_record_succeeds() -> None:
    seen: list[httpx.URL] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request.url)
        return httpx.Response(404, json={"message": "Key not found"})

    await make_backend(handle).delete(ROUTE)
    assert [url.query for url in seen] == [b""]  # in particular no force


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (200, ""),
        (200, "<html>sign in</html>"),
        (200, '{"error_msg": "etcd is read-only"}'),
        (200, '{"message": "sign in first"}'),
        (200, '{"list": [], "total": 0}'),
        (200, '{"key": "/apisix/routes/1a2b", "val'),
        (200, '["key"]'),
        (204, ""),
        (101, "{}"),
    ],
)
async def test_a_write_is_complete_only_when_the_admin_api_confirms_it(status: int, text: str) -> None:
    backend = make_backend(replying(status, text))
    for write in (backend.put(make_record()), backend.delete(ROUTE), backend.label(ROUTE, {"a": "b"})):
        with pytest.raises(
            GatewayUnavailable, match=f"HTTP {status}, but .* not from an Admin API.*: check admin_url"
        ) as e:
            await write
        assert e.value.sent


@pytest.mark.parametrize(
    "body",
    [
        {"key": "/apisix/routes/1a2b", "value": {"uri": "/a"}},
        {"key": "/apisix/routes/1a2b", "deleted": "1"},
        {"action": "set", "node": {"key": "/apisix/routes/1a2b", "value": {"uri": "/a"}}},
        {},
    ],
)
async def test_write_is_done_when_the_reply_is_an_object_and_no_error(body: object) -> None:
    backend = make_backend(replying(200, body))
    assert [await backend.put(make_record()), await backend.delete(ROUTE)] == [False, False]


async def test_what_a_reply_says_instead_of_being_done_is_repeated_without_the_key() -> None:
    backend = make_backend(replying(200, {"error_msg": "no write for sesame-key"}))
    with pytest.raises(GatewayUnavailable) as caught:
        await backend.put(make_record())
    want = "PUT routes/1a2b: HTTP 200, but the response is not from an Admin API (no write for ***): check admin_url"
    assert str(caught.value) == want


NOWHERE = ["404 page not found", "", "<title>404 Not Found</title>", '{"error_msg": "404 Route Not Found"}', "[404]"]


@pytest.mark.parametrize("text", NOWHERE)
async def test_a_404_of_another_server_is_not_a_reply_of_the_admin_api(text: str) -> None:
    backend = make_backend(replying(404, text))
    for write in (backend.put(make_record()), backend.delete(ROUTE)):
        with pytest.raises(GatewayUnavailable, match=r"HTTP 404, but .* not from an Admin API.*: check admin_url"):
            await write


@pytest.mark.parametrize("text", NOWHERE)
async def test_delete_that_is_sent_again_is_not_done_by_anybodys_404(text: str) -> None:
    replies: Iterator[httpx.Response | Exception] = iter([httpx.ReadError("reset"), httpx.Response(404, text=text)])

    def handle(request: httpx.Request) -> httpx.Response:
        reply = next(replies)
        if isinstance(reply, Exception):
            raise reply
        return reply

    with pytest.raises(GatewayUnavailable) as caught:
        await make_backend(handle).delete(ROUTE)
    assert caught.value.sent


async def test_uncompressed_responses_are_requested() -> None:
    seen: list[str] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["accept-encoding"])
        return httpx.Response(200, json=WRITTEN)

    await make_backend(handle).put(make_record())
    assert seen == ["identity"]


@pytest.mark.parametrize(
    ("error", "sent", "tries"),
    [
        (httpx.ConnectError("refused"), False, 1),
        (httpx.ConnectTimeout("slow"), False, 1),
        (httpx.PoolTimeout("busy"), False, 1),
        (httpx.ReadTimeout("slow"), True, 1),
        (httpx.WriteTimeout("slow"), True, 1),
        (httpx.RemoteProtocolError("disconnected"), True, 3),
        (httpx.ReadError("reset"), True, 3),
    ],
)
async def test_a_failed_request_reports_whether_it_may_have_been_applied(
    error: httpx.TransportError, sent: bool, tries: int
) -> None:
    calls = 0

    def handle(request: httpx.Request) -> httpx.Response:
        nonlocal calls
        calls += 1
        raise error

    with pytest.raises(GatewayUnavailable) as caught:
        await make_backend(handle).put(make_record())
    assert (caught.value.sent, calls) == (sent, tries)


@pytest.mark.parametrize("failure", [httpx.RemoteProtocolError, httpx.ConnectError])
async def test_request_that_fails_leaves_nothing_to_the_garbage_collector(failure: type[httpx.TransportError]) -> None:
    """It runs rarely, and a gateway may be unreachable for hours."""

    class Away(failure):  # type: ignore[valid-type, misc]  # of this test alone
        pass

    def handle(request: httpx.Request) -> httpx.Response:
        raise Away("away")

    async def ask() -> str:
        try:
            await make_backend(handle).put(make_record())
        except GatewayUnavailable as error:
            return str(error)
        return ""

    gc.collect()
    gc.disable()
    try:
        said = await ask()
        left = [each for each in gc.get_objects() if isinstance(each, Away)]
    finally:
        gc.enable()
    assert (said.endswith("away"), left) == (True, [])


async def test_a_request_cut_off_and_then_rejected_is_treated_as_sent() -> None:
    errors: list[httpx.TransportError] = [httpx.ConnectError("refused"), httpx.RemoteProtocolError("cut")]

    def handle(request: httpx.Request) -> httpx.Response:
        raise errors.pop()

    with pytest.raises(GatewayUnavailable) as caught:
        await make_backend(handle).put(make_record())
    assert caught.value.sent


@pytest.mark.parametrize("status", [400, 401, 403, 425, 429, 503])
@pytest.mark.parametrize("verb", ["put", "delete"])
async def test_write_cut_off_and_then_refused_may_have_been_carried_out(status: int, verb: str) -> None:
    """The second request was rejected; the first one may have been received."""
    cut = [httpx.RemoteProtocolError("cut")]

    def handle(request: httpx.Request) -> httpx.Response:
        if cut:
            raise cut.pop()
        return httpx.Response(status, json={"error_msg": "no"}, headers={"Retry-After": "7"})

    backend = make_backend(handle)
    with pytest.raises(GatewayError) as caught:
        await (backend.put(make_record()) if verb == "put" else backend.delete(ROUTE))
    want = GatewayUnauthorized if status in (401, 403) else GatewayUnavailable
    assert (type(caught.value), caught.value.sent) == (want, True)
    assert getattr(caught.value, "retry_after", 7.0) == 7.0


async def test_delete_cut_off_and_then_not_found_was_carried_out() -> None:
    replies: list[httpx.Response | None] = [httpx.Response(404, json={"message": "Key not found"}), None]

    def handle(request: httpx.Request) -> httpx.Response:
        reply = replies.pop()
        if reply is None:
            raise httpx.RemoteProtocolError("disconnected")
        return reply

    assert await make_backend(handle).delete(ROUTE)
    assert replies == []


async def test_an_interrupted_request_is_repeated_and_its_first_attempt_reported() -> None:
    replies: list[httpx.Response | None] = [httpx.Response(200, json=WRITTEN), httpx.Response(200, json=WRITTEN), None]

    def handle(request: httpx.Request) -> httpx.Response:
        reply = replies.pop()
        if reply is None:
            raise httpx.RemoteProtocolError("disconnected")
        return reply

    backend = make_backend(handle)
    assert [await backend.put(make_record()), await backend.put(make_record())] == [True, False]
    assert replies == []


async def test_a_write_without_a_response_ends_after_its_timeout() -> None:
    async def silent(request: httpx.Request) -> httpx.Response:
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    key = AdminKey(lambda: SecretStr(""))
    transport = httpx.MockTransport(silent)
    backend = AdminClient("http://g", key, controller="c", timeout=0.01, transport=transport)
    with pytest.raises(GatewayUnavailable) as caught:
        await backend.delete(ROUTE)
    assert str(caught.value) == "DELETE routes/1a2b: no response within 0.01 s"
    assert caught.value.sent


async def test_a_probe_reports_a_refused_key() -> None:
    with pytest.raises(GatewayUnauthorized):
        await make_backend(replying(401, {"error_msg": "failed to check token"})).probe()
    await make_backend(replying(200, {"list": {}, "total": 0})).probe()


async def test_replaced_key_file_is_read_when_the_old_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("old-key")
    seen: list[str] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["x-api-key"])
        return httpx.Response(200 if seen[-1] == "new-key" else 401, json=WRITTEN)

    key = AdminKey(lambda: SecretStr(path.read_text()), str(path))
    backend = make_backend(handle, key=key)
    assert not backend.credentials_changed()
    with pytest.raises(GatewayUnauthorized):
        await backend.put(make_record())
    (tmp_path / "next").write_text("new-key")
    (tmp_path / "next").replace(path)
    assert backend.credentials_changed()
    await backend.put(make_record())
    await backend.put(make_record())
    assert seen == ["old-key", "old-key", "new-key", "new-key"]
    assert not backend.credentials_changed()


async def test_every_request_that_was_sent_with_the_old_key_is_repeated_with_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("old-key")
    arrived, replaced = asyncio.Semaphore(0), asyncio.Event()

    async def handle(request: httpx.Request) -> httpx.Response:
        key = request.headers["x-api-key"]
        arrived.release()
        await replaced.wait()
        return httpx.Response(200 if key == "new-key" else 401, json=WRITTEN)

    key = AdminKey(lambda: SecretStr(path.read_text()), str(path))
    backend = AdminClient("http://g", key, controller="c", timeout=5, transport=httpx.MockTransport(handle))
    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(backend.put(make_record()))
        for _ in range(3):
            await arrived.acquire()
        (tmp_path / "next").write_text("new-key")
        (tmp_path / "next").replace(path)
        replaced.set()


@pytest.mark.parametrize(
    ("third", "want"),
    [
        (httpx.Response(200, json=WRITTEN), True),
        (httpx.Response(401), (GatewayUnauthorized, True)),
        (httpx.ConnectError("refused"), (GatewayUnavailable, True)),
    ],
)
async def test_replaced_key_is_read_again_for_a_write_that_was_cut_off_and_repeated(
    third: httpx.Response | Exception, want: object, tmp_path: Path
) -> None:
    path = tmp_path / "key"
    path.write_text("old-key")
    key, sent = AdminKey(lambda: SecretStr(path.read_text()), str(path)), list[str]()
    replies = [third, httpx.Response(401), httpx.RemoteProtocolError("cut")]

    def handle(request: httpx.Request) -> httpx.Response:
        sent.append(request.headers["x-api-key"])
        reply = replies.pop()
        if isinstance(reply, Exception):
            raise reply
        return reply

    backend = make_backend(handle, key=key)
    (tmp_path / "next").write_text("new-key")
    (tmp_path / "next").replace(path)
    try:
        got: object = await backend.put(make_record())
    except GatewayError as error:
        got = type(error), error.sent
    assert (sent, got) == (["old-key", "old-key", "new-key"], want)


async def test_a_silent_gateway_has_one_wording_whichever_limit_ends_the_request() -> None:
    def silent(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("Timeout on reading data from socket")

    with pytest.raises(GatewayUnavailable) as caught:
        await make_backend(silent).get(ROUTE)
    assert re.fullmatch(r"GET \S+: no response within \d+ s", str(caught.value))
    assert re.fullmatch(r"\S+: no response within \d+ s", caught.value.cause)
