"""The API server over HTTP: verbs, errors and credentials that change. Sockets of this process only."""

import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiohttp import web

from apisix_ingress.errors import (
    KubeConflict,
    KubeError,
    KubeForbidden,
    KubeGone,
    KubeNotFound,
    KubeUnavailable,
)
from apisix_ingress.kube.client import requests
from apisix_ingress.kube.client.api import KubeApi
from apisix_ingress.kube.client.api_errors import error_of
from apisix_ingress.kube.client.credentials import InCluster
from apisix_ingress.kube.client.requests import Transport
from tests.fakes.clock import FakeClock
from tests.fakes.kube.apiserver import FakeApiServer, Fault, Manifest

LEASES = "/apis/coordination.k8s.io/v1/namespaces/ours/leases"


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer() as running:
        yield running


@pytest.fixture
async def api(server: FakeApiServer, tmp_path: Path) -> AsyncIterator[KubeApi]:
    async with await KubeApi.connect(str(server.kubeconfig(tmp_path / "k"))) as client:
        yield client


def lease(name: str = "leader", **spec: Any) -> Manifest:
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec}


async def test_objects_are_created_read_replaced_and_patched(api: KubeApi) -> None:
    created = await api.create(LEASES, lease(holderIdentity="a"))
    path = f"{LEASES}/leader"
    assert await api.get(path) == created
    updated = await api.update(path, {**created, "spec": {"holderIdentity": "b"}})
    assert updated["spec"] == {"holderIdentity": "b"}
    with pytest.raises(KubeConflict):
        await api.update(path, created)
    patched = await api.patch(path, {"spec": {"holderIdentity": None, "leaseTransitions": 1}})
    assert patched["spec"] == {"leaseTransitions": 1}
    with pytest.raises(KubeConflict):
        await api.patch(path, {"metadata": {"resourceVersion": created["metadata"]["resourceVersion"]}})
    with pytest.raises(KubeNotFound):
        await api.get(f"{LEASES}/nobody")


@pytest.mark.parametrize("name", ["leader", "le ader", "l\u00e9ader", "..leader", "a:b"])
async def test_names_are_quoted_in_the_same_way_by_every_verb(api: KubeApi, name: str) -> None:
    await api.create(LEASES, lease(name))
    patched = await api.patch(f"{LEASES}/{name}", {"spec": {"leaseTransitions": 1}}, manager="a b")
    assert patched == await api.get(f"{LEASES}/{name}")


async def test_any_sequence_of_operations_is_a_json_patch(api: KubeApi) -> None:
    await api.create(LEASES, lease(holderIdentity="a"))
    test = {"op": "test", "path": "/spec/holderIdentity", "value": "a"}
    edit = {"op": "add", "path": "/spec/holderIdentity", "value": "b"}
    got = await api.edit(f"{LEASES}/leader", (test, edit))
    assert got["spec"] == {"holderIdentity": "b"}
    with pytest.raises(KubeConflict) as error:
        await api.edit(f"{LEASES}/leader", (test, edit))
    assert error.value.status == 422


@pytest.mark.parametrize(
    ("status", "want"),
    [
        (400, KubeError),
        (403, KubeForbidden),
        (404, KubeNotFound),
        (409, KubeConflict),
        (410, KubeGone),
        (422, KubeError),
        (429, KubeUnavailable),
        (500, KubeUnavailable),
        (504, KubeUnavailable),
    ],
)
async def test_each_status_has_its_error(
    api: KubeApi, server: FakeApiServer, status: int, want: type[KubeError]
) -> None:
    server.faults.append(Fault(status=status, retry_after="7"))
    with pytest.raises(KubeError) as error:
        await api.get(f"{LEASES}/leader")
    assert type(error.value) is want
    assert error.value.status == status
    assert str(error.value) == f"API server 127.0.0.1:{server.port}: GET {LEASES}/leader: {status}: fault: get leases"
    assert getattr(error.value, "retry_after", 7.0) == 7.0


def test_a_retry_time_may_stand_in_the_status_object_too() -> None:
    error = error_of(429, b'{"details": {"retryAfterSeconds": 3}}', "here")
    assert isinstance(error, KubeUnavailable)
    assert error.retry_after == 3.0
    assert str(error) == "here: 429: no reason given"


@pytest.mark.parametrize("asked", ["Wed, 21 Oct 2099 07:28:00 GMT", "soon", "", "1e", "-"])
def test_a_retry_delay_that_is_not_a_number_is_ignored(asked: str) -> None:
    error = error_of(503, b"", "here", asked)
    assert isinstance(error, KubeUnavailable)
    assert error.retry_after is None


@pytest.mark.parametrize("asked", [b"[1]", b'{"seconds": 1}', b"null", b'"soon"'])
def test_a_retry_time_of_any_shape_is_survived(asked: bytes) -> None:
    error = error_of(429, b'{"details": {"retryAfterSeconds": ' + asked + b"}}", "here")
    assert isinstance(error, KubeUnavailable)
    assert error.retry_after is None


@pytest.mark.parametrize(
    ("asked", "want"), [("-5", 0.0), ("nan", 0.0), ("inf", float("inf")), ("9" * 400, float("inf"))]
)
def test_a_retry_delay_is_always_positive(asked: str, want: float) -> None:
    error = error_of(503, b"", "here", asked)
    assert isinstance(error, KubeUnavailable)
    assert error.retry_after == want


