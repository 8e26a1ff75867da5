"""Requests and replies of the Admin API, with replies as a real gateway gave them (APISIX 3.18)."""

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import httpx
import orjson
import pytest
from pydantic import SecretStr

from apisix_ingress.errors import GatewayError, GatewayRejected, GatewayUnauthorized, GatewayUnavailable
from apisix_ingress.gateway.adminapi.admin_key import Fields
from apisix_ingress.gateway.adminapi.client import AdminClient, AdminKey
from apisix_ingress.gateway.backend import DependencyPending, ObservedRecord
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import RECORD_KINDS, RecordKey, RecordKind
from apisix_ingress.model.names import owner_labels
from apisix_ingress.model.records import Record, comparable
from tests.unit.apisix_ingress.gateway.carrying import HttpxCarrier

Handler = Callable[[httpx.Request], httpx.Response]
Call = Callable[[AdminClient], Awaitable[object]]
ROUTE = RecordKey("routes", "1a2b")
HTML_500 = "<html>\n<head><title>500 Internal Server Error</title></head>\n<body>…</body></html>\n"
OURS = owner_labels("apisix-ingress")
RECORDED = (Path(__file__).parents[5] / "e2e/devgateway/contract/admin.jsonl").read_text(encoding="utf-8").splitlines()
WRITTEN = {"key": "/apisix/routes/1a2b", "value": {}}
OFF = {"error_msg": "stream mode is disabled, can not add stream routes"}


def make_backend(handler: Handler, *, key: AdminKey | None = None, timeout: float = 5.0) -> AdminClient:
    key = key or AdminKey(lambda: SecretStr("sesame-key"))
    url, transport = "http://gateway/apisix/admin", HttpxCarrier(httpx.MockTransport(handler))
    return AdminClient(url, key, controller="apisix-ingress", timeout=timeout, transport=transport)


def make_record(kind: RecordKind = "routes", **body: object) -> Record:
    return Record(RecordKey(kind, "1a2b"), "default_web_r", {"id": "1a2b", **body})


def replying(status: int, body: object = None, headers: dict[str, str] | None = None) -> Handler:
    content = body if isinstance(body, str) else orjson.dumps(body).decode()
    return lambda request: httpx.Response(status, text=content, headers=headers)


def listing(**kinds: object) -> Handler:
    """Answer each list with the given document, with an empty list where none is given."""

    def handle(request: httpx.Request) -> httpx.Response:
        kind = request.url.path.rpartition("/")[2]
        given = kinds.get(kind, {"list": [], "total": 0})
        return given if isinstance(given, httpx.Response) else httpx.Response(200, json=given)

    return handle


def item(kind: str, id_: str, **body: object) -> JsonObject:
    return {"key": f"/apisix/{kind}/{id_}", "value": {"id": id_, **body}, "createdIndex": 1, "modifiedIndex": 2}


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


async def test_delete_of_what_is_not_there_is_done() -> None:
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
async def test_write_is_not_done_until_an_admin_api_says_so(status: int, text: str) -> None:
    backend = make_backend(replying(status, text))
    for write in (backend.put(make_record()), backend.delete(ROUTE), backend.label(ROUTE, {"a": "b"})):
        with pytest.raises(GatewayUnavailable, match=f"HTTP {status}, but not as an Admin API .* check admin_url") as e:
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
    want = "PUT routes/1a2b: HTTP 200, but not as an Admin API answers (no write for ***): check admin_url"
    assert str(caught.value) == want


NOWHERE = ["404 page not found", "", "<title>404 Not Found</title>", '{"error_msg": "404 Route Not Found"}', "[404]"]


@pytest.mark.parametrize("text", NOWHERE)
async def test_write_that_meets_anybodys_404_is_no_word_of_the_admin_api(text: str) -> None:
    backend = make_backend(replying(404, text))
    for write in (backend.put(make_record()), backend.delete(ROUTE)):
        with pytest.raises(GatewayUnavailable, match=r"HTTP 404, but not as an Admin API .* check admin_url"):
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


@pytest.mark.parametrize("text", ["", "<html>sign in</html>", "{}", '{"error_msg": "no"}', "[]"])
async def test_probe_fails_at_whatever_is_no_list(text: str) -> None:
    with pytest.raises(GatewayUnavailable, match="GET routes: the reply is no list of records: check admin_url"):
        await make_backend(replying(200, text)).probe()


