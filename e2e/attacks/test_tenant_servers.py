"""A tenant whose server sends endlessly, and a tenant on a port of streams, which serves every host."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from threading import Thread
from typing import Any

import pytest

from e2e.attacks.installation import Tenants
from e2e.cluster.client import Manifest
from e2e.story import route, says

ADDRESS = "10.244.0.77"
REQUESTS = 10
PARTS = {
    "responses": b"HTTP/1.1 100\r\n\r\n",
    "headers": b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 100_000,
    "line": b"HTTP/1.1 200 OK\r\na: " + b"b" * 1_000_000,
}
"""What the server repeats. A gateway that reads on never answers the request."""


def send_endlessly(part: bytes, connection: socket.socket) -> None:
    """Repeat a part until the client closes the connection."""
    with closing(connection), suppress(OSError):
        connection.recv(65536)
        while True:
            connection.sendall(part * max(1, 65536 // len(part)))


def accept(listener: socket.socket, serve: Callable[[socket.socket], None]) -> None:
    """Serve connections until the listener is closed."""
    with suppress(OSError):
        while True:
            Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()


def service_at(name: str, *addresses: str) -> list[Manifest]:
    """Return a Service without a selector, and an EndpointSlice with the addresses that its author chose."""
    ports = [{"name": "http", "port": 80, "protocol": "TCP"}]
    labels = {"kubernetes.io/service-name": name}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": ports}}
    nodes = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": name, "labels": labels},
        "addressType": "IPv4",
        "ports": ports,
        "endpoints": [{"addresses": [each], "conditions": {"ready": True}} for each in addresses],
    }
    return [service, nodes]


@pytest.fixture(params=sorted(PARTS))
def endless(tenants: Tenants, request: pytest.FixtureRequest) -> Iterator[str]:
    """A Service of the hostile tenant whose server sends one part endlessly."""
    with socket.create_server((ADDRESS, 80), backlog=REQUESTS) as listener:
        Thread(target=accept, args=(listener, partial(send_endlessly, PARTS[request.param])), daemon=True).start()
        tenants.attack(service_at("endless", ADDRESS))
        yield "endless"
        listener.shutdown(socket.SHUT_RDWR)


def test_a_server_that_sends_tiny_parts_endlessly_does_not_occupy_the_gateway(tenants: Tenants, endless: str) -> None:
    if not tenants.installation.runs_lua:
        pytest.skip("the development gateway runs no functions")
    host, hostile = f"shop.{tenants.domain}", f"endless.{tenants.domain}"
    tenants.apply(tenants.ingress("shop", host))
    tenants.attack(tenants.ingress("endless", hostile, service=endless, custom_http_errors="418"))
    tenants.traffic.until_status(502, hostile)

    got = {tenants.traffic.send(hostile).status for _ in range(REQUESTS)}

    assert got == {502}
    assert tenants.traffic.send(host).pod == "web"


def permit(asked: list[str], connection: socket.socket) -> None:
    """Permit each request of a connection; its path is the size of a header of the response."""
    with closing(connection), connection.makefile("rb") as lines:
        for line in lines:
            if line.startswith(b"GET /"):
                asked.append(line.split()[1].decode())
            if line == b"\r\n":
                header = "x" * int(asked[-1][1:])
                connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Large: {header}\r\n\r\n".encode())


def test_a_gateway_keeps_only_small_responses_of_an_authentication_service(tenants: Tenants) -> None:
    """It keeps thousands of them, whose keys clients choose: with 250 kB of headers each, a gigabyte."""
    if not tenants.installation.runs_lua:
        pytest.skip("the development gateway runs no functions")
    asked: list[str] = []
    with socket.create_server((ADDRESS, 80), backlog=REQUESTS) as listener:
        Thread(target=accept, args=(listener, partial(permit, asked)), daemon=True).start()
        for size in (100, 60_000):
            host, url = f"cached{size}.{tenants.domain}", f"http://{ADDRESS}/{size}"
            cached = {"auth_url": url, "auth_cache_key": "$uri", "auth_cache_duration": "200 1h"}
            tenants.attack(tenants.ingress(f"cached{size}", host, service="evil", **cached))
            tenants.traffic.until_status(200, host)
            assert {tenants.traffic.send(host, "/a").status for _ in range(3)} == {200}
        listener.shutdown(socket.SHUT_RDWR)

    assert asked == ["/100"] * 2 + ["/60000"] * 4  # once for each path, and once for each request


def test_a_plugin_calls_no_server_of_a_tenant(tenants: Tenants) -> None:
    """Plugins read what a server sends without a pause, so that one connection would occupy a gateway."""
    url = "http://203.0.113.9/"
    plugins: dict[str, dict[str, Any]] = {
        "forward-auth": {"uri": url},
        "feishu-auth": {"userinfo_url": url},
        "ai-lakera-guard": {"lakera_endpoint": url},
        "ai-request-rewrite": {"override": {"endpoint": url}},
    }
    for name, config in plugins.items():
        tenants.attack(route(f"{name}.{tenants.domain}", name=name, service="evil", plugins={name: config}))

    api = tenants.installation.api
    for name in plugins:
        refused = says("False", "kubernetes.plugins: reviewed")
        api.wait("ApisixRoute", name, refused, "to be refused", namespace=tenants.evil.namespace)
        assert tenants.installation.routes(f"{name}.{tenants.domain}") == []


def stream(name: str, port: int, **match: str) -> Manifest:
    """Return an ApisixRoute with a stream rule."""
    backend = {"serviceName": "evil", "servicePort": 80}
    rule = {"name": "s", "protocol": "TCP", "match": {"ingressPort": port, **match}, "backend": backend}
    kind = {"apiVersion": "apisix.apache.org/v2", "kind": "ApisixRoute", "metadata": {"name": name}}
    return kind | {"spec": {"stream": [rule]}}


def test_a_port_of_streams_does_not_serve_the_hosts_of_others(tenants: Tenants) -> None:
    """On a port that terminates TLS, the gateway would present the certificates of other teams for their hosts."""
    own = f"own.{tenants.domain}"
    tenants.attack([stream("every", 9443), stream("own", 9443, host=own)])

    api, evil = tenants.installation.api, tenants.evil.namespace
    api.wait("ApisixRoute", "own", says("True"), "to be served", namespace=evil)
    api.wait("ApisixRoute", "every", says("False", "not assigned to any namespace"), "to be refused", namespace=evil)
    records = tenants.installation.gateway.records("stream_routes").values()
    assert [each.get("sni") for each in records if each["server_port"] == 9443] == [own]


def test_an_address_with_leading_zeros_does_not_lead_to_a_pod_of_another_namespace(tenants: Tenants) -> None:
    """The API server and nginx read `010.244.1.7` as 10.244.1.7, and `inet_aton` as 8.244.1.7."""
    pod = tenants.installation.api.objects("Pod", namespace=tenants.victim.namespace)[0]["status"]["podIP"]
    host = f"padded.{tenants.domain}"
    tenants.attack([*service_at("padded", f"0{pod}"), route(host, service="padded")])

    tenants.traffic.until_status(503, host)
    name = f"{tenants.evil.namespace}_padded_80"
    upstreams = tenants.installation.gateway.records("upstreams").values()
    assert [each["nodes"] for each in upstreams if each["name"] == name] == [[]]
