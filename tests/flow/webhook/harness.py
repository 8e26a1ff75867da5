"""The webhook over real HTTPS: a certificate on disk, a gateway's schemas, and an API server as the client."""

import asyncio
import io
import random
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import orjson
from trustme import CA, LeafCert

from apisix_ingress.errors import GatewayError
from apisix_ingress.model.json import JsonObject
from apisix_ingress.runtime.clock import MonotonicClock
from apisix_ingress.runtime.tasks import cancel
from apisix_ingress.webhook.admission import Limits
from apisix_ingress.webhook.review import Review, Verdict
from apisix_ingress.webhook.server import WebhookServer
from apisix_ingress.webhook.server_certificate import ServerCertificate
from apisix_ingress.webhook.service import Webhook
from tests.factories import make_service
from tests.unit.apisix_ingress.webhook.worlds import HTTP_PLUGINS, make_world, manifest, plugin, route_spec
from tests.waiting import until
from translation.core.options import Options

BOUND = 30.0
HOST = "127.0.0.1"
PATIENT = Limits(deadline=BOUND, check=BOUND, handshake=BOUND, first=BOUND)
"""Limits for tests of other subjects: a busy machine may be slow."""
GOOD = manifest(route_spec(plugin("limit-count", {"count": 1})))
BAD = manifest(route_spec(plugin("limit-count", {"count": 0})))


@dataclass
class Gateway:
    """The plugins that a gateway publishes."""

    plugins: JsonObject = field(default_factory=lambda: HTTP_PLUGINS)
    error: GatewayError | None = None
    asked: list[str] = field(default_factory=list)

    async def read(self, path: str) -> bytes:
        self.asked.append(path)
        if self.error is not None:
            raise self.error
        return orjson.dumps({} if "subsystem=stream" in path else self.plugins)


@dataclass
class Seen:
    """The counted requests."""

    results: Counter[tuple[str, str]] = field(default_factory=Counter)

    def answered(self, kind: str, result: str, seconds: float) -> None:
        self.results[kind, result] += 1


@dataclass
class Files:
    """A certificate and its key on disk, with a client context that trusts it."""

    folder: Path
    authority: CA = field(default_factory=CA)

    def write(self, leaf: LeafCert, *, key: bool = True, chain: bool = True) -> None:
        if chain:
            (self.folder / "tls.crt").write_bytes(b"".join(blob.bytes() for blob in leaf.cert_chain_pems))
        if key:
            (self.folder / "tls.key").write_bytes(leaf.private_key_pem.bytes())

    def issue(self) -> LeafCert:
        return self.authority.issue_cert(HOST)

    def certificate(self, clients: str = "") -> ServerCertificate:
        chain, key = (str(self.folder / name) for name in ("tls.crt", "tls.key"))
        return ServerCertificate(chain, key, MonotonicClock(), clients and str(self.folder / clients))

    @property
    def trust(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        self.authority.configure_trust(context)
        return context


@dataclass
class Client:
    """An API server as a client of the webhook."""

    port: int
    trust: ssl.SSLContext
    session: aiohttp.ClientSession
    seen: Seen
    certificate: ServerCertificate

    async def post(self, body: Any, path: str = "/validate") -> tuple[int, str]:
        data = io.BytesIO(body) if isinstance(body, bytes) else body
        async with self.session.post(f"https://{HOST}:{self.port}{path}", data=data, ssl=self.trust) as reply:
            return reply.status, await reply.text()

    async def ask(self, item: JsonObject, uid: str = "u1", version: str = "v1") -> JsonObject:
        """Return the response to a review of a new object."""
        status, text = await self.post(review(item, uid, version))
        assert status == 200, text
        answer = orjson.loads(text)
        assert (answer["apiVersion"], answer["kind"]) == (f"admission.k8s.io/{version}", "AdmissionReview")
        assert answer["response"]["uid"] == uid
        return dict(answer["response"])

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(HOST, self.port, ssl=self.trust, server_hostname=HOST)

    async def shown(self) -> bytes:
        """Return the certificate (DER) that a new connection gets."""
        _, writer = await self.connect()
        found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        await hang_up(writer)
        assert isinstance(found, bytes)
        return found


def review(item: JsonObject, uid: str = "u1", version: str = "v1") -> bytes:
    request = {
        "uid": uid,
        "operation": "CREATE",
        "kind": {"group": "apisix.apache.org", "version": "v2", "kind": item["kind"]},
        "resource": {"group": "apisix.apache.org", "version": "v2", "resource": "apisixroutes"},
        "namespace": "default",
        "name": item["metadata"]["name"],
        "object": item,
    }
    return orjson.dumps({"apiVersion": f"admission.k8s.io/{version}", "kind": "AdmissionReview", "request": request})


def head(length: int) -> bytes:
    return f"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode()


async def hang_up(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):  # the server closed it first
        await writer.wait_closed()


@asynccontextmanager
async def serving(folder: Path, gateway: Gateway, limits: Limits, ready: Callable[[], bool]) -> AsyncIterator[Client]:
    files, seen = Files(folder), Seen()
    files.write(files.issue())
    certificate = files.certificate()
    webhook = Webhook(
        (HOST, 0),
        certificate,
        world=make_world(make_service()),
        options=Options(),
        gateways={"default": gateway.read},
        ready=ready,
        observer=seen,
        clock=MonotonicClock(),
        rng=random.Random(0),
        limits=limits,
    )
    async with webhook, aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        run = asyncio.create_task(webhook.run(), name="webhook")
        await until(lambda: webhook.schema_ages() or gateway.error is not None, "schemas")
        yield Client(webhook.port, files.trust, session, seen, certificate)
        await cancel(run)


@asynccontextmanager
async def judging(
    folder: Path, judge: Callable[[Review], Verdict], limits: Limits, clients: str = ""
) -> AsyncIterator[Client]:
    """Serve with a custom check."""
    files, seen = Files(folder), Seen()
    files.write(files.issue())
    certificate = files.certificate(clients)
    server = WebhookServer(
        HOST, 0, certificate=certificate, judge=judge, observer=seen, clock=MonotonicClock(), limits=limits
    )
    async with server, aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        run = asyncio.create_task(server.run(), name="server")
        yield Client(server.port, files.trust, session, seen, certificate)
        await cancel(run)