async def test_replies_are_asked_for_as_they_are() -> None:
    seen: list[str] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["accept-encoding"])
        return httpx.Response(200, json=WRITTEN)

    await make_backend(handle).put(make_record())
    assert seen == ["identity"]


BAD = 'invalid configuration: property "uri" validation failed: wrong type: expected string, got number'


@pytest.mark.parametrize(
    ("status", "body", "want"),
    [
        (400, {"error_msg": BAD}, BAD),
        (400, {"error_msg": "unknown plugin [no-such-plugin]"}, "unknown plugin [no-such-plugin]"),
        (400, {"req_body": "{sent}", "error_msg": "invalid request body"}, "invalid request body"),
        (404, {"error_msg": "Unsupported resource type: foos"}, "Unsupported resource type: foos"),
        (400, "page_size must be between 10 and 500", "page_size must be between 10 and 500"),
        (405, {"error_msg": "not supported"}, "not supported"),
        (413, "<b>too large</b>", "HTTP 413"),
        (400, [1], "HTTP 400"),
        (400, OFF, OFF["error_msg"]),
    ],
)
async def test_refused_body_is_rejected_in_the_gateways_words(status: int, body: object, want: str) -> None:
    with pytest.raises(GatewayRejected) as caught:
        await make_backend(replying(status, body)).put(make_record())
    assert (caught.value.status, caught.value.message, caught.value.sent) == (status, want, False)


@pytest.mark.parametrize(
    ("status", "want"),
    [
        (401, "the gateway refuses the admin key (failed to check token: wrong apikey ***): set admin_key to "),
        (403, "the gateway refuses this client (failed to check token: wrong apikey ***): see allow_admin in "),
    ],
)
async def test_refused_key_is_unauthorized_and_not_shown(status: int, want: str) -> None:
    body = {"error_msg": "failed to check token", "description": "wrong apikey sesame-key"}
    with pytest.raises(GatewayUnauthorized) as caught:
        await make_backend(replying(status, body)).put(make_record())
    assert str(caught.value).startswith(want)


@pytest.mark.parametrize("call", [AdminClient.probe, lambda backend: backend.list_managed(())])
async def test_url_without_an_admin_api_is_named_with_a_right_one(call: Call) -> None:
    backend = make_backend(replying(404, "<html><head><title>404 Not Found</title></head></html>"))
    with pytest.raises(GatewayRejected) as caught:
        await call(backend)
    want = "there is no Admin API at http://gateway/apisix/admin: admin_url ends with its path, as http://gateway:9180/"
    assert str(caught.value).startswith(f"404: {want}")


async def test_backend_elsewhere_has_its_own_address_key_and_words() -> None:
    seen: list[tuple[str, str]] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append((request.url.host, request.headers["X-API-KEY"]))
        return httpx.Response(200 if request.url.host == "gateway" else 401, json=WRITTEN)

    home = make_backend(handle)
    fields = Fields("spec.admin.baseURL", "spec.admin.adminKey")
    other = home.elsewhere("http://other/apisix/admin", AdminKey(lambda: SecretStr("another-key")), fields)
    with pytest.raises(GatewayUnauthorized, match=r"set spec\.admin\.adminKey to"):
        await other.put(make_record())
    await home.put(make_record())
    assert seen == [("other", "another-key"), ("gateway", "sesame-key")]


@pytest.mark.parametrize(
    ("status", "body", "sent"),
    [
        (500, HTML_500, True),
        (503, {"error_msg": "has no healthy etcd endpoint available"}, True),
        (429, "slow down", False),
        (408, "", True),
        (
            400,
            {"error_msg": "failed to fetch upstream info by upstream id [q]: has no healthy etcd endpoint available"},
            False,
        ),
    ],
)
async def test_passing_trouble_is_unavailable(status: int, body: object, sent: bool) -> None:
    with pytest.raises(GatewayUnavailable) as caught:
        await make_backend(replying(status, body)).put(make_record())
    assert not isinstance(caught.value, DependencyPending)
    assert (caught.value.status, caught.value.sent) == (status, sent)


