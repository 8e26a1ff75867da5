"""HTTP/2 of the replay: the client's requests by prior knowledge or ALPN, and backends that echo as gRPC servers do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RequestReceived, ResponseReceived, StreamEnded, StreamReset

Json = dict[str, Any]
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
Headers = list[tuple[str, str]]


async def send(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: Json, scheme: str) -> Json:
    """Send a single request over a new connection and return the response."""
    connection = H2Connection(H2Configuration(client_side=True, validate_outbound_headers=False))
    connection.initiate_connection()
    method, body = asked.get("method", "GET"), str(asked.get("body", "")).encode("latin-1")
    headers = [(":method", method), (":scheme", scheme), (":path", asked["path"]), (":authority", asked["host"])]
    headers += [("user-agent", "probe"), *((name.lower(), value) for name, value in asked.get("headers", []))]
    if asked.get("echo"):
        headers.append(("x-echo", json.dumps(asked["echo"])))
    connection.send_headers(1, headers, end_stream=not body)
    if body:
        connection.send_data(1, body, end_stream=True)
    found: Json = {"headers": [], "backend": None}
    got = b""
    while True:
        writer.write(connection.data_to_send())
        await writer.drain()
        data = await reader.read(65536)
        if not data:
            raise ConnectionResetError("the connection was closed")
        for event in connection.receive_data(data):
            match event:
                case ResponseReceived():
                    found |= _answered(_texts(event.headers))
                case DataReceived():
                    got += event.data
                    connection.acknowledge_received_data(event.flow_controlled_length, 1)
                case StreamEnded():
                    return {**found, "body": got.decode("latin-1")}
                case StreamReset():
                    raise ConnectionResetError("the stream was reset")


def _texts(headers: Iterable[tuple[bytes | str, bytes | str]]) -> Headers:
    return [(_text(name), _text(value)) for name, value in headers]


def _text(value: bytes | str) -> str:
    return value if isinstance(value, str) else value.decode("latin-1")


def _answered(headers: Headers) -> Json:
    fields = dict(headers)
    shown = [[name, value] for name, value in headers if not name.startswith(":")]
    return {"status": int(fields[":status"]), "headers": shown, "backend": fields.get("x-backend")}


@dataclass
class _Request:
    headers: Headers
    body: bytes = b""


@dataclass
class Echo:
    """One connection to an HTTP/2 backend.

    Args:
        name: Of the backend.
        seen: Gets every request.
    """

    name: str
    seen: list[Json]
    _open: dict[int, _Request] = field(default_factory=dict)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Respond to requests until the connection is closed."""
        connection = H2Connection(H2Configuration(client_side=False, validate_inbound_headers=False))
        connection.initiate_connection()
        while True:
            writer.write(connection.data_to_send())
            await writer.drain()
            data = await reader.read(65536)
            if not data:
                return
            for event in connection.receive_data(data):
                match event:
                    case RequestReceived():
                        self._open[event.stream_id] = _Request(_texts(event.headers))
                    case DataReceived():
                        self._open[event.stream_id].body += event.data
                        connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                    case StreamEnded():
                        await self._answer(connection, event.stream_id, self._open.pop(event.stream_id))

    async def _answer(self, connection: H2Connection, stream: int, request: _Request) -> None:
        fields = dict(request.headers)
        reported = json.loads(fields.get("x-echo", "{}"))
        echo = reported.get(self.name) or reported.get("*") or {}
        shown = [[name, value] for name, value in request.headers if name not in ("x-echo", ":authority")]
        if ":authority" in fields and "host" not in fields:
            shown.append(["host", fields[":authority"]])
        line = f"{fields[':method']} {fields[':path']} HTTP/2"
        self.seen.append({"backend": self.name, "line": line, "headers": shown, "body": request.body.decode("latin-1")})
        if echo.get("sleep"):
            await asyncio.sleep(echo["sleep"])
        kind = fields.get("content-type", "text/plain")
        answer = [(":status", str(echo.get("status", 200))), ("content-type", kind), ("x-backend", self.name)]
        connection.send_headers(stream, [*answer, *((name, value) for name, value in echo.get("headers", []))])
        connection.send_data(stream, request.body)
        connection.send_headers(stream, [("grpc-status", str(echo.get("grpc", 0)))], end_stream=True)
