"""The recorded data plane cases, one by one: write records, send requests, compare upstreams and responses."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography import x509

from e2e.devgateway.process import DevGateway
from tests.unit.e2e.devgateway.backends import Substitution, cases, upstreams

NAMES = ("u1", "u2", "u3", "u4", "u5")
MATCH = cases("match")
MIXED = ("Via", "User-Agent", "Accept-Encoding", "Connection")


@pytest.fixture(scope="module")
def substitution() -> Iterator[Substitution]:
    with upstreams(*NAMES) as ports:
        yield Substitution(ports)


def send(gateway: DevGateway, request: dict[str, Any], *, body: str | None = None) -> dict[str, Any]:
    """Send one recorded request and return the response in the recording's format."""
    host, _, port = gateway.proxy_address.partition(":")
    source = (request["src"], 0) if "src" in request else None
    connection = http.client.HTTPConnection(host, int(port), timeout=10, source_address=source)
    try:
        connection.putrequest(request["method"], request["path"], skip_host=True, skip_accept_encoding=True)
        connection.putheader("Host", request.get("host", "127.0.0.1:19080"))
        for name, value in request.get("headers", {}).items():
            connection.putheader(name, value)
        if body:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body.encode() if body else None)
        response = connection.getresponse()
        return shape(response, response.read())
    finally:
        connection.close()


def shape(response: http.client.HTTPResponse, text: bytes) -> dict[str, Any]:
    got: dict[str, Any] = {"status": response.status, "headers": dict(response.getheaders())}
    try:
        got["body"] = json.loads(text)
    except ValueError:
        got["body"] = text.decode()
    if "X-Upstream" in got["headers"]:
        got["upstream"] = got["headers"]["X-Upstream"]
        seen = got["body"] if isinstance(got["body"], dict) else {}
        got["seen"] = {name: seen.get(name) for name in ("path", "method", "headers")}
    return got


def handshake(gateway: DevGateway, name: str) -> ssl.SSLSocket:
    host, _, port = gateway.tls_address.partition(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    raw = socket.create_connection((host, int(port)), timeout=10)
    try:
        return context.wrap_socket(raw, server_hostname=name)
    except BaseException:
        raw.close()
        raise


def send_tls(gateway: DevGateway, request: dict[str, Any]) -> dict[str, Any]:
    """Return the alert of a request over TLS."""
    with handshake(gateway, request["host"]) as connection:
        connection.sendall(f"GET {request['path']} HTTP/1.1\r\nHost: {request['host']}\r\n\r\n".encode())
        with pytest.raises(ssl.SSLError) as caught:
            connection.recv(100)
    return {"error": caught.value.reason}


def subject_of(gateway: DevGateway, name: str) -> str:
    try:
        with handshake(gateway, name) as connection:
            raw = connection.getpeercert(binary_form=True) or b""
    except ssl.SSLError as error:
        return str(error.reason)
    return x509.load_der_x509_certificate(raw).subject.rfc4514_string()


def check_request(gateway: DevGateway, want: dict[str, Any]) -> None:
    if "error" in want:
        assert send_tls(gateway, want["request"]) == {"error": want["error"]}
        return
    body = "x" if "Content-Length" in want.get("seen", {}).get("headers", {}) else None
    got = send(gateway, want["request"], body=body)
    for name, value in want.items():
        if name == "seen":
            check_seen(value, got["seen"], gateway)
        elif name == "headers":
            port = gateway.tls_address.partition(":")[2]
            shown = {key: text.replace("19443", port) for key, text in value.items()}
            assert {key: got["headers"].get(key) for key in shown} == shown
        elif name != "request":
            assert got[name] == value, (name, want["request"])


def check_seen(want: dict[str, Any], got: dict[str, Any], gateway: DevGateway) -> None:
    """Compare what the upstream saw; the listener's port differs from run to run."""
    port = gateway.proxy_address.partition(":")[2]

    def plain(headers: dict[str, str]) -> dict[str, str]:
        kept = {name: value for name, value in headers.items() if name not in MIXED}
        return kept | {"X-Forwarded-Port": kept["X-Forwarded-Port"].replace(port, "19080")}

    assert (got["method"], got["path"]) == (want["method"], want["path"])
    assert plain(got["headers"]) == plain(want["headers"])


def who(gateway: DevGateway, path: str, count: int) -> list[str]:
    answers = [send(gateway, {"method": "GET", "path": path}) for _ in range(count)]
    return [answer.get("upstream", str(answer["status"])) for answer in answers]


def check_result(gateway: DevGateway, want: dict[str, Any]) -> None:
    if "request" in want:
        check_request(gateway, want)
    elif "distribution" in want:
        assert Counter(who(gateway, want["path"], want["count"])) == want["distribution"]
    else:
        subject = want.get("subject", "").removeprefix("subject=").replace(" = ", "=")
        assert subject_of(gateway, want["sni"]) == (subject or want["error"])


PLAIN = [case for case in MATCH if "put_order" not in str(case["config"]) and "created" not in str(case["results"])]


@pytest.mark.parametrize("case", PLAIN, ids=lambda case: case["case"])
def test_data_plane_responds_as_recorded(case: dict[str, Any], gateway: DevGateway, substitution: Substitution) -> None:
    for step in case["config"]:
        status, answer = gateway.call("PUT", step["put"], substitution.set(step["body"]))
        assert status == step["status"], answer
    stuck: dict[str, str] = {}
    for want in case["results"]:
        if "sticky" in want:  # which node a hash falls on differs with the ports, but it stays
            path = want["sticky"]
            assert stuck.setdefault(path, who(gateway, path, 1)[0]) == who(gateway, path, 1)[0]
        else:
            check_result(gateway, want)


def tie(gateway: DevGateway, substitution: Substitution, name: str) -> None:
    gateway.put(f"/routes/{name}", {"uri": "/p", "upstream": {"nodes": {substitution.set(f"127.0.0.1:1930{name}"): 1}}})


@pytest.mark.parametrize(
    "case", [case for case in MATCH if "put_order" in str(case["config"])], ids=["3 2 1", "2 4 1 5 3"]
)
def test_tie_is_won_by_the_first_made_and_after_a_restart_by_the_first_id(
    case: dict[str, Any], gateway: DevGateway, substitution: Substitution
) -> None:
    for name in case["config"][0]["put_order"]:
        tie(gateway, substitution, name)
    want = case["results"][0]
    assert who(gateway, "/p", len(want["before"])) == want["before"]
    gateway.restart()
    assert who(gateway, "/p", len(want["after"])) == want["after"]


def test_tie_survives_an_update_and_is_lost_by_recreating(gateway: DevGateway, substitution: Substitution) -> None:
    (want,) = next(case["results"] for case in MATCH if case["case"].startswith("tie 1,2,3"))
    for name in "123":
        tie(gateway, substitution, name)
    assert who(gateway, "/p", 6) == want["created"]
    tie(gateway, substitution, "1")
    assert who(gateway, "/p", 4) == want["after_update"]
    gateway.call("DELETE", "/routes/1")
    tie(gateway, substitution, "1")
    assert who(gateway, "/p", 6) == want["after_recreate"]
    gateway.restart()
    assert who(gateway, "/p", 6) == want["after_restart"]
