"""Replies that reject a request: the resulting errors, without secrets (replies of APISIX 3.18)."""

from pathlib import Path

import httpx
import orjson
import pytest
from pydantic import SecretStr

from apisix_ingress.errors import GatewayRejected, GatewayUnauthorized, GatewayUnavailable
from apisix_ingress.gateway.adminapi.admin_key import Fields
from apisix_ingress.gateway.adminapi.client import AdminClient, AdminKey
from apisix_ingress.gateway.backend import DependencyPending
from apisix_ingress.model.keys import RecordKey
from tests.unit.apisix_ingress.gateway.adminapi.replies import (
    OFF,
    ROUTE,
    WRITTEN,
    Call,
    make_backend,
    make_record,
    replying,
)

HTML_500 = "<html>\n<head><title>500 Internal Server Error</title></head>\n<body>…</body></html>\n"
RECORDED = (Path(__file__).parents[5] / "e2e/devgateway/contract/admin.jsonl").read_text(encoding="utf-8").splitlines()
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
async def test_a_rejected_body_is_reported_with_the_gateways_error(status: int, body: object, want: str) -> None:
    with pytest.raises(GatewayRejected) as caught:
        await make_backend(replying(status, body)).put(make_record())
    assert (caught.value.status, caught.value.message, caught.value.sent) == (status, want, False)


@pytest.mark.parametrize(
    ("status", "want"),
    [
        (401, "the gateway rejects the admin key (failed to check token: wrong apikey ***): set admin_key to "),
        (403, "the gateway rejects this client (failed to check token: wrong apikey ***): check allow_admin in "),
    ],
)
async def test_refused_key_is_unauthorized_and_not_shown(status: int, want: str) -> None:
    body = {"error_msg": "failed to check token", "description": "wrong apikey sesame-key"}
    with pytest.raises(GatewayUnauthorized) as caught:
        await make_backend(replying(status, body)).put(make_record())
    assert str(caught.value).startswith(want)


@pytest.mark.parametrize("call", [AdminClient.probe, lambda backend: backend.list_managed(())])
async def test_a_url_without_an_admin_api_is_reported_with_a_correct_one(call: Call) -> None:
    backend = make_backend(replying(404, "<html><head><title>404 Not Found</title></head></html>"))
    with pytest.raises(GatewayRejected) as caught:
        await call(backend)
    want = "no Admin API at http://gateway/apisix/admin: admin_url must end with its path, for example http://gateway:9180/"
    assert str(caught.value).startswith(f"404: {want}")


async def test_a_remote_backend_has_its_own_address_key_and_wording() -> None:
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


async def test_values_that_a_real_gateway_echoed_are_hidden() -> None:
    words = {found for line in RECORDED for found in _words(orjson.loads(line)) if ' with "' in found}
    assert words
    for said in words:
        with pytest.raises(GatewayRejected) as caught:
            await make_backend(replying(400, {"error_msg": said})).put(make_record(uri="/a"))
        assert caught.value.message == said.rpartition(' with "')[0] + ' with "***"'


def _words(value: object) -> list[str]:
    """Return every rejection in a recorded exchange."""
    if isinstance(value, list):
        return [found for item in value for found in _words(item)]
    if not isinstance(value, dict):
        return []
    own = [value["error_msg"]] if isinstance(value.get("error_msg"), str) else []
    return own + [found for item in value.values() for found in _words(item)]
