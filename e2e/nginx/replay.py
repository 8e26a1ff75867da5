"""Replays cases against a gateway, one after another, and reports the result of each."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from apisix_ingress.model.json import FrozenJson
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import UPSERT_RANK
from e2e.nginx.backends import Backend
from e2e.nginx.client import Client
from e2e.nginx.compare import differences
from e2e.nginx.corpus import Case
from e2e.nginx.world import Certificates, Cluster
from translation.nginx.native.model import Target

Json = dict[str, Any]
_MARKER = "marker.replay.test"


class Gateway:
    """The Admin API of a gateway: keeps the written records, and writes only changes."""

    def __init__(self, session: aiohttp.ClientSession, url: str, key: str, client: Client) -> None:
        self._session = session
        self._url = url
        self._headers = {"X-API-KEY": key}
        self._client = client
        self._held: dict[RecordKey, FrozenJson] = {}
        self._round = 0

    async def show(self, records: Mapping[RecordKey, FrozenJson]) -> list[str]:
        """Write the changes and wait until they are in effect; return the rejected records."""
        rejected = []
        gone = [key for key in self._held if key not in records]
        for key in sorted(records, key=lambda each: UPSERT_RANK[each.kind]):
            if self._held.get(key) != records[key]:
                body = {name: value for name, value in records[key].items() if name != "id"}
                async with self._session.put(f"{self._url}/{key}", json=body, headers=self._headers) as answer:
                    if answer.status >= 300:
                        rejected.append(f"{key}: {(await answer.text())[:300]}")
        for key in sorted(gone, key=lambda each: -UPSERT_RANK[each.kind]):
            async with self._session.delete(f"{self._url}/{key}", headers=self._headers) as answer:
                await answer.read()
        self._held = dict(records)
        await self._settled()
        return rejected

    async def _settled(self) -> None:
        self._round += 1
        body = {
            "host": _MARKER,
            "uri": "/*",
            "priority": 0,
            "plugins": {"fault-injection": {"abort": {"http_status": 200, "body": str(self._round)}}},
        }
        async with self._session.put(f"{self._url}/routes/marker", json=body, headers=self._headers) as answer:
            await answer.read()
        for _ in range(200):
            found = await self._client.send({"path": "/", "host": _MARKER, "src": ""}, {})
            if found.get("body", "").strip() == str(self._round):
                return
            await asyncio.sleep(0.02)
        raise RuntimeError("the gateway does not apply the written records")


class Names(asyncio.DatagramProtocol):
    """A DNS server for the names of a case."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}

    def connection_made(self, transport: Any) -> None:
        """Keep the transport."""
        self._transport = transport

    def connection_lost(self, _error: Exception | None) -> None:
        """Do nothing."""

    def datagram_received(self, data: bytes, address: Any) -> None:
        """Respond to a query."""
        labels, place = [], 12
        while data[place]:
            labels.append(data[place + 1 : place + 1 + data[place]].decode())
            place += data[place] + 1
        question = data[12 : place + 5]
        found = self.known.get(".".join(labels).lower())
        kind = struct.unpack(">H", data[place + 1 : place + 3])[0]
        count = 1 if found and kind == 1 else 0
        flags = 0x8180 if found else 0x8183
        answer = data[:2] + struct.pack(">HHHHH", flags, 1, count, 0, 0) + question
        if count:
            answer += b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 1, 4) + socket.inet_aton(str(found))
        self._transport.sendto(answer, address)


@dataclass(frozen=True)
class Result:
    """The result of a case.

    Attributes:
        case: Which one.
        differences: From the recording, each as one line.
        verdicts: The differences according to the verdict tables.
    """

    case: Case
    differences: tuple[str, ...]
    verdicts: tuple[str, ...]


@dataclass(frozen=True)
class Setup:
    """The parts that a replay uses.

    Attributes:
        admin_url: Of the gateway's Admin API.
        admin_key: Its key.
        client: Sends the requests.
        certificates: Of servers and clients.
        dns_port: Port of 127.0.0.1 at which the gateway resolves names.
        target: As `Cluster` has it.
        lean: As `Cluster` has it.
        http2: Whether to send requests over HTTP/2; otherwise they are skipped.
    """

    admin_url: str
    admin_key: str
    client: Client
    certificates: Certificates
    dns_port: int
    target: Target | None = None
    lean: bool = False
    http2: bool = True


