"""Responses of a gateway that are too large: they are read up to a bound, and reported."""

import asyncio
import threading
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from apisix_ingress.errors import GatewayError, GatewayRejected, GatewayUnavailable
from apisix_ingress.gateway.adminapi import request_sender
from apisix_ingress.gateway.adminapi.admin_key import Fields
from apisix_ingress.gateway.adminapi.client import AdminClient, AdminKey
from apisix_ingress.gateway.adminapi.responses import error_of
from apisix_ingress.gateway.adminapi.transport import LARGEST_ERROR, AiohttpTransport
from tests.factories import make_record
from tests.unit.apisix_ingress.gateway.adminapi.transport.servers import pouring, serving

BOUND = 60.0
PIECE = b"x" * 65536
ENDLESS = b"HTTP/1.1 %d Odd\r\nTransfer-Encoding: chunked\r\n\r\n"
CHUNK = b"%x\r\n" % len(PIECE) + PIECE + b"\r\n"
FIELDS = Fields("admin_url", "admin_key", "clusters[0].sync.largest_list")


def backend(url: str, largest_list: int = 2**20) -> AdminClient:
    return AdminClient(
        url,
        AdminKey(lambda: SecretStr("sesame-key")),
        controller="apisix-ingress",
        timeout=BOUND,
        concurrency=1,
        fields=FIELDS,
        largest_list=largest_list,
    )


@pytest.mark.parametrize("payload", [None, b"{}", b" " * 100_000])
@pytest.mark.parametrize(("status", "want"), [(200, 65536), (400, LARGEST_ERROR), (503, LARGEST_ERROR)])
async def test_an_endless_response_is_cut_off(payload: bytes | None, status: int, want: int) -> None:
    async with asyncio.timeout(BOUND), serving(pouring(ENDLESS % status, CHUNK)) as url:
        transport = AiohttpTransport(connections=1)
        request = httpx.Request("PUT" if payload else "GET", url, content=payload)
        got = await transport.handle_async_request(request)
        await transport.aclose()
    assert (got.status_code, got.extensions["is_cut"], await got.aread()) == (status, True, b"x" * want)


async def test_a_response_of_the_maximum_size_is_complete() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (8 * len(PIECE))
    async with asyncio.timeout(BOUND), serving(pouring(head, PIECE, 8)) as url:
        transport = AiohttpTransport(connections=1)
        for most, is_cut in ((8 * len(PIECE), False), (8 * len(PIECE) - 1, True)):
            got = await transport.handle_async_request(httpx.Request("GET", url, extensions={"largest": most}))
            assert (got.extensions["is_cut"], len(await got.aread())) == (is_cut, 65536 if is_cut else 8 * len(PIECE))
        await transport.aclose()


async def test_a_list_that_is_too_large_names_the_setting() -> None:
    head = ENDLESS % 200 + b'9\r\n{"list":[\r\n'
    async with asyncio.timeout(BOUND), serving(pouring(head, b"3\r\n{},\r\n" * 5000)) as url:
        client = backend(url)
        with pytest.raises(GatewayUnavailable) as caught:
            await client.list_managed(())
        await client.aclose()
    remedy = "increase clusters[0].sync.largest_list if the gateway is meant to have this many records"
    want = f"the list is larger than 1MiB: {remedy}"
    assert want in str(caught.value)


async def test_a_large_page_of_routes_is_a_sign_of_life() -> None:
    head = ENDLESS % 200 + b'1d\r\n{"total":1,"list":[{"value":"\r\n'
    async with asyncio.timeout(BOUND), serving(pouring(head, CHUNK)) as url:
        client = backend(url)
        await client.probe()
        await client.aclose()


async def test_an_endless_response_that_is_not_a_list_is_rejected() -> None:
    async with asyncio.timeout(BOUND), serving(pouring(ENDLESS % 200, CHUNK)) as url:
        client = backend(url)
        with pytest.raises(GatewayUnavailable, match="not a list of records"):
            await client.probe()
        with pytest.raises(GatewayUnavailable, match="the answer is larger than 8 MiB"):
            await client.read("plugins/list")
        await client.aclose()


async def test_an_endless_refusal_is_quoted_in_part() -> None:
    said = b'{"error_msg":"property \\"uri\\" is required, xxx'
    head = ENDLESS % 400 + b"%x\r\n" % len(said) + said + b"\r\n"
    async with asyncio.timeout(BOUND), serving(pouring(head, CHUNK)) as url:
        client = backend(url)
        with pytest.raises(GatewayRejected, match='property "uri"'):
            await client.put(make_record())
        await client.aclose()


@pytest.mark.parametrize(("texts", "is_main"), [(10, True), (5000, False)])
async def test_a_large_refused_record_is_examined_in_a_thread(
    texts: int, is_main: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []

    def noted(*arguments: Any) -> GatewayError:
        threads.append(threading.current_thread())
        return error_of(*arguments)

    monkeypatch.setattr(request_sender, "error_of", noted)
    record = make_record(body={"plugins": {"cors": {"x": [f"text {number}" for number in range(texts)]}}})
    said = b'{"error_msg":"no"}'
    head = b"HTTP/1.1 400 Bad\r\nContent-Length: %d\r\n\r\n" % len(said)
    async with asyncio.timeout(BOUND), serving(pouring(head, said, 1)) as url:
        client = backend(url)
        with pytest.raises(GatewayRejected, match="no"):
            await client.put(record)
        await client.aclose()
    assert [thread is threading.main_thread() for thread in threads] == [is_main]
