"""HTTP servers that simulate the programs in pods: one thread serves every pod, each on its own address and ports.

Independent of Kubernetes; `e2e.workload` decides which pods are served.
"""

import asyncio
import ssl
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, TypeVar

from aiohttp import WSMsgType, web

T = TypeVar("T")
CALL_TIMEOUT = 10.0
MAX_BODY = 64 * 1024 * 1024
ENDLESS_INTERVAL = 0.1
TURNS = 5
"""More loop iterations than asyncio needs from accepting a connection to calling its protocol."""


class EchoServers:
    """Echo servers by their first address, in one background thread. A context manager.

    Every method may be called in any thread. A response is JSON that repeats the request, with the pod's name in
    `X-Pod`. `/status/503` responds with that status, `/delay/0.5` half a second later, a WebSocket on `/ws…` echoes
    every message. `/endless` responds until the client closes its connection, `/unfinished` with the number of these
    responses.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="e2e-echo", daemon=True)
        self._runners: dict[str, tuple[web.AppRunner, list[asyncio.Server]]] = {}
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def serve(
        self, pod: str, addresses: Sequence[str], ports: Sequence[int], *, tls: ssl.SSLContext | None = None
    ) -> None:
        """Listen on every port of every address as that pod; returns when connections are accepted.

        Raises:
            OSError: when an address cannot be bound; outside a pod network none can.
        """
        self._call(self._serve(pod, addresses, ports, tls))

    def drop(self, address: str) -> None:
        """Stop the server with this first address, if there is one, and close its connections."""
        self._call(self._drop(address))

    def close(self) -> None:
        """Stop every server and the thread."""
        if self._loop.is_closed():
            return
        for address in tuple(self._runners):
            self.drop(address)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CALL_TIMEOUT)
        self._loop.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        future: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return future.result(CALL_TIMEOUT)

    async def _serve(
        self, pod: str, addresses: Sequence[str], ports: Sequence[int], tls: ssl.SSLContext | None
    ) -> None:
        if addresses[0] in self._runners:
            raise ValueError(f"{addresses[0]} is served already")
        runner = web.AppRunner(make_app(pod), access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        assert runner.server is not None
        listeners: list[asyncio.Server] = []
        try:
            for address in addresses:
                for port in ports:
                    made = await self._loop.create_server(runner.server, address, port, ssl=tls)
                    listeners.append(made)
        except OSError:
            await self._end(runner, listeners)
            raise
        self._runners[addresses[0]] = (runner, listeners)

    async def _drop(self, address: str) -> None:
        if (found := self._runners.pop(address, None)) is not None:
            await self._end(*found)

    async def _end(self, runner: web.AppRunner, listeners: Sequence[asyncio.Server]) -> None:
        # Python 3.11 never closes a connection that was accepted a moment before its listener is closed: so stop
        # accepting first, and give the loop the turns that it needs to hand over the accepted ones.
        for listener in listeners:
            for each in listener.sockets:
                self._loop.remove_reader(each.fileno())
        for _ in range(TURNS):
            await asyncio.sleep(0)
        for listener in listeners:
            listener.close()
        await runner.cleanup()


def make_app(pod: str) -> web.Application:
    """Return the echo application of one pod."""

    async def name_the_pod(_request: web.Request, response: web.StreamResponse) -> None:
        response.headers["X-Pod"] = pod

    unfinished: list[web.Request] = []

    async def endless(request: web.Request) -> web.StreamResponse:
        unfinished.append(request)
        try:
            if request.path == "/silent":
                await asyncio.Event().wait()
            return await _endless(request)
        finally:
            unfinished.remove(request)

    async def count(_request: web.Request) -> web.Response:
        return web.Response(text=str(len(unfinished)))

    async def interim(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.write(b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n")
        return await echo(request)

    async def echo(request: web.Request) -> web.Response:
        await asyncio.sleep(float(request.match_info.get("seconds", "0")))
        answer = {"pod": pod, **await _repeat(request)}
        return web.json_response(answer, status=int(request.match_info.get("code", "200")))

    async def echo_or_websocket(request: web.Request) -> web.StreamResponse:
        if request.path.startswith("/ws") and web.WebSocketResponse().can_prepare(request).ok:
            return await _websocket(request)
        return await echo(request)

    app = web.Application(client_max_size=MAX_BODY)
    app.on_response_prepare.append(name_the_pod)
    app.router.add_route("*", "/status/{code:[2-5][0-9][0-9]}", echo)
    app.router.add_route("*", r"/delay/{seconds:\d+(\.\d+)?}", echo)
    app.router.add_get("/{name:endless|silent}", endless)
    app.router.add_get("/interim", interim)
    app.router.add_get("/unfinished", count)
    app.router.add_route("*", "/{path:.*}", echo_or_websocket)
    return app


async def _endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b".")
        await asyncio.sleep(ENDLESS_INTERVAL)


async def _repeat(request: web.Request) -> dict[str, object]:
    return {
        "method": request.method,
        "path": request.path,
        "query": request.query_string,
        "headers": {name.lower(): ", ".join(request.headers.getall(name)) for name in request.headers},
        "body": (await request.read()).decode(errors="replace"),
        "scheme": request.scheme,
    }


async def _websocket(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for message in socket:
        if message.type is WSMsgType.TEXT:
            await socket.send_str(message.data)
        elif message.type is WSMsgType.BINARY:
            await socket.send_bytes(message.data)
    return socket
