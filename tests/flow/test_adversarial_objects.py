"""Objects whose texts make backtracking engines run forever: controller, webhook and status page stay responsive."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from e2e.devgateway.ports import free_port
from tests.fakes.adminapi import FakeAdminApi
from tests.fakes.kube.apiserver import FakeApiServer, Manifest
from tests.flow.program import App, put_world, route, running
from tests.flow.webhook.harness import HOST, Files
from tests.flow.webhook.harness import review as review_of

_PREFIX = "nginx.ingress.kubernetes.io"
_ANNOTATIONS = {
    "auth-response-headers": ",  " * 1300 + "!",
    "cors-expose-headers": "a" * 4000 + "!",
    "cors-allow-origin": ":11" * 1300 + "!",
    "session-cookie-max-age": "1" * 200_000 + "x",
    "session-cookie-expires": "1" * 4000 + "x",
    "ssl-ciphers": "AES" * 1300 + "?",
}
_NEEDED = {"auth-url": "http://auth.example/", "enable-cors": "true", "affinity": "cookie"}


def _ingress(name: str, value: str) -> Manifest:
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {
            "name": name,
            "namespace": "default",
            "annotations": {f"{_PREFIX}/{key}": text for key, text in {**_NEEDED, name: value}.items()},
        },
        "spec": {"ingressClassName": "nginx", "rules": [{"host": f"{name}.example.org", "http": {"paths": [path]}}]},
    }


def _class() -> Manifest:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IngressClass",
        "metadata": {"name": "nginx"},
        "spec": {"controller": "k8s.io/ingress-nginx"},
    }


def _stars() -> Manifest:
    """Return a route for every host whose path has many stars."""
    found: dict[str, Any] = route("stars")
    found["spec"]["http"][0]["match"] = {"paths": ["/" + "*" * 60 + "Z", "/*/" * 60 + "Z"]}
    return found


def _adversarial() -> Iterator[Manifest]:
    yield from (_ingress(name, value) for name, value in _ANNOTATIONS.items())
    yield _stars()


async def _reviewed(files: Files, port: int, item: Manifest) -> dict[str, Any]:
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"https://{HOST}:{port}/validate", data=review_of(item), ssl=files.trust) as reply,
    ):
        return dict(orjson.loads(await reply.text())["response"])


def _renewals(server: FakeApiServer) -> str:
    return str(server.all("leases")[0]["spec"]["renewTime"])


def _hosts(gateway: FakeAdminApi) -> set[str]:
    return {host for body in gateway.records.get("routes", {}).values() for host in body.get("hosts", ())}


async def _is_alive(app: App, server: FakeApiServer) -> None:
    """Wait until the lease is renewed once more, and a new object is served after it."""
    before = _renewals(server)
    await app.until(lambda: _renewals(server) != before, "a renewal of the lease")
    assert (await app.ask("/healthz"))[0] == 200


@pytest.mark.timeout(180)
async def test_nothing_stops_for_objects_that_make_engines_backtrack(
    server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path
) -> None:
    files, webhook = Files(tmp_path), free_port()
    files.write(files.issue())
    cert, key = (str(tmp_path / name) for name in ("tls.crt", "tls.key"))
    more = {
        "ingress_nginx": {"enabled": True},
        "webhook": {"enabled": True, "listen": f"{HOST}:{webhook}", "cert_file": cert, "key_file": key},
    }
    names = put_world(server)
    server.put(_class())
    async with running(server, gateway, tmp_path, more=more) as app:
        await app.until(lambda: {f"default_{name}_rule" for name in names} <= app.names(), "the first routes")
        for item in _adversarial():
            answer = await _reviewed(files, webhook, item)
            assert answer["allowed"] or answer["status"]["reason"] == "Invalid"
            await _is_alive(app, server)
        for item in _adversarial():
            server.put(item)
        hosts = {f"{name}.example.org" for name in _ANNOTATIONS}
        await app.until(lambda: hosts & _hosts(gateway) != set(), "the routes of Ingresses")
        server.put(route("last"))
        await app.until(lambda: "default_last_rule" in app.names(), "the route that came last")
        await _is_alive(app, server)
        status, text = await app.ask("/status/api/explain?url=http://last.example.org/products/4711/reviews")
        assert status == 200, text
        await _is_alive(app, server)