async def test_redirects_to_other_hosts_are_not_followed(tmp_path: Path, server: FakeApiServer) -> None:
    async def redirect(request: web.Request) -> web.Response:
        raise web.HTTPFound(f"{server.url}/version")

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", redirect)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        kubeconfig = server.kubeconfig(tmp_path / "k")
        kubeconfig.write_text(kubeconfig.read_text().replace(f":{server.port}", f":{runner.addresses[0][1]}"))
        async with await KubeApi.connect(str(kubeconfig)) as api:
            with pytest.raises(KubeUnavailable, match="302: an API server never redirects") as error:
                await api.get("/version")
    finally:
        await runner.cleanup()
    assert (error.value.status, server.seen) == (302, [])


@pytest.mark.parametrize(
    ("fault", "want"),
    [
        (Fault(hang=True), "no response in time"),
        (Fault(cut=True), "the connection was closed"),
        (Fault(status=200, body="<html>"), "the response is not valid JSON"),
        (Fault(status=200, body="[]"), "the response is not a Kubernetes API object"),
        (Fault(status=200, body='{"metadata": [1]}'), "the response is not a Kubernetes API object"),
    ],
)
async def test_an_invalid_response_means_unavailable(
    api: KubeApi, server: FakeApiServer, fault: Fault, want: str
) -> None:
    server.faults.append(fault)
    with pytest.raises(KubeUnavailable, match=want):
        # Only a hanging request must time out, even on a busy machine.
        await api.patch(f"{LEASES}/leader", {}, timeout=0.2 if fault.hang else 30.0)


@pytest.mark.parametrize("status", [200, 500])
async def test_a_response_that_is_too_large_is_not_read_completely(
    api: KubeApi, server: FakeApiServer, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(requests, "LARGEST", 2**20)
    server.faults.append(Fault(status=status, body=" " * (2**20 + 1)))
    with pytest.raises(KubeUnavailable, match="GET /version: the response is larger than 1 MiB"):
        await api.get("/version")


async def test_an_api_server_that_is_not_there_is_named(tmp_path: Path, server: FakeApiServer) -> None:
    path = server.kubeconfig(tmp_path / "k")
    await server.stop()
    async with await KubeApi.connect(str(path)) as api:
        with pytest.raises(KubeUnavailable, match=rf"127\.0\.0\.1:{server.port}: GET /version: cannot connect"):
            await api.get("/version")


async def test_a_new_token_is_used_after_one_refusal(server: FakeApiServer, tmp_path: Path) -> None:
    server.token = "token-one"
    (tmp_path / "token").write_text("token-one\n")
    kubeconfig = server.kubeconfig(tmp_path / "k", user={"tokenFile": "token"})
    async with await KubeApi.connect(str(kubeconfig), clock=FakeClock()) as api:
        await api.get("/version")
        (tmp_path / "token").write_text("token-two\n")
        server.token = "token-two"
        await api.get("/version")
        got = [seen.headers["Authorization"] for seen in server.seen]
        assert got == ["Bearer token-one", "Bearer token-one", "Bearer token-two"]
        server.token = "token-three"
        with pytest.raises(KubeForbidden):
            await api.get("/version")
        assert len(server.seen) == 5


async def test_a_changed_token_file_is_detected_and_a_missing_one_tolerated(
    server: FakeApiServer, tmp_path: Path
) -> None:
    clock = FakeClock()
    token = tmp_path / "token"
    token.write_text("token-one")
    kubeconfig = server.kubeconfig(tmp_path / "k", user={"tokenFile": "token"})
    async with await KubeApi.connect(str(kubeconfig), clock=clock) as api:
        token.unlink()
        clock.shift(2)
        await api.get("/version")
        token.write_text("token-second")
        clock.shift(6)
        await api.get("/version")
        assert [seen.headers["Authorization"] for seen in server.seen] == ["Bearer token-one", "Bearer token-second"]


class TlsServer:
    """An HTTPS server whose certificate can be replaced."""

    def __init__(self) -> None:
        self.port = 0
        self._runner: web.AppRunner | None = None

    async def start(self, ca: trustme.CA) -> None:
        await self.stop()

        async def version(request: web.Request) -> web.Response:
            return web.json_response({"major": "1"})

        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        ca.issue_cert("127.0.0.1").configure_cert(context)
        app = web.Application()
        app.router.add_get("/version", version)
        self._runner = web.AppRunner(app, shutdown_timeout=0.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=context, reuse_address=True)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()


async def test_a_new_ca_file_makes_a_new_client_and_a_broken_one_does_not(tmp_path: Path) -> None:
    clock, tls, ca_file = FakeClock(), TlsServer(), tmp_path / "ca.crt"
    old, new = trustme.CA(), trustme.CA()
    old.cert_pem.write_to_path(str(ca_file))
    await tls.start(old)
    for name, content in (("token", "t"), ("namespace", "ours")):
        (tmp_path / name).write_text(content)
    environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(tls.port)}
    transport = Transport(InCluster(environ, tmp_path), clock=clock)
    access = await transport.open()
    async with KubeApi(transport, host=access.host, namespace=access.namespace) as api:
        assert await api.get("/version") == {"major": "1"}
        ca_file.write_text("-----BEGIN CERTIFICATE-----\nhalf")
        clock.shift(2)
        assert await api.get("/version") == {"major": "1"}
        await tls.start(new)
        clock.shift(10)
        with pytest.raises(KubeUnavailable, match="is not valid"):
            await api.get("/version")
        new.cert_pem.write_to_path(str(ca_file))
        clock.shift(10)
        assert await api.get("/version") == {"major": "1"}
    await tls.stop()