@pytest.mark.parametrize(("header", "want"), [("7", 7.0), ("soon", None), ("9" * 4000, 300.0)])
async def test_retry_after_is_passed_on(header: str, want: float | None) -> None:
    with pytest.raises(GatewayUnavailable) as caught:
        await make_backend(replying(503, "", {"Retry-After": header})).put(make_record())
    assert caught.value.retry_after == want


@pytest.mark.parametrize(
    ("words", "missing", "holder"),
    [
        ("failed to fetch upstream info by upstream id [9f], response code: 404", RecordKey("upstreams", "9f"), None),
        (
            "failed to fetch plugin config info by plugin config id [pc], response code: 404",
            RecordKey("plugin_configs", "pc"),
            None,
        ),
        ("can not delete this upstream, route [dep2] is still using it now", None, None),
        ("can not delete this upstream, plugin in route [dep3] is still using it now", None, None),
        ("plugin 'cors' already exists in global rule with id 'rules1'", None, RecordKey("global_rules", "rules1")),
        ("duplicate key of plugin key-auth found with consumer: jack", None, RecordKey("consumers", "jack")),
        ("duplicate username of plugin basic-auth found with consumer: a", None, RecordKey("consumers", "a")),
    ],
)
async def test_trouble_with_another_record_is_a_pending_dependency(
    words: str, missing: RecordKey | None, holder: RecordKey | None
) -> None:
    backend = make_backend(replying(400, {"error_msg": words}))
    with pytest.raises(DependencyPending) as caught:
        await (backend.put(make_record()) if missing else backend.delete(ROUTE))
    assert (caught.value.missing, caught.value.holder, caught.value.sent) == (missing, holder, False)


async def test_secrets_of_the_body_are_not_repeated() -> None:
    plugins = {"key-auth": {"key": "top-secret-key"}, "limit-count": {"policy": "redis", "redis_password": ["hush!"]}}
    words = 'failed: pattern "^x" with "top-secret-key", hush!, policy redis\n-----BEGIN PRIVATE KEY-----\nMIIx\n'
    with pytest.raises(GatewayRejected) as caught:
        await make_backend(replying(400, {"error_msg": words})).put(make_record(plugins=plugins))
    assert caught.value.message == 'failed: pattern "^x" with "***", ***, policy redis ***'


