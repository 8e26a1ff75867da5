"""Clients and servers for tests of the transport."""

import asyncio

import httpx

from tests.unit.apisix_ingress.gateway.adminapi.transport.servers import OK, read_request


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        await read_request(reader)
        writer.write(OK)
        await writer.drain()


async def outcome(client: httpx.AsyncClient, method: str, url: str, body: bytes = b"{}") -> str:
    try:
        reply = await client.request(method, url, content=body)
    except httpx.HTTPError as error:
        return type(error).__name__
    return str(reply.status_code)
