"""Traffic beyond the recording: bodies, streams, upgrades, kept connections, TLS both ways."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from e2e.devgateway.dataplane.tls_listener import load_pair
from e2e.devgateway.process import DevGateway
from tests.unit.e2e.devgateway.backends import pair
from tests.unit.e2e.devgateway.requests import get, node


def test_request_body_and_raw_path_reach_the_upstream(gateway: DevGateway, ports: dict[str, int]) -> None:
    gateway.put("/routes/a", {"uri": "/a/*", "upstream": node(ports)})
    _, _, seen = get(gateway, "/a/%41?b=%20c", {"X-Y": "z"}, method="POST", body="content")
    assert (seen["path"], seen["body"], seen["headers"]["X-Y"]) == ("/a/%41?b=%20c", "content", "z")


def test_hundreds_of_requests_split_ninety_to_ten(gateway: DevGateway, ports: dict[str, int]) -> None:
    gateway.put("/upstreams/b", node(ports, "u2"))
    rules = [{"weighted_upstreams": [{"upstream_id": "b", "weight": 10}, {"weight": 90}]}]
    gateway.put("/routes/a", {"uri": "/a", "upstream": node(ports), "plugins": {"traffic-split": {"rules": rules}}})
    got = [get(gateway, "/a")[2]["upstream"] for _ in range(200)]
    assert (got.count("u1"), got.count("u2")) == (180, 20)


def test_hash_sends_a_key_to_one_node_always(gateway: DevGateway, ports: dict[str, int]) -> None:
    upstream = {**node(ports, "u1", "u2"), "type": "chash", "hash_on": "header", "key": "X-User"}
    gateway.put("/routes/a", {"uri": "/a", "upstream": upstream})
    first = {user: get(gateway, "/a", {"X-User": user})[2]["upstream"] for user in map(str, range(30))}
    assert set(first.values()) == {"u1", "u2"}
    assert {user: get(gateway, "/a", {"X-User": user})[2]["upstream"] for user in first} == first


def test_an_idle_connection_to_a_restarted_node_loses_no_request(gateway: DevGateway) -> None:
    """The node closes every connection after one response, without announcing it."""
    with raw_upstream(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") as port:
        gateway.put("/routes/a", {"uri": "/a", "upstream": {"nodes": {f"127.0.0.1:{port}": 1}}})
        assert [get(gateway, "/a", method="POST", body="x")[0] for _ in range(10)] == [200] * 10


def test_chunks_pass_as_they_come(gateway: DevGateway) -> None:
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    with raw_upstream(answer) as port:
        gateway.put("/routes/a", {"uri": "/a", "upstream": {"nodes": {f"127.0.0.1:{port}": 1}}})
        status, headers, body = get(gateway, "/a")
        assert (status, headers["Transfer-Encoding"], body) == (200, "chunked", "abcde")


@contextmanager
def raw_upstream(answer: bytes, *, echo: bool = False) -> Iterator[int]:
    """Serve fixed bytes per connection, then close it; with `echo` send back what comes after the head."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                received = b""
                while b"\r\n\r\n" not in received:
                    received += connection.recv(65536)
                connection.sendall(answer)
                while echo and (piece := connection.recv(65536)):
                    connection.sendall(piece)

    thread = threading.Thread(target=serve, name="raw upstream", daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


UPGRADE = b"GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"


def test_references_left_dangling_by_force_fail_alone(gateway: DevGateway, ports: dict[str, int]) -> None:
    gateway.put("/upstreams/u", node(ports))
    gateway.put("/services/s", {"upstream": node(ports)})
    gateway.put("/plugin_configs/p", {"plugins": {}})
    gateway.put("/routes/u", {"uri": "/u", "upstream_id": "u"})
    gateway.put("/routes/s", {"uri": "/s", "service_id": "s"})
    gateway.put("/routes/p", {"uri": "/p", "plugin_config_id": "p", "upstream": node(ports)})
    gateway.put("/routes/fine", {"uri": "/fine", "upstream": node(ports)})
    paths = ("/u", "/s", "/p", "/fine")
    assert [get(gateway, path)[0] for path in paths] == [200] * 4
    for record in ("/upstreams/u", "/services/s", "/plugin_configs/p"):
        assert gateway.call("DELETE", record)[0] == 400
        assert gateway.call("DELETE", f"{record}?force=true")[0] == 200
    assert [get(gateway, path)[0] for path in paths] == [502, 404, 503, 200]


def test_a_slow_node_results_in_504(gateway: DevGateway) -> None:
    listener = socket.create_server(("127.0.0.1", 0))  # accepts and never responds
    with listener:
        timeout = {"connect": 1, "send": 1, "read": 0.05}
        upstream = {"nodes": {f"127.0.0.1:{listener.getsockname()[1]}": 1}, "timeout": timeout}
        gateway.put("/routes/a", {"uri": "/a", "upstream": upstream})
        status, headers, _ = get(gateway, "/a")
    assert (status, headers["X-APISIX-Upstream-Status"]) == (504, "504")


def test_route_timeout_takes_precedence_over_that_of_the_upstream(gateway: DevGateway) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    with listener:
        upstream = {"nodes": {f"127.0.0.1:{listener.getsockname()[1]}": 1}}
        quick = {"connect": 1, "send": 1, "read": 0.05}
        gateway.put("/routes/a", {"uri": "/a", "timeout": quick, "upstream": upstream})
        assert get(gateway, "/a")[0] == 504


def test_websocket_passes_bytes_both_ways(gateway: DevGateway) -> None:
    switch = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
    host, _, port = gateway.proxy_address.partition(":")
    with raw_upstream(switch, echo=True) as upstream:
        upstream_conf = {"nodes": {f"127.0.0.1:{upstream}": 1}}
        gateway.put("/routes/ws", {"uri": "/ws", "enable_websocket": True, "upstream": upstream_conf})
        with socket.create_connection((host, int(port)), timeout=10) as client:
            client.sendall(UPGRADE)
            head = client.recv(65536)
            client.sendall(b"ping")
            assert head.startswith(b"HTTP/1.1 101 ")
            assert client.recv(4) == b"ping"


def test_upgrade_is_not_passed_on_without_enable_websocket(gateway: DevGateway, ports: dict[str, int]) -> None:
    gateway.put("/routes/ws", {"uri": "/ws", "upstream": node(ports)})
    _, _, seen = get(gateway, "/ws", {"Upgrade": "websocket", "Connection": "Upgrade"})
    assert "Upgrade" not in seen["headers"]


def https(gateway: DevGateway, name: str, client: str | None = None) -> int:
    """Send one request over TLS and return the status."""
    host, _, port = gateway.tls_address.partition(":")
    context = ssl.create_default_context(cadata=pair(name)[0])
    context.check_hostname = False  # the certificates here name no host
    if client is not None:
        load_pair(context, *pair(client))
    raw = socket.create_connection((host, int(port)), timeout=10)
    with raw, context.wrap_socket(raw, server_hostname=name) as secure:
        secure.sendall(f"GET /t HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode())
        return int(secure.recv(65536).split(b" ")[1])


def test_https_serves_by_name_and_a_new_certificate_at_once(gateway: DevGateway, ports: dict[str, int]) -> None:
    gateway.put("/routes/t", {"uri": "/t", "upstream": node(ports)})
    for name in ("a.example.com", "b.example.com"):
        cert, key = pair(name)
        gateway.put("/ssls/one", {"cert": cert, "key": key, "snis": [name]})
        assert https(gateway, name) == 200
    with pytest.raises(ssl.SSLError, match="INTERNAL_ERROR"):
        https(gateway, "a.example.com")


def test_client_certificate_is_demanded_and_checked(gateway: DevGateway, ports: dict[str, int]) -> None:
    gateway.put("/routes/t", {"uri": "/t", "upstream": node(ports)})
    cert, key = pair("a.example.com")
    gateway.put("/ssls/one", {"cert": cert, "key": key, "snis": ["a.example.com"], "client": {"ca": pair("ca")[0]}})
    assert https(gateway, "a.example.com", client="ca") == 200
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_REQUIRED"):
        https(gateway, "a.example.com")
    with pytest.raises(ssl.SSLError, match="UNKNOWN_CA"):
        https(gateway, "a.example.com", client="b.example.com")


def test_routes_match_the_handshake(gateway: DevGateway, ports: dict[str, int]) -> None:
    """With `skip_mtls_uri_regex` the handshake asks for a certificate and needs none (APISIX radixtree_sni.lua)."""
    cert, key = pair("a.example.com")
    client = {"ca": pair("ca")[0], "skip_mtls_uri_regex": [".*"]}
    gateway.put("/ssls/one", {"cert": cert, "key": key, "snis": ["a.example.com"], "client": client})
    conditions = [["ssl_server_name", "==", "a.example.com"], ["ssl_client_verify", "==", "SUCCESS"]]
    gateway.put("/routes/t", {"uri": "/t", "vars": conditions, "upstream": node(ports)})
    assert [https(gateway, "a.example.com", client=client) for client in ("ca", None)] == [200, 404]


def test_routes_match_the_address_and_port_of_the_gateway(gateway: DevGateway, ports: dict[str, int]) -> None:
    address, _, port = gateway.proxy_address.partition(":")
    where = [["server_addr", "==", address], ["server_port", "==", port]]
    gateway.put("/routes/here", {"uri": "/here", "vars": where, "upstream": node(ports)})
    gateway.put(
        "/routes/there", {"uri": "/there", "vars": [["server_addr", "==", "192.0.2.1"]], "upstream": node(ports)}
    )
    assert [get(gateway, path)[0] for path in ("/here", "/there")] == [200, 404]


def test_status_444_closes_the_connection(gateway: DevGateway) -> None:
    gateway.put("/routes/a", {"uri": "/a", "plugins": {"fault-injection": {"abort": {"http_status": 444}}}})
    with pytest.raises(ConnectionError):
        get(gateway, "/a")


def test_upstream_over_tls_gets_the_client_certificate(gateway: DevGateway, ports: dict[str, int]) -> None:
    """The gateway's own TLS listener is the upstream that demands one."""
    gateway.put("/routes/t", {"uri": "/t", "host": "a.example.com", "upstream": node(ports)})
    cert, key = pair("a.example.com")
    gateway.put("/ssls/one", {"cert": cert, "key": key, "snis": ["a.example.com"], "client": {"ca": pair("ca")[0]}})
    upstream = {
        "nodes": {gateway.tls_address: 1},
        "scheme": "https",
        "pass_host": "rewrite",
        "upstream_host": "a.example.com",
        "tls": dict(zip(("client_cert", "client_key"), pair("ca"), strict=True)),
    }
    gateway.put("/routes/front", {"uri": "/t", "host": "front", "upstream": upstream})
    assert get(gateway, "/t", {"Host": "front"})[2]["upstream"] == "u1"