async def test_long_words_are_shortened() -> None:
    with pytest.raises(GatewayRejected) as caught:
        await make_backend(replying(400, {"error_msg": "x" * 5000})).put(make_record())
    assert (len(caught.value.message), caught.value.message[-1]) == (1024, "…")


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
async def test_failed_request_tells_whether_it_may_have_been_carried_out(
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
    """It runs rarely, and a gateway may be away for hours."""

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


async def test_request_cut_off_and_then_refused_counts_as_sent() -> None:
    errors: list[httpx.TransportError] = [httpx.ConnectError("refused"), httpx.RemoteProtocolError("cut")]

    def handle(request: httpx.Request) -> httpx.Response:
        raise errors.pop()

    with pytest.raises(GatewayUnavailable) as caught:
        await make_backend(handle).put(make_record())
    assert caught.value.sent


@pytest.mark.parametrize("status", [400, 401, 403, 425, 429, 503])
@pytest.mark.parametrize("verb", ["put", "delete"])
async def test_write_cut_off_and_then_refused_may_have_been_carried_out(status: int, verb: str) -> None:
    """The refusal is of the second request; the first one may have come through."""
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


async def test_request_cut_off_is_sent_again_at_once_and_its_first_copy_is_told() -> None:
    replies: list[httpx.Response | None] = [httpx.Response(200, json=WRITTEN), httpx.Response(200, json=WRITTEN), None]

    def handle(request: httpx.Request) -> httpx.Response:
        reply = replies.pop()
        if reply is None:
            raise httpx.RemoteProtocolError("disconnected")
        return reply

    backend = make_backend(handle)
    assert [await backend.put(make_record()), await backend.put(make_record())] == [True, False]
    assert replies == []


async def test_write_without_an_answer_ends_after_its_timeout() -> None:
    async def silent(request: httpx.Request) -> httpx.Response:
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    key = AdminKey(lambda: SecretStr(""))
    transport = HttpxCarrier(httpx.MockTransport(silent))
    backend = AdminClient("http://g", key, controller="c", timeout=0.01, transport=transport)
    with pytest.raises(GatewayUnavailable) as caught:
        await backend.delete(ROUTE)
    assert str(caught.value) == "DELETE routes/1a2b: no answer within 0.01 s"
    assert caught.value.sent


async def test_probe_tells_a_refused_key() -> None:
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


async def test_list_tells_ours_from_others() -> None:
    route = {"uri": "/a", "upstream_id": "u1", "name": "default_web_r", "labels": OURS}
    other_controller = {"managed-by": "apisix-ingress-controller", "apisix-ingress/controller": "blue"}
    handler = listing(
        routes={"list": [item("routes", "r1", **route, update_time=1), item("routes", "r2", uri="/b")], "total": 2},
        upstreams={"list": [item("upstreams", "u9", labels=other_controller), item("upstreams", "u1", labels=OURS)]},
        consumers={"list": [{"key": "/apisix/consumers/jack", "value": {"username": "jack", "labels": OURS}}]},
        global_rules={"list": [item("global_rules", "g1"), item("global_rules", "g2")]},
        plugin_configs={"list": {}, "total": 0},
        ssls={"list": [{"value": {"id": "s1"}}, {"value": {}}, "odd", {"key": "/apisix/ssls/s2"}]},
    )
    got = await make_backend(handler).list_managed({RecordKey("global_rules", "g2")})
    body = {"id": "r1", **route}
    want_route = ObservedRecord(comparable("routes", body), frozenset({RecordKey("upstreams", "u1")}), "default_web_r")
    assert got.owned[RecordKey("routes", "r1")] == want_route
    assert set(got.owned) == {
        RecordKey("routes", "r1"),
        RecordKey("upstreams", "u1"),
        RecordKey("consumers", "jack"),
        RecordKey("global_rules", "g2"),
    }
    assert got.foreign == {
        RecordKey("routes", "r2"),
        RecordKey("upstreams", "u9"),
        RecordKey("ssls", "s1"),
    }
    assert got.unclaimed == {RecordKey("global_rules", "g1"): ObservedRecord(comparable("global_rules", {"id": "g1"}))}
    assert got.disabled == frozenset()


async def test_list_of_version_two_is_understood() -> None:
    nodes = [{"key": "/apisix/routes/1", "value": {"id": "1", "labels": OURS}}]
    handler = listing(
        routes={"action": "get", "count": 1, "node": {"dir": True, "nodes": nodes}}, ssls={"node": {"nodes": {}}}
    )
    got = await make_backend(handler).list_managed(())
    assert set(got.owned) == {RecordKey("routes", "1")}


KEY_NOT_FOUND = httpx.Response(404, json={"message": "Key not found"})


async def test_list_of_a_gateway_whose_etcd_was_emptied_is_empty() -> None:
    kinds = dict.fromkeys(RECORD_KINDS, KEY_NOT_FOUND)
    got = await make_backend(listing(**kinds)).list_managed(())
    assert (got.owned, got.foreign, got.unclaimed, got.disabled) == ({}, frozenset(), {}, frozenset())


async def test_probe_of_a_gateway_whose_etcd_was_emptied_succeeds() -> None:
    await make_backend(listing(routes=KEY_NOT_FOUND)).probe()


@pytest.mark.parametrize("call", [AdminClient.probe, lambda backend: backend.list_managed(())])
async def test_address_below_an_admin_api_is_no_emptied_gateway(
    call: Call,
) -> None:
    with pytest.raises(GatewayRejected, match="there is no Admin API at http://gateway/apisix/admin"):
        await call(make_backend(replying(404, {"message": "Key not found"})))


async def test_list_goes_on_where_a_kind_is_not_served() -> None:
    handler = listing(
        stream_routes=httpx.Response(400, json=OFF),
        plugin_configs=httpx.Response(404, json={"error_msg": "Unsupported resource type: plugin_configs"}),
        routes={"list": [item("routes", str(n), labels=OURS) for n in range(120)]},
    )
    got = await make_backend(handler).list_managed(())
    assert len(got.owned) == 120
    assert got.disabled == {"stream_routes", "plugin_configs"}


@pytest.mark.parametrize(
    ("handler", "want"),
    [
        (replying(404, "<html>\n<head><title>404 Not Found</title></head></html>"), GatewayRejected),
        (replying(404, {"error_msg": "Unsupported resource type: x"}), GatewayRejected),
        (replying(200, "welcome"), GatewayUnavailable),
        (replying(200, {"routes": []}), GatewayUnavailable),
        (replying(401, {"error_msg": "failed to check token"}), GatewayUnauthorized),
        (replying(503, {"error_msg": "has no healthy etcd endpoint available"}), GatewayUnavailable),
    ],
)
async def test_list_that_is_none_fails_as_a_whole(handler: Handler, want: type[GatewayError]) -> None:
    with pytest.raises(want):
        await make_backend(handler).list_managed(())


async def test_every_kind_is_listed_once_and_unpaged() -> None:
    seen: list[bytes] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request.url.raw_path)
        return httpx.Response(200, json={"list": []}, headers={"Server": "APISIX/3.18.0"})

    backend = make_backend(handle)
    got = await backend.list_managed(())
    await backend.aclose()
    assert got.version == "APISIX/3.18.0"
    assert seen == [f"/apisix/admin/{kind}".encode() for kind in RECORD_KINDS]


