"""Compares a response with the prediction of `explain`, and does so for generated sets of objects."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import aiohttp

from apisix_ingress.diagnostics.collect.offline import settle
from apisix_ingress.explain.report import explain
from apisix_ingress.explain.request import ProbeRequest
from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.kinds.table import RESOURCES
from e2e.explained.objects import objects_of, requests
from e2e.nginx.client import Client, request_bytes
from e2e.nginx.replay import Gateway
from e2e.nginx.world import Certificates
from translation.core.options import Options
from translation.nginx.options import NginxOptions

Json = dict[str, Any]
Verdict = Literal["right", "cannot say", "wrong"]

REQUESTS = 12
"""Requests that are sent for one set of objects."""

OPTIONS = Options(gateway_api=True, nginx=NginxOptions(config_map=ObjectKey("ConfigMap", "ingress-nginx", "nginx")))


@dataclass(frozen=True, slots=True)
class Comparison:
    """A response and its prediction.

    Attributes:
        verdict: Whether they agree.
        text: The request, the prediction and the response, for a message.
    """

    verdict: Verdict
    text: str


def probe_of(asked: Json, server_port: int, remote_addr: str = "127.0.0.1") -> ProbeRequest:
    """Return a request as `explain` gets it."""
    lines = request_bytes(asked, {}).decode("latin-1").partition("\r\n\r\n")[0].split("\r\n")[1:]
    pairs = (line.partition(": ") for line in lines)
    headers = {name.lower(): value for name, _, value in reversed([*pairs])}
    authority, scheme = headers.pop("host", ""), asked.get("scheme", "http")
    name = asked.get("sni", authority.partition(":")[0]) if scheme == "https" else ""
    method = asked.get("method", "GET")
    return ProbeRequest(method, scheme, authority, asked["path"], headers, remote_addr, server_port, "127.0.0.1", name)


def compared(request: ProbeRequest, records: Mapping[RecordKey, FrozenJson], got: Json, backend: str) -> Comparison:
    """Compare a response with its prediction.

    Args:
        request: The request.
        records: The records of the gateway.
        got: The response, or its `error`.
        backend: The address of the backend that responded, empty if none did.
    """
    document = explain(request, records, lambda key: "")
    answer = document["answer"]
    text = f"{request.method} {request.scheme}://{request.authority}{request.target} {dict(request.headers)}: "
    text += f"predicted {answer['summary']!r}, got {got.get('status', got.get('error'))} of {backend or 'the gateway'}"
    if answer["kind"] == "unknown" or answer["depends_on"]:
        return Comparison("cannot say", text)
    return Comparison("right" if _agrees(answer, got, backend) else "wrong", text)


def _agrees(answer: JsonObject, got: Json, backend: str) -> bool:
    if answer["kind"] != "backend":
        expected = got.get("status") == answer["status"] if answer["status"] else "error" in got
        return expected and not backend and ("$" in answer["location"] or answer["location"] in ("", *_locations(got)))
    nodes = {node["address"] for upstream in answer["upstreams"] for node in upstream["nodes"]}
    return backend in nodes and answer["status"] in (None, got.get("status"))


def _locations(got: Json) -> list[str]:
    """Return the Location of a response, also without a port: `http_to_https` adds the port of the gateway."""
    values = [value for name, value in got.get("headers", ()) if name.lower() == "location"]
    parts = [value.partition("://") for value in values]
    plain = [f"{scheme}://{rest.partition(':')[0]}/{rest.partition('/')[2]}" for scheme, colon, rest in parts if colon]
    return [*values, *plain]


@dataclass
class Backends:
    """Servers at loopback ports, which stand for the nodes of upstreams."""

    ports: list[int] = field(default_factory=list)
    _of: dict[str, int] = field(default_factory=dict)

    def placed(self, value: Any) -> Any:
        """Return a record with its nodes at the ports of the servers."""
        if isinstance(value, list):
            return [self.placed(each) for each in value]
        if not isinstance(value, dict):
            return value
        found = {name: self.placed(each) for name, each in value.items()}
        if isinstance(value.get("nodes"), list):
            found["nodes"] = [{**node, "host": "127.0.0.1", "port": self._port(node)} for node in value["nodes"]]
        return found

    def _port(self, node: Json) -> int:
        return self._of.setdefault(f"{node['host']}:{node.get('port')}", self.ports[len(self._of) % len(self.ports)])


@asynccontextmanager
async def serving(count: int = 8) -> AsyncIterator[Backends]:
    """Serve backends that respond with 200 and their address."""

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = writer.get_extra_info("sockname")[1]
        try:
            request = await reader.readuntil(b"\r\n\r\n")
            length = next(
                (line[15:] for line in request.lower().splitlines() if line.startswith(b"content-length:")), 0
            )
            await reader.readexactly(int(length))
            head = f"HTTP/1.1 200 OK\r\nX-Backend: 127.0.0.1:{port}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            writer.write(head.encode())
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async with AsyncExitStack() as stack:
        servers = [await asyncio.start_server(respond, "127.0.0.1", 0) for _ in range(count)]
        for each in servers:
            await stack.enter_async_context(each)
        yield Backends([each.sockets[0].getsockname()[1] for each in servers])


@dataclass(frozen=True)
class Target:
    """A gateway that is compared with `explain`.

    Attributes:
        admin_url: Of its Admin API.
        admin_key: The key.
        host: Address of its listeners.
        http: Port of the listener without TLS.
        https: Port of the listener with TLS.
    """

    admin_url: str
    admin_key: str
    host: str
    http: int
    https: int


async def compare_sets(target: Target, provider: str, seeds: range) -> list[Comparison]:
    """Compare every request for sets of objects of a provider; a set is determined by its seed."""
    certificates, found = Certificates(), list[Comparison]()
    client = Client(target.host, target.http, target.https, certificates.context)
    async with serving() as backends, aiohttp.ClientSession() as session:
        gateway = Gateway(session, target.admin_url, target.admin_key, client)
        for seed in seeds:
            objects = [RESOURCES[item["kind"]].decode(item) for item in objects_of(provider, seed, certificates)]
            outcome = settle([each for each in objects if each is not None], OPTIONS)
            records = {key: backends.placed(body) for key, body in outcome.bodies().items()}
            rejected = await gateway.show(records)
            taken = {key: body for key, body in records.items() if not any(str(key) in each for each in rejected)}
            for asked in requests(provider, seed, REQUESTS):
                got = await client.send(asked, {})
                request = probe_of(asked, target.https if asked["scheme"] == "https" else target.http)
                comparison = compared(request, taken, got, str(got.get("backend") or ""))
                found.append(Comparison(comparison.verdict, f"{provider} set {seed}: {comparison.text}"))
        await gateway.show({})
    return found


def shares(found: list[Comparison]) -> Counter[Verdict]:
    """Return the number of comparisons with each verdict."""
    return Counter(each.verdict for each in found)
