"""A client without an account: requests that choose a destination, get past a protection or read what is not theirs."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pytest
from trustme import CA

from e2e.attacks.installation import Installation, Tenants
from e2e.cluster.client import Manifest, wait_until
from e2e.devgateway.process import DevGateway
from e2e.traffic import RequestLoop

ELSEWHERE = "/api.evil.test:1/v1/routes"
"""A path whose end, appended to a name, is another server."""

NOBODY = {"whitelist_source_range": "10.9.9.9/32"}
"""Only an address that no client of these attacks has."""

TIMEOUT = 10.0


TARGETS = ("$1", "${1}", "$1/x", "$1$2", "$2$1")
"""Values of `rewrite-target` that nginx sends as they are, without a slash in front."""

UPGRADES: Sequence[Mapping[str, str]] = ({}, {"Upgrade": "x"}, {"Upgrade": "websocket", "Connection": "Upgrade"})
"""Headers for which a gateway sends a request itself, in place of a function."""


def test_a_rewritten_path_does_not_choose_another_server(tenants: Tenants) -> None:
    hosts = {target: f"rewritten{number}.{tenants.domain}" for number, target in enumerate(TARGETS)}
    for number, (target, host) in enumerate(hosts.items()):
        given = {"use_regex": "true", "rewrite_target": target}
        tenants.apply(tenants.ingress(f"rewritten{number}", host, "/api(.*)()", kind="ImplementationSpecific", **given))
    tenants.settled()

    sent = [tenants.traffic.send(host, ELSEWHERE, headers=headers) for host in hosts.values() for headers in UPGRADES]

    # A gateway that looked for the server of the client would respond with 502.
    assert {(answer.status, answer.pod) for answer in sent} <= {(200, "web"), (400, ""), (500, ""), (503, "")}
    paths = {target: [*rewrites(tenants.installation, host)] for target, host in hosts.items()}
    assert {target for target, found in paths.items() if not all(each.startswith("/") for each in found)} == set()


def rewrites(installation: Installation, host: str) -> Iterator[str]:
    """Yield every path that the routes of a host send to a server: the development gateway has no resolver."""
    for route in installation.routes(host):
        plugin = route.get("plugins", {}).get("proxy-rewrite", {})
        yield from plugin.get("regex_uri", ())[1::2]
        yield from [plugin["uri"]] if "uri" in plugin else []


def secured(tenants: Tenants, host: str) -> list[Manifest]:
    """Return an Ingress with a certificate, so that HTTP is redirected."""
    leaf = CA().issue_cert(host)
    data = {"tls.crt": leaf.cert_chain_pems[0].bytes().decode(), "tls.key": leaf.private_key_pem.bytes().decode()}
    item = tenants.ingress("secured", host)
    item["spec"]["tls"] = [{"hosts": [host], "secretName": "server"}]
    return [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "server"}, "stringData": data}, item]


VARIABLES = ("http_cookie", "http_authorization", "{http_cookie}", "document_root", "pid", "route_name", "server_addr")


def test_the_redirect_to_https_repeats_the_path_as_it_is(tenants: Tenants) -> None:
    host = f"secured.{tenants.domain}"
    tenants.apply(secured(tenants, host))
    tenants.traffic.until_status(308, host)
    theirs = {"Cookie": "session=SECRET", "Authorization": "Bearer T0KEN"}

    got = {name: tenants.traffic.send(host, f"/a/${name}", headers=theirs).headers["location"] for name in VARIABLES}

    assert got == {name: f"https://{host}/a/${name}" for name in VARIABLES}


def test_a_new_allow_list_is_in_force_from_the_first_request(tenants: Tenants) -> None:
    for number in range(5):
        host = f"new{number}.{tenants.domain}"
        with RequestLoop(tenants.traffic, host, "/b", pause=0) as requests:
            tenants.apply(tenants.ingress(f"new{number}", host, "/", "/a", "/b", **NOBODY))
            tenants.traffic.until_status(403, host, "/b")
        assert {answer.status for _, answer in requests.answers} <= {403, 404}, tenants.installation.timeline(requests)


def test_an_edit_of_a_guarded_path_does_not_open_it(tenants: Tenants) -> None:
    """Each annotation adds a route in front of the others."""
    host = f"edited.{tenants.domain}"
    more = {"enable_cors": "true", "denylist_source_range": "10.9.9.8/32"}
    tenants.apply([tenants.ingress("open", host, "/"), tenants.ingress("guarded", host, "/b", **NOBODY)])
    tenants.traffic.until_status(403, host, "/b")
    tenants.traffic.until(lambda answer: answer.pod == "web", host)

    with RequestLoop(tenants.traffic, host, "/b", pause=0) as requests:
        for given in (more, {}) * 3:
            tenants.apply(tenants.ingress("guarded", host, "/b", **NOBODY, **given))
            tenants.settled()  # translated, not written: each edit may arrive during the one before

    assert {answer.status for _, answer in requests.answers} == {403}, tenants.installation.timeline(requests)


def test_routes_that_refuse_are_written_before_routes_that_serve(tenants: Tenants) -> None:
    gateway = tenants.installation.gateway
    if not isinstance(gateway, DevGateway):
        pytest.skip("only the development gateway lists its writes; with a real one, see the test above")
    before = len(gateway.write_log())
    host = f"ordered.{tenants.domain}"
    tenants.apply(tenants.ingress("ordered", host, "/", "/a", **NOBODY))
    tenants.traffic.until_status(403, host, "/a")
    tenants.settled()

    bodies = {each["id"]: each for each in tenants.installation.routes(host)}
    written = (line["path"].rpartition("/")[2] for line in gateway.write_log(before))
    kinds = ["serves" if "upstream_id" in bodies[id_] else "refuses" for id_ in written if id_ in bodies]

    assert kinds == sorted(kinds)


PATTERNS = ("/secure/((a|b)(/)?)*$", "/secure/([a-b]/?)+$", "/secure/(a|b|/|ab)*$")


def test_a_path_that_is_too_long_to_match_is_not_open(tenants: Tenants) -> None:
    """A gateway stops to match after a number of steps, and takes the error for a pattern that does not match."""
    hosts = {pattern: f"long{number}.{tenants.domain}" for number, pattern in enumerate(PATTERNS)}
    for number, (pattern, host) in enumerate(hosts.items()):
        given = {"kind": "ImplementationSpecific", "use_regex": "true", **NOBODY}
        tenants.apply(tenants.ingress(f"open{number}", host, "/"))
        tenants.apply(tenants.ingress(f"secure{number}", host, pattern, **given))
    tenants.settled()
    assert {tenants.traffic.send(host, "/open").status for host in hosts.values()} == {200}

    lengths = (20, 2000, 4000, 6000)
    sent = {
        (pattern, length): tenants.traffic.send(host, f"/secure/{'ab' * (length // 2)}").pod
        for pattern, host in hosts.items()
        for length in lengths
    }

    assert {each for each, pod in sent.items() if pod} == set()


ODD = (
    *("//admin", "/x/../admin", "/./admin", "/admin/", "/admin//", "/%61dmin", "/admin%2f", "/admin%2F..%2F"),
    *(
        "/admin;x",
        "/admin%00",
        "/admin%0a",
        "/admin%20",
        "/admin?x=/",
        "/admin/%2e%2e/admin",
        "/x/..%2fadmin",
        "/admin#x",
    ),
    *("http://{host}/admin", "http://elsewhere.test/admin", "/a/b/../../admin", "/%2fadmin", "/admin/../admin"),
)
METHODS = ("GET", "HEAD", "POST", "OPTIONS", "TRACE", "PROPFIND")


def test_no_way_to_write_a_path_gets_past_an_allow_list(tenants: Tenants) -> None:
    host = f"odd.{tenants.domain}"
    tenants.apply(tenants.ingress("open", host, "/"))
    tenants.apply(tenants.ingress("closed", host, "/admin", **NOBODY))
    tenants.traffic.until_status(403, host, "/admin")
    tenants.settled()

    passed = {path: raw(tenants, host, path) for path in ODD}

    # What the Pod received is what nginx would have sent: the name of another path.
    got = {path: seen for path, seen in passed.items() if seen.startswith("/admin") and seen[6:7] in ("", "/", "?")}
    assert got == {}
    assert {method: raw(tenants, host, "/admin", method=method) for method in METHODS} == dict.fromkeys(METHODS, "")


def raw(tenants: Tenants, host: str, path: str, *, method: str = "GET", version: str = "1.1") -> str:
    """Send a request as it is; return the path that the Pod received, not normalized; empty without a Pod."""
    line = f"{method} {path.format(host=host)} HTTP/{version}\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    with socket.create_connection(tenants.traffic.address, timeout=TIMEOUT) as connection:
        connection.sendall(line.encode("latin-1"))
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, _ = answer.partition(b"\r\n\r\n")
    return path.format(host=host) if b"x-pod:" in head.lower() else ""


def test_a_body_of_unknown_length_is_limited(tenants: Tenants) -> None:
    if not tenants.installation.runs_lua:
        pytest.skip("the development gateway does not limit bodies")
    host = f"body.{tenants.domain}"
    tenants.apply(tenants.ingress("body", host, "/", proxy_body_size="1k"))
    tenants.traffic.until(lambda answer: answer.pod == "web", host)
    head = f"POST / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n"

    for more in ("", "Upgrade: x\r\n"):
        with socket.create_connection(tenants.traffic.address, timeout=TIMEOUT) as connection:
            connection.sendall(f"{head}{more}\r\n800\r\n{'x' * 2048}\r\n0\r\n\r\n".encode())
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        assert b" 413 " in answer.partition(b"\r\n")[0]


def test_a_request_without_a_host_does_not_reach_a_tenant(tenants: Tenants) -> None:
    rule: dict[str, Any] = {
        "name": "any",
        "match": {"hosts": ["_"], "paths": ["/without-host"]},
        "backends": [{"serviceName": "evil", "servicePort": 80}],
    }
    tenants.attack(
        {
            "apiVersion": "apisix.apache.org/v2",
            "kind": "ApisixRoute",
            "metadata": {"name": "any"},
            "spec": {"http": [rule]},
        }
    )
    tenants.settled()

    with socket.create_connection(tenants.traffic.address, timeout=TIMEOUT) as connection:
        connection.sendall(b"GET /without-host HTTP/1.0\r\n\r\n")
        answer = b"".join(iter(lambda: connection.recv(65536), b""))

    assert b"404" in answer.partition(b"\r\n")[0]


def asking(tenants: Tenants, name: str, mode: str, authority: CA, factory: str) -> list[Manifest]:
    """Return an Ingress with a certificate that asks for client certificates of an authority."""
    host = f"{name}.{tenants.domain}"
    leaf = CA().issue_cert(host)
    pair = {"tls.crt": leaf.cert_chain_pems[0].bytes().decode(), "tls.key": leaf.private_key_pem.bytes().decode()}
    data = {"ca.crt": authority.cert_pem.bytes().decode()}
    given = {"auth_tls_secret": f"{factory}/clients-{name}", "auth_tls_verify_client": mode}
    item = tenants.ingress(name, host, service="evil" if name == "evil" else "web", **given)
    item["spec"]["tls"] = [{"hosts": [host], "secretName": f"server-{name}"}]
    kind = {"apiVersion": "v1", "kind": "Secret"}
    return [
        {**kind, "metadata": {"name": f"server-{name}"}, "stringData": pair},
        {**kind, "metadata": {"name": f"clients-{name}"}, "stringData": data},
        item,
    ]


@pytest.mark.parametrize("mode", ["on", "optional"])
def test_a_client_certificate_of_another_host_is_not_accepted(mode: str, tenants: Tenants) -> None:
    """The client presents it to the host that it is for, and then asks for another host on the same connection.

    A function compares the host with the server name: the development gateway is asked with equal ones only.
    """
    ours, theirs = CA(), CA()
    tenants.apply(asking(tenants, "shop", "on", ours, tenants.victim.namespace))
    tenants.attack(asking(tenants, "evil", mode, theirs, tenants.evil.namespace))
    names = {name: f"{name}.{tenants.domain}" for name in ("shop", "evil")}
    known, foreign, nobody = (unverified() for _ in range(3))
    ours.issue_cert("me@example.org").configure_cert(known)
    theirs.issue_cert("me@example.org").configure_cert(foreign)
    send = partial(sent_tls, tenants)
    wait_until(lambda: send(names["shop"], names["shop"], known), lambda pod: pod == "web", "the client to be let in")

    every = (*names.values(), "", "unknown.test") if tenants.installation.runs_lua else (names["shop"],)
    asked = [(sni, context) for sni in every for context in (foreign, nobody)]
    hosts = (names["shop"], names["shop"].upper(), f"{names['shop']}.", f"{names['shop']}:443")
    got = {send(sni, host, context) for sni, context in asked for host in hosts}

    assert "web" not in got


def unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def sent_tls(tenants: Tenants, sni: str, host: str, context: ssl.SSLContext) -> str:
    """Send a request for a host to a server name; return the Pod that responded, or an empty string."""
    address, _, port = tenants.installation.gateway.tls_address.rpartition(":")
    try:
        with (
            socket.create_connection((address, int(port)), timeout=TIMEOUT) as connection,
            context.wrap_socket(connection, server_hostname=sni or None) as secured,
        ):
            secured.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            answer = b"".join(iter(lambda: secured.recv(65536), b"")).lower()
    except (OSError, ssl.SSLError):
        return ""
    return next((pod for pod in ("web", "evil") if f"x-pod: {pod}".encode() in answer), "")