@pytest.mark.parametrize(
    ("words", "want"),
    [
        (
            'failed to check the configuration of plugin "csrf" err: property "host" validation failed: '
            'failed to match pattern "^\\\\S+$" with "canary s3cr3t!"',
            'failed to check the configuration of plugin "csrf" err: property "host" validation failed: '
            'failed to match pattern "^\\\\S+$" with "***"',
        ),
        ('property "host" failed: bad "canary s3cr3t!" here', 'property "host" failed: bad "***" here'),
        ("property 'host' failed: bad 'x canary s3cr3t! y'", "property 'host' failed: bad '***'"),
        ('failed to match pattern "^a$" with "a"b"', 'failed to match pattern "^a$" with "***"'),
    ],
)
async def test_values_of_plugins_that_the_gateway_echoes_are_hidden(words: str, want: str) -> None:
    record = make_record(plugins={"csrf": {"host": "canary s3cr3t!", "scheme": "host"}})
    with pytest.raises(GatewayRejected) as caught:
        await make_backend(replying(400, {"error_msg": words})).put(record)
    assert caught.value.message == want


async def test_a_record_of_somebody_else_that_is_nested_too_deeply_is_listed() -> None:
    text = '{"list": [{"key": "/apisix/routes/x", "value": {"id": "x", "a": ' + "[" * 300 + "]" * 300 + "}}]}"
    backend = make_backend(listing(routes=httpx.Response(200, text=text)))
    assert (await backend.list_managed(())).foreign == {RecordKey("routes", "x")}


async def test_a_list_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def drip(request: httpx.Request) -> httpx.Response:
        await asyncio.Event().wait()
        raise AssertionError("never")

    monkeypatch.setattr("apisix_ingress.gateway.adminapi.client._LIST_TIMEOUT", 0.01)
    key = AdminKey(lambda: SecretStr("sesame-key"))
    transport = HttpxCarrier(httpx.MockTransport(drip))
    backend = AdminClient("http://gateway", key, controller="apisix-ingress", timeout=5.0, transport=transport)
    with pytest.raises(GatewayUnavailable, match="no whole list within"):
        async with asyncio.timeout(5):
            await backend.list_managed(())


async def test_values_that_a_real_gateway_echoed_are_hidden() -> None:
    words = {found for line in RECORDED for found in _words(orjson.loads(line)) if ' with "' in found}
    assert words
    for said in words:
        with pytest.raises(GatewayRejected) as caught:
            await make_backend(replying(400, {"error_msg": said})).put(make_record(uri="/a"))
        assert caught.value.message == said.rpartition(' with "')[0] + ' with "***"'


def _words(value: object) -> list[str]:
    """Return every refusal in a recorded exchange."""
    if isinstance(value, list):
        return [found for item in value for found in _words(item)]
    if not isinstance(value, dict):
        return []
    own = [value["error_msg"]] if isinstance(value.get("error_msg"), str) else []
    return own + [found for item in value.values() for found in _words(item)]
