"""Errors for an unreachable API server: they name the part of the connection to check. Local sockets only."""

import gc
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trustme
from aiohttp import web

from apisix_ingress.errors import KubeUnavailable, KubeUnreachable
from apisix_ingress.kube.client import api as api_module
from apisix_ingress.kube.client.api import KubeApi
from apisix_ingress.kube.client.api_errors import error_of
from apisix_ingress.kube.client.line_splitter import LineSplitter
from tests.fakes.kube.apiserver import FakeApiServer, Fault


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer() as running:
        yield running


@pytest.fixture
async def secured() -> AsyncIterator[str]:
    """The URL of a TLS server with an untrusted certificate."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    runner = web.AppRunner(web.Application(), shutdown_timeout=0.0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    yield f"https://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def asked(server: FakeApiServer, url: str, tmp_path: Path) -> str:
    """Return the error for a server at another URL; `outage` must contain the same text."""
    kubeconfig = server.kubeconfig(tmp_path / "k")
    kubeconfig.write_text(kubeconfig.read_text().replace(server.url, url))
    async with await KubeApi.connect(str(kubeconfig)) as api:
        with pytest.raises(KubeUnreachable) as error:
            await api.get("/version")
        assert api.outage in str(error.value)
    return str(error.value)


async def test_an_untrusted_certificate_is_reported_with_a_remedy(
    server: FakeApiServer, secured: str, tmp_path: Path
) -> None:
    got = await asked(server, secured, tmp_path)
    place = secured.removeprefix("https://")
    assert f"GET /version: the certificate of {place} is not valid (" in got
    assert got.endswith("): check the CA certificate of the credentials")


async def test_tls_to_a_plain_http_port_is_reported_with_a_remedy(server: FakeApiServer, tmp_path: Path) -> None:
    got = await asked(server, server.url.replace("http://", "https://"), tmp_path)
    assert got.endswith("GET /version: TLS failed: check the URL's scheme and the client certificate")


async def test_a_host_name_that_cannot_be_resolved_is_reported(
    server: FakeApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    got = await asked(server, "http://api.invalid:6443", tmp_path)
    assert got == "API server api.invalid:6443: GET /version: cannot resolve the host name api.invalid"


async def test_a_watch_that_ends_inside_an_event_yields_no_event(server: FakeApiServer, tmp_path: Path) -> None:
    server.faults.append(Fault("watch", "services", status=200, body='{"type":"ADDED"}\n{"type":'))
    got: list[bytes] = []

    async def watch(api: KubeApi) -> None:
        async with api.watch("/api/v1/services", version="1", seconds=5, margin=5.0) as lines:
            async for line in lines:
                got.append(line)  # noqa: PERF401  # a comprehension would keep nothing of what came before

    async with await KubeApi.connect(str(server.kubeconfig(tmp_path / "k"))) as api:
        with pytest.raises(KubeUnavailable, match="the stream ended in the middle of an event"):
            await watch(api)
    assert got == [b'{"type":"ADDED"}']


async def test_a_watch_ends_at_an_event_that_is_too_large(
    server: FakeApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_module, "LARGEST_EVENT", 2**20)
    server.faults.append(Fault("watch", "services", status=200, body="x" * (2**20 + 1)))
    async with (
        await KubeApi.connect(str(server.kubeconfig(tmp_path / "k"))) as api,
        api.watch("/api/v1/services", version="1", seconds=5, margin=5.0) as lines,
    ):
        with pytest.raises(KubeUnavailable, match="an event is larger than 1 MiB"):
            await anext(aiter(lines))


async def test_a_watch_that_is_cut_off_leaves_nothing_to_the_garbage_collector(
    server: FakeApiServer, tmp_path: Path
) -> None:
    """It runs rarely, and the memory of a watch would stay until then."""

    async def watch(api: KubeApi) -> str:
        try:
            async with api.watch("/api/v1/services", version="1", seconds=30, margin=5.0) as lines:
                server.order("services", "cut")
                return str([line async for line in lines])
        except KubeUnavailable as error:
            return str(error)

    gc.collect()
    gc.disable()
    try:
        async with await KubeApi.connect(str(server.kubeconfig(tmp_path / "k"))) as api:
            said = await watch(api)
        left = [each for each in gc.get_objects() if isinstance(each, LineSplitter)]
    finally:
        gc.enable()
    assert (said.endswith("the connection was closed"), left) == (True, [])


@pytest.mark.parametrize(("header", "want"), [("7", 7.0), ("-1", 0.0), ("Fri, 01 Jan 2027 00:00:00 GMT", None)])
def test_only_seconds_are_read_from_retry_after(header: str, want: float | None) -> None:
    error = error_of(503, b"[]", "GET /version", header)
    assert isinstance(error, KubeUnavailable)
    assert (error.retry_after, str(error)) == (want, "GET /version: 503: no reason given")
