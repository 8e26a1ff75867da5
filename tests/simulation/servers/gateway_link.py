"""The network between processes and simulated gateways: it replaces `AiohttpTransport`.

It delays, loses, repeats and cuts off requests; `gateway` processes them. The client above it is the real one.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from contextvars import Context, copy_context
from dataclasses import dataclass, replace

import httpx
import orjson

from apisix_ingress.gateway.adminapi import transport
from tests.simulation.loop import PROCESS, Process, running_loop
from tests.simulation.servers.gateway import ADMIN_KEY, READS, Body, SimGateway

GIVEN_UP_SECONDS = 5.0
"""Seconds after which a write is given up (`sync.timeout`)."""

HEADERS = {"Server": "APISIX/3.18.0", "Content-Type": "application/json"}

Trap = Callable[[Process, str, SimGateway, str], bool]


class SimTransport(httpx.AsyncBaseTransport):
    """Replaces `AiohttpTransport` in every process.

    Args:
        gateways: By host.
        trap: Called in a process at `connect`, `sent` and `reply`, with the gateway and the method of the request; true
            if something happened to the process there.
    """

    def __init__(self, gateways: dict[str, SimGateway], trap: Trap) -> None:
        self._gateways = gateways
        self._trap = trap

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return the response.

        Raises: httpx.TransportError: There was no response.
        """
        transport.check_deadline(request.extensions["deadline"])
        body = await request.aread()
        if digest := request.headers.get("X-Digest"):
            body = orjson.dumps({"digest": digest, **orjson.loads(body)})
        reply = await self._exchange(request, body)
        return httpx.Response(reply.status, headers=reply.headers, content=reply.body)

    async def _exchange(self, request: httpx.Request, body: bytes) -> SimReply:
        method, url = request.method, request.url
        process, gateway = PROCESS.get(), self._gateways[url.host]
        loop = asyncio.get_running_loop()
        if gateway.fault.is_down:
            await asyncio.sleep(0.001)
            raise httpx.ConnectError(f"cannot connect to {gateway.name}:80: Connection refused")
        if gateway.rng.random() < 0.2:
            await asyncio.sleep(0.002 * gateway.rng.random())
        path = url.raw_path.decode().removeprefix("/apisix/admin/")
        if method not in READS:
            gateway.check_key(process, path)
        if self._trap(process, "connect", gateway, method):
            await asyncio.sleep(0)
        transport.check_deadline(request.extensions["deadline"])
        reply: asyncio.Future[SimReply] = loop.create_future()
        is_known = request.headers.get("X-API-KEY") == ADMIN_KEY
        call = _Call(method, path, body, (process.name, process.terms), process, is_known, loop.time())
        self._send(gateway, call, reply)
        self._trap(process, "sent", gateway, method)
        try:
            async with asyncio.timeout(request.extensions["timeout"]["read"]):
                answer = await reply
        except TimeoutError:
            raise httpx.ReadTimeout("Timeout on reading data from socket") from None
        except httpx.RemoteProtocolError:
            gateway.cut_at[process, path] = loop.time()
            raise
        gateway.note_key(process, answer.status)
        if self._trap(process, "reply", gateway, method):
            await asyncio.sleep(0)
        return answer

    def _send(self, gateway: SimGateway, call: _Call, reply: asyncio.Future[SimReply]) -> None:
        loop, rng, fault, back = running_loop(), gateway.rng, gateway.fault, copy_context()
        share = rng.choice([0.5, 2.0, 4.5]) if rng.random() < fault.slow else 0.004
        there, home = rng.random() * share, rng.random() * share
        there += fault.late if call.method not in READS else 0.0
        if call.process.is_gone:
            return
        if rng.random() < fault.lost_request:
            loop.call_later(there, _reset, reply, context=back)
            if call.method not in READS and rng.random() < 0.3:
                # A proxy that cut it off may still deliver its copy, within the time that the sender assumes.
                there += rng.random() * (GIVEN_UP_SECONDS - there)
                late = replace(call, sent=-math.inf)
                loop.call_later(there, self._carry_out, gateway, late, reply, home, back, context=loop.world)
        else:
            loop.call_later(there, self._carry_out, gateway, call, reply, home, back, context=loop.world)

    def _carry_out(
        self, gateway: SimGateway, call: _Call, reply: asyncio.Future[SimReply], home: float, back: Context
    ) -> None:
        loop, rng, fault = asyncio.get_running_loop(), gateway.rng, gateway.fault
        given_up = loop.time() > call.sent + GIVEN_UP_SECONDS
        if fault.refuses_key or not call.is_known:
            answer: tuple[int, Body] = 401, {"error_msg": "failed to check token", "description": "wrong apikey"}
        elif rng.random() < fault.throttled or (fault.curt and gateway.has_missed(call.path)):
            answer = 429, {"error_msg": "slow down"}
        elif rng.random() < fault.error:
            if rng.random() < 0.5:
                gateway.answer(call.method, call.path, call.payload, call.writer, given_up=given_up)
            answer = rng.choice([500, 502, 503]), {"error_msg": "fault"}
        else:
            answer = gateway.answer(call.method, call.path, call.payload, call.writer, given_up=given_up)
        if rng.random() < fault.hang:
            return
        if gateway.is_deaf_to(call.method, call.path, answer[0]) or rng.random() < fault.lost_reply:
            loop.call_later(home, _reset, reply, context=back)
            return
        loop.call_later(
            home,
            _deliver,
            reply,
            SimReply(answer[0], orjson.dumps(answer[1]), HEADERS | gateway.headers()),
            context=back,
        )


@dataclass(slots=True, frozen=True)
class _Call:
    """A request in flight."""

    method: str
    path: str
    payload: bytes
    writer: tuple[str, int]
    process: Process
    is_known: bool
    sent: float


@dataclass(slots=True, frozen=True)
class SimReply:
    """A response in flight."""

    status: int
    body: bytes
    headers: Mapping[str, str]


def _reset(reply: asyncio.Future[SimReply]) -> None:
    if not reply.done():
        reply.set_exception(httpx.RemoteProtocolError("Server disconnected"))


def _deliver(reply: asyncio.Future[SimReply], answer: SimReply) -> None:
    if not reply.done():
        reply.set_result(answer)
