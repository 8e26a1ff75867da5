"""Lists and probes of the Admin API: the owners of records, and invalid lists (responses of APISIX 3.18)."""

import asyncio

import httpx
import pytest
from pydantic import SecretStr

from apisix_ingress.errors import GatewayError, GatewayRejected, GatewayUnauthorized, GatewayUnavailable
from apisix_ingress.gateway.adminapi.client import AdminClient, AdminKey
from apisix_ingress.gateway.backend import ObservedRecord
from apisix_ingress.model.keys import RECORD_KINDS, RecordKey
from apisix_ingress.model.names import owner_labels
from apisix_ingress.model.records import comparable
from tests.unit.apisix_ingress.gateway.adminapi.replies import OFF, Call, Handler, item, listing, make_backend, replying

OURS = owner_labels("apisix-ingress")


@pytest.mark.parametrize("text", ["", "<html>sign in</html>", "{}", '{"error_msg": "no"}', "[]"])
async def test_a_probe_fails_on_any_response_that_is_not_a_list(text: str) -> None:
    with pytest.raises(GatewayUnavailable, match="GET routes: the reply is not a list of records: check admin_url"):
        await make_backend(replying(200, text)).probe()


async def test_the_list_distinguishes_managed_from_foreign_records() -> None:
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
async def test_a_url_below_an_admin_api_is_not_an_emptied_gateway(
    call: Call,
) -> None:
    with pytest.raises(GatewayRejected, match="no Admin API at http://gateway/apisix/admin"):
        await call(make_backend(replying(404, {"message": "Key not found"})))


async def test_listing_continues_where_a_kind_is_not_served() -> None:
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
async def test_an_invalid_list_fails_as_a_whole(handler: Handler, want: type[GatewayError]) -> None:
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


async def test_a_foreign_record_that_is_nested_too_deeply_is_listed() -> None:
    text = '{"list": [{"key": "/apisix/routes/x", "value": {"id": "x", "a": ' + "[" * 300 + "]" * 300 + "}}]}"
    backend = make_backend(listing(routes=httpx.Response(200, text=text)))
    assert (await backend.list_managed(())).foreign == {RecordKey("routes", "x")}


async def test_a_list_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def drip(request: httpx.Request) -> httpx.Response:
        await asyncio.Event().wait()
        raise AssertionError("never")

    monkeypatch.setattr("apisix_ingress.gateway.adminapi.client.LIST_TIMEOUT", 0.01)
    key = AdminKey(lambda: SecretStr("sesame-key"))
    transport = httpx.MockTransport(drip)
    backend = AdminClient("http://gateway", key, controller="apisix-ingress", timeout=5.0, transport=transport)
    with pytest.raises(GatewayUnavailable, match="no complete list within"):
        async with asyncio.timeout(5):
            await backend.list_managed(())
