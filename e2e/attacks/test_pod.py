"""A Pod without any permission: the ports of the controller that every Pod of the cluster can reach."""

from __future__ import annotations

import json
import secrets
import socket
import ssl
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from trustme import CA

from e2e.attacks.installation import Installation, Tenants, install, two_tenants
from e2e.attacks.values import SLOW_TO_MATCH
from e2e.cluster.client import KubeClient, Manifest
from e2e.cluster.echo import EchoServers
from e2e.devgateway.ports import free_port
from e2e.devgateway.process import DevGateway

TIMEOUT = 15.0


@pytest.fixture(scope="module")
def reviewing(
    cluster_api: KubeClient, kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Installation, str]]:
    """An installation with the webhook, which accepts any client, and the URL of the webhook."""
    mark, port = secrets.token_hex(3), free_port()
    folder = tmp_path_factory.mktemp(mark, numbered=False)
    leaf = CA().issue_cert("127.0.0.1")
    (folder / "tls.crt").write_bytes(b"".join(blob.bytes() for blob in leaf.cert_chain_pems))
    (folder / "tls.key").write_bytes(leaf.private_key_pem.bytes())
    webhook = {
        "enabled": True,
        "listen": f"127.0.0.1:{port}",
        "cert_file": str(folder / "tls.crt"),
        "key_file": str(folder / "tls.key"),
    }
    with ExitStack() as stack:
        gateway = stack.enter_context(DevGateway(admin_key=secrets.token_hex(16)))
        controller = stack.enter_context(install(cluster_api, kubeconfig, folder, gateway, webhook=webhook))
        yield Installation(cluster_api, gateway, controller, mark, runs_lua=False), f"https://127.0.0.1:{port}/validate"


@pytest.fixture
def tenants_under_review(
    reviewing: tuple[Installation, str], echo_servers: EchoServers
) -> Iterator[tuple[Tenants, str]]:
    """Two tenants of that installation, and the URL of the webhook."""
    with ExitStack() as stack:
        yield two_tenants(stack, reviewing[0], echo_servers), reviewing[1]


def unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def review(url: str, item: Manifest) -> bool:
    """Send an object for review as any Pod can; return whether it is allowed."""
    kind = {"group": "networking.k8s.io", "version": "v1", "kind": item["kind"]}
    asked = {"uid": "u", "kind": kind, "operation": "CREATE", "namespace": "any", "name": "any", "object": item}
    body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}).encode()
    request = urllib.request.Request(url, data=body, headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=TIMEOUT, context=unverified()) as answer:
        return bool(json.load(answer)["response"]["allowed"])


def test_no_object_in_a_review_keeps_the_controller_busy(tenants_under_review: tuple[Tenants, str]) -> None:
    here, url = tenants_under_review
    for number, given in enumerate(SLOW_TO_MATCH.values()):
        item = here.ingress(f"slow{number}", f"slow{number}.{here.domain}", service="evil", **given)
        item["metadata"]["namespace"] = here.evil.namespace
        review(url, item)

    assert here.installation.controller.probe("/healthz")[0] == 200
    here.settled()


def test_slow_clients_delay_neither_probes_nor_reviews(tenants_under_review: tuple[Tenants, str]) -> None:
    """Slow bodies, headers and handshakes have tests of their own in `tests/flow/webhook/test_limits.py`."""
    here, url = tenants_under_review
    ports = [urlsplit(url).port, urlsplit(here.installation.controller.url).port]
    with ExitStack() as stack:
        for number in range(400):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", ports[number % 2] or 0)))
            connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nX-A: ")

        assert here.installation.controller.probe("/healthz")[0] == 200
        item = here.ingress("plain", f"plain.{here.domain}")
        item["metadata"]["namespace"] = here.victim.namespace
        assert review(url, item)
        here.settled()


@pytest.mark.parametrize("path", ["/metrics", "/readyz", "/healthz"])
def test_what_every_pod_may_read_names_no_tenant(path: str, tenants: Tenants) -> None:
    host = f"shop.{tenants.domain}"
    tenants.apply(tenants.ingress("shop", host))
    tenants.traffic.until_status(200, host)
    tenants.attack(tenants.ingress("broken", host, service="evil", auth_url="http://127.0.0.1/"))
    tenants.settled()

    status, text = tenants.installation.controller.probe(path)

    assert status == 200
    names = (tenants.victim.namespace, tenants.evil.namespace, tenants.domain)
    assert [name for name in names if name in text] == []
