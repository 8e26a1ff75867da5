"""The webhook over real HTTPS, with clients that are slow, huge, idle, many or up to no good.

Whatever they do, an API server beside them is answered, and answered right.
"""

import asyncio
import io
import random
import ssl
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, MutableMapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
import structlog
from trustme import CA, LeafCert

from apisix_ingress.errors import ConfigError, GatewayError, GatewayRejected, GatewayUnavailable
from apisix_ingress.model.json import JsonObject
from apisix_ingress.runtime.clock import MonotonicClock
from apisix_ingress.runtime.tasks import cancel
from apisix_ingress.webhook.admission import Limits
from apisix_ingress.webhook.review import ALLOWED, Review, Verdict
from apisix_ingress.webhook.server import WebhookServer
from apisix_ingress.webhook.server_certificate import ServerCertificate
from apisix_ingress.webhook.service import Webhook
from tests.factories import make_service
from tests.unit.apisix_ingress.webhook.worlds import HTTP_PLUGINS, make_world, manifest, plugin, route_spec
from translation.core.options import Options

BOUND = 30.0
HOST = "127.0.0.1"
QUICK = Limits(deadline=1.0, handshake=2.0, first=0.5, idle=0.5)
PATIENT = Limits(deadline=BOUND, handshake=BOUND, first=BOUND)
"""For what is not about limits: a busy machine may take its time."""
GOOD = manifest(route_spec(plugin("limit-count", {"count": 1})))
BAD = manifest(route_spec(plugin("limit-count", {"count": 0})))


@dataclass
class Gateway:
    """What a gateway says of its plugins."""

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
    """What was counted."""

    results: Counter[tuple[str, str]] = field(default_factory=Counter)

    def answered(self, kind: str, result: str, seconds: float) -> None:
        self.results[kind, result] += 1


@dataclass
class Files:
    """A certificate and its key on disk, and who trusts it."""

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
    """An API server, as far as the webhook knows it."""

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
        """Return the response to the question whether an object may be made."""
        status, text = await self.post(review(item, uid, version))
        assert status == 200, text
        answer = orjson.loads(text)
        assert (answer["apiVersion"], answer["kind"]) == (f"admission.k8s.io/{version}", "AdmissionReview")
        assert answer["response"]["uid"] == uid
        return dict(answer["response"])

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(HOST, self.port, ssl=self.trust, server_hostname=HOST)

    async def shown(self) -> bytes:
        """Return the certificate (DER) that a new connection is shown."""
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
    with suppress(OSError):  # the server was quicker
        await writer.wait_closed()


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition; the bound only ends a test that would never end."""
    async with asyncio.timeout(BOUND):
        while not condition():  # noqa: ASYNC110  # tasks of this process make it true
            await asyncio.sleep(0.01)


def der(leaf: LeafCert) -> bytes:
    return ssl.PEM_cert_to_DER_cert(leaf.cert_chain_pems[0].bytes().decode())


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
        await until(lambda: bool(webhook.schema_ages()) or gateway.error is not None)
        yield Client(webhook.port, files.trust, session, seen, certificate)
        await cancel(run)


@asynccontextmanager
async def judging(
    folder: Path, judge: Callable[[Review], Verdict], limits: Limits, clients: str = ""
) -> AsyncIterator[Client]:
    """Serve with a check of the test's own."""
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


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with serving(tmp_path, Gateway(), PATIENT, lambda: True) as serves:
        yield serves


# --- answers


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_objects_are_judged_in_the_version_that_asked(client: Client, version: str) -> None:
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
        (b"", "no JSON"),
        (b"\x00\xff" * 1000, "no JSON"),
        (b"[]", "no AdmissionReview"),
        (b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v9"}', "apiVersion must be one of"),
        (b"[" * 1_000_000, "no JSON"),
        (b"x" * 100_000, "no JSON"),
    ],
)
async def test_garbage_is_turned_away_and_the_next_request_is_answered(client: Client, body: bytes, want: str) -> None:
    status, text = await client.post(body)
    assert (status, want in text) == (400, True)
    assert (await client.ask(GOOD))["allowed"]
    assert client.seen.results == {("", "invalid"): 1, ("ApisixRoute", "allowed"): 1}


