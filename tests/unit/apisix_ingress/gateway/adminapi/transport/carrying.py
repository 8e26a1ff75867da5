"""Converts between httpx and the transport's requests, both ways, so that httpx' tools can be used in tests."""

import httpx

from apisix_ingress.gateway.adminapi.transport import AiohttpTransport, Limits, Reply, Request


class HttpxCarrier:
    """Sends requests over a transport of httpx, e.g. a `MockTransport`."""

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        self._transport = transport

    async def send(self, call: Request) -> Reply:
        request = httpx.Request(call.method, call.url, headers=list(call.headers), content=call.payload)
        reply = await self._transport.handle_async_request(request)
        return Reply(reply.status_code, await reply.aread(), reply.headers)

    async def aclose(self) -> None:
        await self._transport.aclose()


class CarriedTransport(httpx.AsyncBaseTransport):
    """Sends the requests of an httpx client over the product's transport."""

    def __init__(self, transport: AiohttpTransport) -> None:
        self._transport = transport

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        limits = Limits(**request.extensions.get("timeout", {}))
        payload = await request.aread() if request.method != "GET" else None
        call = Request(request.method, str(request.url), request.headers.multi_items(), payload, limits)
        reply = await self._transport.send(call)
        return httpx.Response(reply.status_code, headers=list(reply.headers.items()), content=reply.content)

    async def aclose(self) -> None:
        await self._transport.aclose()