class Replay:
    """Replays cases one after another."""

    def __init__(self, setup: Setup, gateway: Gateway, names: Names) -> None:
        self._setup = setup
        self._gateway = gateway
        self._client = setup.client
        self._certificates = setup.certificates
        self._names = names
        self._next = 10

    async def run(self, case: Case) -> Result:
        """Return the result of a case."""
        seen: list[Json] = []
        pods = {
            name: Backend(name, kind, self._address(), seen, self._context(case, name))
            for name, kind in case.backends.items()
        }
        virtual, front = self._virtual(case, seen)
        self._names.known = {
            f"{name.partition('/')[2]}.{name.partition('/')[0]}.svc.cluster.local": at for name, at in virtual.items()
        }
        self._names.known |= {
            name: pods[at].address if at in pods else at for name, at in (case.about.get("dns") or {}).items()
        }
        for each in (*pods.values(), *front):
            await each.start()
        try:
            addresses = {name: each.address for name, each in pods.items()}
            setup = self._setup
            cluster = Cluster(case, self._certificates, addresses, virtual, setup.target, lean=setup.lean)
            return await self._steps(case, cluster, seen)
        finally:
            for each in (*pods.values(), *front):
                each.stop()
            await asyncio.sleep(0.01)  # until their connections are closed

    def needs(self, case: Case) -> set[str]:
        """Return the plugins of a case's records, and `client certificate` if one is requested."""
        virtual = dict.fromkeys(case.about.get("services", {}), "10.244.0.1")
        addresses = dict.fromkeys(case.backends, "10.244.0.1")
        bodies = Cluster(case, self._certificates, addresses, virtual, self._setup.target).records().values()
        asked = {"client certificate"} if any("client" in body for body in bodies) else set()
        later = {"serverless-pre-function"} if case.group.startswith("auth-") else set()
        asked |= {"HTTP/2"} if {"h2c", "h2s", "fcgi"} & set(case.backends.values()) else set()
        return asked | later | {plugin for body in bodies for plugin in body.get("plugins", {})}

    async def _steps(self, case: Case, cluster: Cluster, seen: list[Json]) -> Result:
        rejected = await self._gateway.show(cluster.records())
        found: list[str] = [f"rejected by the gateway: {each}" for each in rejected]
        jar: dict[str, str] = {}
        for number, (asked, recorded) in enumerate(case.steps):
            if "path" not in asked:
                if "sleep" in asked:
                    await asyncio.sleep(asked["sleep"])
                elif self._change(cluster, asked):
                    found += [
                        f"{number} rejected by the gateway: {each}"
                        for each in await self._gateway.show(cluster.records())
                    ]
                continue
            if asked.get("h2") and not self._setup.http2:
                continue
            seen.clear()
            got = await self._asked(asked, jar, seen)
            found += [f"{number} {line}" for line in differences(recorded, got, frozenset(case.unstable(number)))]
        return Result(case, tuple(found), tuple(cluster.verdicts()))

    async def _asked(self, asked: Json, jar: dict[str, str], seen: list[Json]) -> Json:
        times = asked.get("times", 1)
        if times == 1:
            answer = await self._client.send(asked, jar if asked.get("jar") else {})
            await asyncio.sleep(asked.get("linger", 0))
            return {**answer, "seen": list(seen)}
        if asked.get("parallel"):
            answers = await asyncio.gather(*(self._client.send(asked, {}) for _ in range(times)))
        else:
            answers = []
            for _ in range(times):
                answers.append(await self._client.send(asked, jar if asked.get("jar") else {}))
                await asyncio.sleep(asked.get("gap", 0))
        statuses = Counter(str(each.get("status") or each.get("error")) for each in answers)
        return {
            "statuses": statuses,
            "backends": Counter(each.get("backend") or "-" for each in answers),
            "headers": [],
        }

    def _change(self, cluster: Cluster, asked: Json) -> bool:
        cluster.apply(asked.get("apply", []))
        if "delete" in asked:
            for kind, name in asked["delete"]:
                cluster.delete(kind, name)
        cluster.services.update({name: text.split() for name, text in asked.get("endpoints", {}).items()})
        return any(name in asked for name in ("apply", "delete", "endpoints"))

    def _virtual(self, case: Case, seen: list[Json]) -> tuple[dict[str, str], list[Backend]]:
        virtual: dict[str, str] = {}
        front: list[Backend] = []
        for name, backends in case.about.get("services", {}).items():
            namespace, _, service = name.partition("/")
            owner = next(
                (
                    item
                    for item in case.objects
                    if item["kind"] == "Service"
                    and item["metadata"]["name"] == service
                    and item["metadata"].get("namespace") == namespace
                ),
                None,
            )
            if owner is None or not backends:
                continue
            virtual[name] = self._address()
            first = backends[0].partition("!")[0]
            ports = tuple(port["port"] for port in owner["spec"].get("ports", []))
            front.append(
                Backend(first, case.backends[first], virtual[name], seen, self._context(case, first), ports, True)
            )
        return virtual, front

    def _context(self, case: Case, name: str) -> Any:
        if case.backends[name] not in ("https", "h2s"):
            return None
        context = self._certificates.server_context((case.about.get("certs") or {}).get(name, f"{name}@ca"))
        context.set_alpn_protocols(["h2"] if case.backends[name] == "h2s" else ["http/1.1"])
        return context

    def _address(self) -> str:
        self._next += 1
        return f"10.244.{self._next // 250}.{self._next % 250 + 1}"


@asynccontextmanager
async def replaying(setup: Setup) -> AsyncIterator[Replay]:
    """Yield a replay; at the end, delete its records from the gateway."""
    names = Names()
    loop = asyncio.get_running_loop()
    resolver, _ = await loop.create_datagram_endpoint(lambda: names, local_addr=("127.0.0.1", setup.dns_port))
    try:
        async with aiohttp.ClientSession() as session:
            gateway = Gateway(session, setup.admin_url, setup.admin_key, setup.client)
            yield Replay(setup, gateway, names)
            await gateway.show({})
    finally:
        resolver.close()
        await asyncio.sleep(0.1)  # until connections of the last case are closed
