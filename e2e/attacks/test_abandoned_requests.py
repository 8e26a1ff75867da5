"""A client that closes its connection, or whose header Connection names other headers: what the gateway does then."""

from __future__ import annotations

import json
import socket

import pytest

from e2e.attacks.installation import Tenants
from e2e.cluster.client import wait_until

TIMEOUT = 10.0
CLIENTS = 20


@pytest.fixture
def real(tenants: Tenants) -> Tenants:
    """Two tenants of a gateway that runs the functions of routes."""
    if not tenants.installation.runs_lua:
        pytest.skip(
            "the development gateway runs no functions; tests/unit/translation/nginx/test_functions.py reads them"
        )
    return tenants


@pytest.mark.parametrize(
    "upgrade", ["", "Upgrade: websocket\r\n", "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n"]
)
def test_a_client_does_not_have_headers_removed_behind_the_gateway(upgrade: str, real: Tenants) -> None:
    """The next proxy would remove the headers that Connection lists, or accept a connection for all its paths."""
    host = f"listed.{real.domain}"
    real.apply(real.ingress("listed", host))
    real.traffic.until(lambda answer: answer.pod == "web", host)
    head = f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close, X-Real-IP, Upgrade, HTTP2-Settings\r\n{upgrade}\r\n"

    headers = json.loads(sent(real, head))["headers"]

    assert headers.get("connection", "") == ("upgrade" if upgrade else "")
    assert "http2-settings" not in headers


def test_a_response_ends_when_its_client_has_gone(real: Tenants) -> None:
    host = f"endless.{real.domain}"
    real.apply(real.ingress("endless", host, custom_http_errors="418"))
    real.traffic.until(lambda answer: answer.pod == "web", host)

    for _ in range(CLIENTS):
        with socket.create_connection(real.traffic.address, timeout=TIMEOUT) as connection:
            connection.sendall(f"GET /endless HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            assert b" 200 " in connection.recv(4096)

    wait_until(lambda: unfinished(real, host), lambda count: count == 0, "the Pod to have no response unfinished")


def test_a_response_is_not_delivered_to_the_next_client(real: Tenants) -> None:
    """A backend may send interim responses before the final one."""
    host = f"interim.{real.domain}"
    real.apply(real.ingress("interim", host, custom_http_errors="418"))
    real.traffic.until(lambda answer: answer.pod == "web", host)

    sent = [real.traffic.send(host, path) for path in ("/interim", "/own")]

    assert [(answer.status, answer.seen["path"]) for answer in sent] == [(200, "/interim"), (200, "/own")]


def test_requests_without_a_waiting_client_are_limited(real: Tenants) -> None:
    host = f"silent.{real.domain}"
    real.apply(real.ingress("silent", host, custom_http_errors="418"))
    real.traffic.until(lambda answer: answer.pod == "web", host)

    for _ in range(600):
        with socket.create_connection(real.traffic.address, timeout=TIMEOUT) as connection:
            connection.sendall(f"GET /silent HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())

    real.traffic.until_status(503, host)
    plain = f"plain.{real.domain}"
    real.apply(real.ingress("plain", plain))
    assert 0 < int(real.traffic.until(lambda answer: answer.pod == "web", plain, "/unfinished").text) <= 512


def test_routes_of_one_tenant_do_not_take_the_requests_of_another(real: Tenants) -> None:
    hosts = [f"silent{number}.{real.domain}" for number in range(5)]
    for number, host in enumerate(hosts):
        real.attack(real.ingress(f"silent{number}", host, service="evil", custom_http_errors="418"))
        real.traffic.until(lambda answer: answer.pod == "evil", host)
    other = f"other.{real.domain}"
    real.apply(real.ingress("other", other, custom_http_errors="418"))
    real.traffic.until(lambda answer: answer.pod == "web", other)

    for host in hosts:
        for _ in range(512):
            with socket.create_connection(real.traffic.address, timeout=TIMEOUT) as connection:
                connection.sendall(f"GET /silent HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())

    real.traffic.until_status(503, hosts[-1])
    assert real.traffic.counts(20, other) == {"web": 20}


def test_the_page_for_an_error_is_not_avoided_or_changed(real: Tenants) -> None:
    host = f"pages.{real.domain}"
    real.victim.create("pages")
    real.victim.service("pages", {"app": "pages"})
    real.victim.wait_published("pages", 1)
    real.apply(real.ingress("pages", host, custom_http_errors="404", default_backend="pages"))
    real.traffic.until(lambda answer: answer.pod == "web", host)

    shown = real.traffic.send(host, "/status/404", headers={"X-Code": "200", "x-service-name": "other"})
    upgraded = real.traffic.send(host, "/status/404", headers={"Upgrade": "x"})

    assert (shown.pod, shown.received("x-code"), shown.received("x-service-name")) == ("pages", "404", "web")
    assert (upgraded.status, upgraded.text) == (404, "")


def test_copies_without_a_waiting_client_are_limited(real: Tenants) -> None:
    host, target = f"copied.{real.domain}", real.victim.create("target")
    real.apply(real.ingress("copied", host, mirror_target=target.url("/silent")))
    real.traffic.until(lambda answer: answer.pod == "web", host)

    for _ in range(600):
        real.traffic.send(host)

    with socket.create_connection((target.address, 80), timeout=TIMEOUT) as connection:
        connection.sendall(b"GET /unfinished HTTP/1.0\r\n\r\n")
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert 0 < int(answer.rpartition(b"\r\n")[2]) <= 256


def unfinished(tenants: Tenants, host: str) -> int:
    """Return the number of responses that the Pod has not finished."""
    return int(tenants.traffic.send(host, "/unfinished").text)


def sent(tenants: Tenants, head: str) -> bytes:
    """Send a request as it is; return the body of the response."""
    with socket.create_connection(tenants.traffic.address, timeout=TIMEOUT) as connection:
        connection.sendall(head.encode())
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    return answer.partition(b"\r\n\r\n")[2]
