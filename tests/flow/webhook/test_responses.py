"""Responses of the webhook: to reviews of both versions, to garbage, and to input that is not HTTP."""

import asyncio
from collections.abc import MutableMapping
from typing import Any

import orjson
import pytest
import structlog

from tests.flow.webhook.harness import BAD, BOUND, GOOD, HOST, Client, hang_up, head, review
from tests.unit.apisix_ingress.webhook.worlds import manifest, plugin, route_spec


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_objects_are_validated_in_the_version_of_the_request(client: Client, version: str) -> None:
    assert await client.ask(GOOD, version=version) == {"uid": "u1", "allowed": True}
    got = await client.ask(BAD, version=version)
    want = (
        "spec.http[0].plugins[0]: limit-count plugin's config is invalid\n"
        "spec.http[0].plugins[0].config.count: Must be greater than 0"
    )
    assert (got["allowed"], got["status"]["message"]) == (False, want)


@pytest.mark.parametrize(
    ("body", "want"),
    [
        (b"", "not valid JSON"),
        (b"\x00\xff" * 1000, "not valid JSON"),
        (b"[]", "not an AdmissionReview"),
        (b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v9"}', "apiVersion must be one of"),
        (b"[" * 1_000_000, "not valid JSON"),
        (b"x" * 100_000, "not valid JSON"),
    ],
)
async def test_garbage_is_rejected_and_the_next_request_succeeds(client: Client, body: bytes, want: str) -> None:
    status, text = await client.post(body)
    assert (status, want in text) == (400, True)
    assert (await client.ask(GOOD))["allowed"]
    assert client.seen.results == {("", "invalid"): 1, ("ApisixRoute", "allowed"): 1}


@pytest.mark.parametrize("rest", [b"no header\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\nno size\r\n"])
async def test_what_is_not_http_is_not_an_error_of_the_program(
    client: Client, rest: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    reader, writer = await client.connect()
    writer.write(b"POST /validate HTTP/1.1\r\nHost: a\r\n" + rest)
    async with asyncio.timeout(BOUND):
        assert b" 400 " in await reader.readline()
        await reader.read()
    await hang_up(writer)
    assert caplog.records == []
    assert (await client.ask(GOOD))["allowed"]


async def test_a_client_that_disconnects_in_a_body_is_not_an_error(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    heard = asyncio.Event()

    def tell(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        heard.set()
        return event

    with structlog.testing.capture_logs(processors=[tell]) as events:
        reader, writer = await client.connect()
        writer.write(head(1000).replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n"))
        async with asyncio.timeout(BOUND):
            assert b" 100 " in await reader.readline()  # the body is being read
            writer.write(b"{")
            await hang_up(writer)
            await heard.wait()
    assert [(each["event"], each["log_level"]) for each in events] == [("http.malformed", "debug")]
    assert caplog.records == []


async def test_nothing_else_is_served(client: Client) -> None:
    assert (await client.post(review(GOOD), "/other"))[0] == 404
    async with client.session.get(f"https://{HOST}:{client.port}/validate", ssl=client.trust) as reply:
        assert reply.status == 405


@pytest.mark.parametrize("levels", [150, 1500, 200_000])
async def test_objects_beyond_the_maximum_depth_are_denied(client: Client, levels: int) -> None:
    config = b'{"a":' * levels + b"1" + b"}" * levels
    body = review(manifest(route_spec(plugin("redirect", {"x": "DEEP"})))).replace(b'"DEEP"', config)
    status, text = await client.post(body)
    response = orjson.loads(text)["response"]
    assert (status, response["allowed"]) == (200, levels < 200)


async def test_a_compressed_body_is_not_decompressed(client: Client) -> None:
    url, headers = f"https://{HOST}:{client.port}/validate", {"Content-Encoding": "gzip"}
    async with client.session.post(url, data=review(GOOD), headers=headers, ssl=client.trust) as reply:
        assert reply.status == 200