@pytest.mark.parametrize("rest", [b"no header\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\nno size\r\n"])
async def test_what_is_no_http_is_no_error_of_the_program(
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


async def test_client_that_hangs_up_in_a_body_is_no_error_of_the_program(
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
async def test_depth_beyond_what_is_read_is_denied(client: Client, levels: int) -> None:
    config = b'{"a":' * levels + b"1" + b"}" * levels
    body = review(manifest(route_spec(plugin("redirect", {"x": "DEEP"})))).replace(b'"DEEP"', config)
    status, text = await client.post(body)
    response = orjson.loads(text)["response"]
    assert (status, response["allowed"]) == (200, levels < 200)


async def test_compressed_body_is_not_unfolded(client: Client) -> None:
    url, headers = f"https://{HOST}:{client.port}/validate", {"Content-Encoding": "gzip"}
    async with client.session.post(url, data=review(GOOD), headers=headers, ssl=client.trust) as reply:
        assert reply.status == 200


# --- too much


async def test_body_that_is_too_long_is_turned_away_before_it_is_sent(client: Client) -> None:
    reader, writer = await client.connect()
    writer.write(head(Limits().body + 1))
    async with asyncio.timeout(BOUND):
        assert b" 413 " in await reader.readline()
        await reader.read()
    await hang_up(writer)
    assert client.seen.results == {("", "oversized"): 1}


async def test_body_without_a_length_is_cut_off_when_it_is_too_long(client: Client) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(8):
            yield b" " * 1024 * 1024

    try:
        status, _ = await client.post(endless())
    except aiohttp.ClientOSError:
        status = 413  # it hung up while the rest was being sent
    assert status == 413
    assert client.seen.results == {("", "oversized"): 1}
    assert (await client.ask(GOOD))["allowed"]


async def test_large_object_is_checked_like_a_small_one(client: Client) -> None:
    rules = [{**route_spec()["http"][0], "name": f"r{number}"} for number in range(1000)]
    assert await client.ask(manifest({"http": rules})) == {"uid": "u1", "allowed": True}
    rules[-1] = {**rules[-1], "plugins": [plugin("limit-cuont")]}
    got = await client.ask(manifest({"http": rules}))
    assert (
        got["status"]["message"] == "spec.http[999].plugins[0]: unknown plugin limit-cuont; did you mean limit-count?"
    )


async def test_burst_of_requests_is_answered_right_one_by_one(client: Client) -> None:
    async def one(number: int) -> bool:
        got = await client.ask(BAD if number % 2 else GOOD, uid=f"u{number}")
        return bool(got["allowed"]) == (number % 2 == 0)

    assert all(await asyncio.gather(*(one(number) for number in range(500))))
    assert client.seen.results == {("ApisixRoute", "allowed"): 250, ("ApisixRoute", "denied"): 250}


async def test_requests_beyond_the_memory_for_them_are_turned_away_at_once(tmp_path: Path) -> None:
    limits = replace(PATIENT, memory=100_000)
    async with judging(tmp_path, lambda review: Verdict(), limits) as client:
        _, holder = await client.connect()
        holder.write(head(90_000))
        await holder.drain()
        body = review(manifest(route_spec(plugin("redirect", {"x": "y" * 20_000}))))
        answers: list[int] = []

        async def refused() -> bool:
            answers.append((await client.post(body))[0])
            return answers[-1] == 429

        async with asyncio.timeout(BOUND):
            while not await refused():  # the holder's headers may be on their way
                pass
        assert (await client.ask(GOOD))["allowed"]
        await hang_up(holder)
        await until(lambda: client.seen.results["", "aborted"] == 1)
        assert (await client.post(body))[0] == 200


# --- too slow


async def test_body_that_does_not_come_is_given_up_while_others_are_answered(tmp_path: Path) -> None:
    async with serving(tmp_path, Gateway(), QUICK, lambda: True) as client:
        slow = []
        for _ in range(20):
            slow.append(await client.connect())
            # At once: who says nothing for long is not waited for until all are there.
            slow[-1][1].write(head(1000) + b'{"kind"')
        assert not (await client.ask(BAD))["allowed"]
        async with asyncio.timeout(BOUND):
            lines = [await reader.readline() for reader, _ in slow]
        assert {line.split()[1] for line in lines} == {b"408"}
        for _, writer in slow:
            await hang_up(writer)
        assert client.seen.results["", "slow"] == 20


async def test_headers_that_do_not_come_cost_the_connection(tmp_path: Path) -> None:
    async with serving(tmp_path, Gateway(), QUICK, lambda: True) as client:
        reader, writer = await client.connect()
        ended = asyncio.create_task(reader.read())

        async def dribble() -> None:
            for byte in head(10):
                if ended.done():
                    return
                writer.write(bytes([byte]))
                await asyncio.sleep(0.1)

        async with asyncio.timeout(BOUND):
            await dribble()
            assert await ended == b""
        await hang_up(writer)


async def test_idle_connections_are_closed_and_keep_nobody_waiting(tmp_path: Path) -> None:
    # The connection that has asked stays open, so that the last question does not meet its end half-way.
    async with serving(tmp_path, Gateway(), replace(QUICK, first=2.0, idle=BOUND), lambda: True) as client:
        idle = await asyncio.gather(*(client.connect() for _ in range(200)))
        assert not (await client.ask(BAD))["allowed"]
        assert (await client.ask(GOOD))["allowed"]
        async with asyncio.timeout(BOUND):
            assert [await reader.read() for reader, _ in idle] == [b""] * 200
        for _, writer in idle:
            await hang_up(writer)
        assert (await client.ask(GOOD))["allowed"]


async def test_connections_beyond_the_cap_push_out_the_idlest(tmp_path: Path) -> None:
    async with judging(tmp_path, lambda review: Verdict(), replace(PATIENT, connections=20)) as client:
        idle = [await client.connect() for _ in range(40)]
        assert (await client.ask(GOOD))["allowed"]
        async with asyncio.timeout(BOUND):
            assert [await reader.read() for reader, _ in idle[:20]] == [b""] * 20
        assert not idle[-1][0].at_eof()
        for _, writer in idle:
            await hang_up(writer)


async def test_socket_that_never_speaks_tls_is_closed(tmp_path: Path) -> None:
    async with serving(tmp_path, Gateway(), QUICK, lambda: True) as client:
        silent, plain = [await asyncio.open_connection(HOST, client.port) for _ in range(2)]
        plain[1].write(b"GET / HTTP/1.1\r\n\r\n")
        async with asyncio.timeout(BOUND):
            for reader, writer in (silent, plain):
                with suppress(ConnectionResetError):
                    await reader.read()
                await hang_up(writer)
        assert (await client.ask(GOOD))["allowed"]


# --- checks that go wrong


async def test_check_that_crashes_lets_the_object_pass_with_a_warning(tmp_path: Path) -> None:
    def crash(review: Review) -> Verdict:
        raise RuntimeError("s3cret")

    async with judging(tmp_path, crash, PATIENT) as client:
        for item in (GOOD, manifest({"x": "y" * 100_000})):
            got = await client.ask(item)
            assert got["allowed"]
            assert got["warnings"] == ["the object was not checked: the check crashed; the controller checks it again"]
        assert client.seen.results == {("ApisixRoute", "crashed"): 2}


async def test_large_object_that_takes_too_long_passes_and_keeps_nobody_waiting(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(review: Review) -> Verdict:
        if len(orjson.dumps(review.object)) > 50_000:
            begun.set()
            go_on.wait(BOUND)
        return Verdict()

    async with judging(tmp_path, slow, replace(Limits(), deadline=0.5, large=2)) as client:
        large = manifest({"x": "y" * 100_000})
        waiting = [asyncio.create_task(client.post(review(large))) for _ in range(2)]
        assert await asyncio.to_thread(begun.wait, BOUND)
        assert (await client.ask(GOOD)) == {"uid": "u1", "allowed": True}
        answers = [await task for task in waiting]
        assert sorted(status for status, _ in answers) == [200, 503]
        assert "took too long" in max(text for _, text in answers)
        assert (await client.post(review(large)))[0] == 429
        go_on.set()
        async with asyncio.timeout(BOUND):
            while (await client.post(review(large)))[0] != 200:  # the thread has to come to an end
                pass


async def test_object_is_allowed_while_the_world_is_not_complete(tmp_path: Path) -> None:
    ready: list[bool] = []
    async with serving(tmp_path, Gateway(), PATIENT, lambda: bool(ready)) as client:
        got = await client.ask(BAD)
        assert (got["allowed"], len(got["warnings"])) == (True, 1)
        ready.append(True)
        assert not (await client.ask(BAD))["allowed"]


async def test_gateway_that_is_away_is_a_warning_until_it_is_back(tmp_path: Path) -> None:
    gateway = Gateway(error=GatewayUnavailable("no answer"))
    async with serving(tmp_path, gateway, PATIENT, lambda: True) as client:
        got = await client.ask(BAD)
        want = "plugins were not checked: the schemas of gateway cluster default are not known now"
        assert (got["allowed"], got["warnings"]) == (True, [want])
        asked = len(gateway.asked)
        await client.ask(BAD)
        assert len(gateway.asked) == asked
        gateway.error = None
        async with asyncio.timeout(BOUND):
            while (await client.ask(BAD))["allowed"]:  # noqa: ASYNC110  # the cache tries again by itself
                await asyncio.sleep(0.05)


async def test_gateway_that_refuses_is_a_warning(tmp_path: Path) -> None:
    async with serving(tmp_path, Gateway(error=GatewayRejected(404, "not found")), PATIENT, lambda: True) as client:
        assert (await client.ask(BAD))["allowed"]


# --- certificates


async def test_new_certificate_is_shown_without_a_restart(client: Client, tmp_path: Path) -> None:
    files = Files(tmp_path)
    files.authority.configure_trust(client.trust)
    old, new = await client.shown(), files.issue()
    reader, writer = await client.connect()
    files.write(new)
    async with asyncio.timeout(BOUND):
        while await client.shown() == old:  # noqa: ASYNC110  # the server looks once a second
            await asyncio.sleep(0.05)
    assert await client.shown() == der(new)
    writer.write(head(len(review(BAD))) + review(BAD))
    async with asyncio.timeout(BOUND):
        assert b" 200 " in await reader.readline()
    await hang_up(writer)


async def test_no_handshake_fails_while_certificates_are_swapped(client: Client, tmp_path: Path) -> None:
    files = Files(tmp_path)
    files.authority.configure_trust(client.trust)
    leaves = [files.issue() for _ in range(2)]
    known = {await client.shown(), *map(der, leaves)}

    def swap() -> None:
        for number in range(50):
            files.write(leaves[number % 2])
            client.certificate.reload()

    swapping = asyncio.create_task(asyncio.to_thread(swap))
    async with asyncio.timeout(BOUND):
        while not swapping.done():
            assert await client.shown() in known
        await swapping


async def test_pair_that_does_not_fit_leaves_the_former_one_in_use(client: Client, tmp_path: Path) -> None:
    files = Files(tmp_path)
    files.authority.configure_trust(client.trust)
    old, new = await client.shown(), files.issue()
    half = {"tls.crt": new.cert_chain_pems[0].bytes(), "tls.key": b"garbage"}
    for name, content in half.items():
        (tmp_path / name).write_bytes(content)
        assert not client.certificate.reload()
        assert await client.shown() == old
    (tmp_path / "tls.key").unlink()
    assert not client.certificate.reload()
    assert await client.shown() == old
    files.write(new)
    async with asyncio.timeout(BOUND):
        while await client.shown() != der(new):  # by a look of the server itself, or by this one
            client.certificate.reload()
    assert not (await client.ask(BAD))["allowed"]


@pytest.mark.parametrize("content", ["", "garbage", None])
def test_certificate_that_can_not_be_used_at_the_start_is_an_error(tmp_path: Path, content: str | None) -> None:
    files = Files(tmp_path)
    files.write(files.issue())
    path = tmp_path / "tls.key"
    if content is None:
        path.unlink()
    else:
        path.write_text(content)
    with pytest.raises(ConfigError, match=r"webhook: .*give a readable PEM certificate and its key"):
        files.certificate()


async def test_address_that_is_taken_is_an_error(tmp_path: Path) -> None:
    async with judging(tmp_path, lambda review: Verdict(), PATIENT) as client:
        certificate = Files(tmp_path).certificate()
        server = WebhookServer(
            HOST,
            client.port,
            certificate=certificate,
            judge=lambda review: Verdict(),
            observer=Seen(),
            clock=MonotonicClock(),
        )
        with pytest.raises(ConfigError, match=rf"webhook\.listen: can't listen on {HOST}:{client.port}"):
            await server.__aenter__()


def client_authority(folder: Path) -> CA:
    authority = CA()
    (folder / "clients.crt").write_bytes(authority.cert_pem.bytes())
    return authority


async def answered(client: Client, identity: LeafCert | None) -> bool:
    """Say whether a client with this certificate gets an answer."""
    trust = ssl.create_default_context()
    trust.load_verify_locations(cadata=ssl.DER_cert_to_PEM_cert(client.trust.get_ca_certs(binary_form=True)[-1]))
    if identity is not None:
        identity.configure_cert(trust)
    try:
        return (await replace(client, trust=trust).post(review(BAD)))[0] == 200
    except aiohttp.ClientError:
        return False


async def test_only_a_client_with_a_certificate_of_the_ca_is_answered(tmp_path: Path) -> None:
    authority, stranger = client_authority(tmp_path), CA()
    known, unknown = (each.issue_cert("apiserver") for each in (authority, stranger))
    async with judging(tmp_path, lambda review: ALLOWED, PATIENT, "clients.crt") as client:
        assert not await answered(client, None)
        assert not await answered(client, unknown)
        assert await answered(client, known)
        (tmp_path / "clients.crt").write_bytes(stranger.cert_pem.bytes())
        async with asyncio.timeout(BOUND):
            while not await answered(client, unknown):
                client.certificate.reload()
        assert not await answered(client, known)
        (tmp_path / "clients.crt").unlink()
        client.certificate.reload()
        assert await answered(client, unknown)
        assert not await answered(client, None)


def test_ca_that_can_not_be_read_at_the_start_is_an_error(tmp_path: Path) -> None:
    files = Files(tmp_path)
    files.write(files.issue())
    with pytest.raises(ConfigError, match="and the certificates of the clients' CA"):
        files.certificate("absent.crt")
