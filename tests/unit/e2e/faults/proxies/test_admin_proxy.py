"""The proxy in front of an Admin API, over real sockets: the effect of rules on requests, and the journal."""

import http.client
import http.server
import json
import os
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from trustme import CA

from e2e.cluster.client import wait_until
from e2e.devgateway.process import DevGateway
from e2e.faults import dumps
from e2e.faults.proxies.admin_proxy import ACTIONS, AdminProxy
from e2e.faults.proxies.rules import RuleError

UPSTREAM = b'{"type": "roundrobin", "nodes": {"127.0.0.1:1": 1}}'
PUT = "/apisix/admin/upstreams/1"
BROKEN = (http.client.HTTPException, OSError)


@pytest.fixture(scope="module")
def gateway() -> Iterator[DevGateway]:
    with DevGateway(stream=False) as started:
        yield started


@pytest.fixture
def proxy(gateway: DevGateway, tmp_path: Path) -> Iterator[AdminProxy]:
    gateway.wipe()
    with AdminProxy(gateway.admin_url, gateway.admin_key, tmp_path) as started:
        yield started


def connect(proxy: AdminProxy, *, timeout: float = 10.0) -> http.client.HTTPConnection:
    where = urlsplit(proxy.admin_url)
    return http.client.HTTPConnection(where.hostname or "", where.port, timeout=timeout)


def ask(
    proxy: AdminProxy,
    method: str = "PUT",
    path: str = PUT,
    body: bytes | None = UPSTREAM,
    *,
    on: http.client.HTTPConnection | None = None,
    timeout: float = 10.0,
) -> int:
    """Send one request; return its status once the response is complete, 0 if the connection breaks first."""
    connection = on or connect(proxy, timeout=timeout)
    headers = {"X-API-KEY": proxy.admin_key, "User-Agent": "apisix-ingress/1.0 (pod_1a2b)"}
    try:
        connection.request(method, path, body, headers)
        reply = connection.getresponse()
        reply.read()
    except BROKEN:
        return 0
    finally:
        if on is None:
            connection.close()
    return reply.status


def test_without_rules_requests_pass_on_one_connection_and_are_noted(proxy: AdminProxy, gateway: DevGateway) -> None:
    connection = connect(proxy)
    split = {"rules": [{"weighted_upstreams": [{"upstream_id": "1"}]}]}
    body = json.dumps({"uri": "/", "upstream_id": "1", "plugins": {"traffic-split": split}}).encode()
    got = [ask(proxy, on=connection), ask(proxy, path="/apisix/admin/routes/7", body=body, on=connection)]
    got.append(ask(proxy, "GET", "/apisix/admin/routes?page=1", None, on=connection))
    connection.close()
    assert got == [201, 201, 200]
    assert set(gateway.records("routes")) == {"7"}
    entries = proxy.entries()
    assert [(entry.method, entry.record, entry.status, entry.response) for entry in entries] == [
        ("PUT", "upstreams/1", 201, 201),
        ("PUT", "routes/7", 201, 201),
        ("GET", "routes", 200, 200),
    ]
    assert {entry.writer for entry in entries} == {"pod_1a2b"}
    assert [entry.refs for entry in entries] == [[], ["upstreams/1"], []]
    assert [entry.is_write for entry in entries] == [True, True, False]
    assert proxy.entries(after=2) == entries[2:]
    assert all(entry.received <= entry.answered for entry in entries)
    assert proxy.admin_key not in proxy.journal_path.read_text()


@pytest.mark.parametrize(
    ("action", "response", "done"),
    [("drop", 0, False), ("drop_reply", 0, True), ("half", 0, True), ("wrong_key", 401, False), ("status", 503, False)],
)
def test_faults_of_one_request(
    proxy: AdminProxy, gateway: DevGateway, action: str, response: int, *, done: bool
) -> None:
    proxy.play({"match": {"method": "PUT"}, "action": action, "times": 1})
    assert ask(proxy) == response
    assert ("1" in gateway.records("upstreams")) == done
    (entry,) = proxy.writes()
    assert (entry.rule, entry.is_done) == (action, done)
    assert ask(proxy) in (200, 201)


def test_a_status_has_the_text_and_delay_of_the_rule(proxy: AdminProxy) -> None:
    proxy.play({"action": "status", "status": 429, "retry_after": 7, "body": "slow down"})
    connection = connect(proxy)
    connection.request("GET", "/apisix/admin/routes")
    reply = connection.getresponse()
    assert (reply.status, reply.getheader("Retry-After"), reply.read()) == (429, "7", b"slow down")
    connection.close()


@pytest.mark.parametrize(("action", "done"), [("delay", False), ("late", True), ("hang", False)])
def test_what_is_late_is_done_before_or_after_the_client_gave_up(
    proxy: AdminProxy, gateway: DevGateway, action: str, *, done: bool
) -> None:
    proxy.play({"match": {"method": "PUT"}, "action": action, "seconds": 30})
    assert ask(proxy, timeout=0.5) == 0
    assert ("1" in gateway.records("upstreams")) == done


def test_rules_take_every_nth_skip_some_and_end(proxy: AdminProxy) -> None:
    proxy.play({"match": {"path": ".*/upstreams/.*"}, "action": "status", "skip": 1, "every": 2, "times": 2})
    assert [ask(proxy, "GET", PUT, None) for _ in range(8)] == [404, 404, 503, 404, 503, 404, 404, 404]


def test_share_of_requests_is_drawn_from_a_seed(proxy: AdminProxy) -> None:
    proxy.play({"action": "status", "share": 0.3})
    got = [ask(proxy, "GET", PUT, None) for _ in range(100)]
    assert set(got) == {404, 503}
    assert 15 < got.count(503) < 45


def test_rules_change_while_it_runs_and_bad_ones_change_nothing(proxy: AdminProxy) -> None:
    assert ask(proxy, "GET", PUT, None) == 404
    proxy.play({"action": "status"})
    assert ask(proxy, "GET", PUT, None) == 503
    with pytest.raises(RuleError, match="no_such_fault"):
        proxy.play({"action": "no_such_fault"})
    proxy.rules.path.write_text("[{]")
    assert ask(proxy, "GET", PUT, None) == 503
    assert "rules.json" in proxy.rules.problem
    proxy.play()
    assert (ask(proxy, "GET", PUT, None), proxy.rules.problem) == (404, "")


def test_stopped_proxy_refuses_and_a_started_one_has_the_same_port(proxy: AdminProxy) -> None:
    url = proxy.admin_url
    held = connect(proxy)
    assert ask(proxy, on=held) == 201
    proxy.stop()
    assert (ask(proxy), ask(proxy, on=held)) == (0, 0)
    proxy.start()
    assert (ask(proxy), proxy.admin_url) == (200, url)
    held.close()


def test_a_stopped_gateway_breaks_the_connection(gateway: DevGateway, tmp_path: Path) -> None:
    with AdminProxy("http://127.0.0.1:1", "key", tmp_path) as proxy:
        assert ask(proxy) == 0
        (entry,) = proxy.entries()
        assert (entry.status, entry.response) == (None, None)


def test_requests_are_in_the_journal_before_their_responses(tmp_path: Path) -> None:
    done, answer = threading.Event(), threading.Event()

    class Slow(http.server.BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            done.set()
            answer.wait(10)
            self.send_response(201)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with http.server.HTTPServer(("127.0.0.1", 0), Slow) as server, ThreadPoolExecutor(3) as pool:
        pool.submit(server.serve_forever)
        with AdminProxy(f"http://127.0.0.1:{server.server_port}", "key", tmp_path) as proxy, ExitStack() as stack:
            stack.callback(server.shutdown)
            stack.callback(answer.set)
            response = pool.submit(ask, proxy)
            assert done.wait(10)
            noted = pool.submit(proxy.writes)
            answer.set()
            assert [entry.status for entry in noted.result(10)] == [201]
            assert response.result(10) == 201


def test_wiped_gateway_gets_an_older_dump_back(proxy: AdminProxy, gateway: DevGateway, tmp_path: Path) -> None:
    gateway.put("/upstreams/old", {"type": "roundrobin", "nodes": {"127.0.0.1:1": 1}})
    gateway.put("/routes/old", {"uri": "/old", "upstream_id": "old"})
    gateway.put("/consumers", {"username": "old", "plugins": {"key-auth": {"key": "k"}}})
    gateway.put("/plugin_metadata/syslog", {"log_format": {"host": "$host"}})
    file = tmp_path / "dump.json"
    dump = dumps.take(gateway.admin_url, gateway.admin_key)
    dumps.save(dump, file)
    gateway.put("/upstreams/new", {"type": "roundrobin", "nodes": {"127.0.0.1:1": 1}})
    gateway.put("/routes/old", {"uri": "/edited", "upstream_id": "new"})
    proxy.play({"action": "restore", "file": str(file), "times": 1})
    assert ask(proxy, "GET", "/apisix/admin/upstreams/new", None) == 404
    assert gateway.records("routes")["old"]["uri"] == "/old"
    assert {kind: set(found) for kind, found in dump.items()} == {
        kind: set(found) for kind, found in dumps.take(gateway.admin_url, gateway.admin_key).items()
    }
    proxy.play({"action": "wipe", "times": 1})
    assert ask(proxy, "GET", "/apisix/admin/routes/old", None) == 404
    assert not any(dumps.take(gateway.admin_url, gateway.admin_key).values())


@pytest.mark.parametrize(("action", "done"), [("kill_before", False), ("kill_during", True), ("kill_after", True)])
def test_process_dies_before_during_or_after_its_request(
    proxy: AdminProxy, gateway: DevGateway, action: str, *, done: bool
) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as victim:
        proxy.play({"match": {"method": "PUT"}, "action": action, "pid": victim.pid, "times": 1})
        response = ask(proxy)
        assert victim.wait(10) == -9
    assert ("1" in gateway.records("upstreams"), response) == (done, 201 if action == "kill_during" else 0)


def test_most_in_flight_includes_waiting_requests(proxy: AdminProxy) -> None:
    proxy.play({"action": "hang"})
    waiting = [connect(proxy) for _ in range(3)]
    for connection in waiting:
        connection.request("GET", PUT)
    wait_until(lambda: proxy.most_in_flight, lambda got: got == 3, "all of them to be under way")
    for connection in waiting:
        connection.close()


def test_a_client_certificate_is_requested_and_recorded(gateway: DevGateway, tmp_path: Path) -> None:
    authority = CA()
    server, client = authority.issue_cert("127.0.0.1"), authority.issue_cert("client")
    ours, theirs = (ssl.SSLContext(each) for each in (ssl.PROTOCOL_TLS_SERVER, ssl.PROTOCOL_TLS_CLIENT))
    for context, leaf in ((ours, server), (theirs, client)):
        leaf.configure_cert(context)
        authority.configure_trust(context)
    ours.verify_mode = ssl.CERT_REQUIRED
    with AdminProxy(gateway.admin_url, gateway.admin_key, tmp_path, tls=ours) as proxy:
        where = urlsplit(proxy.admin_url)
        connection = http.client.HTTPSConnection(where.hostname or "", where.port, context=theirs, timeout=10)
        assert (where.scheme, ask(proxy, "GET", PUT, None, on=connection)) == ("https", 404)
        connection.close()
        (entry,) = proxy.entries()
        assert entry.certificate


def test_a_command_runs_until_sigterm(gateway: DevGateway, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "e2e.faults.proxies.admin_proxy", gateway.admin_url, "--folder", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as running:
        assert running.stdout is not None
        line = running.stdout.readline()
        running.terminate()
        assert running.wait(20) == 0
    assert line.startswith("http://127.0.0.1:")


def test_every_action_is_described() -> None:
    described = sys.modules[AdminProxy.__module__].__doc__ or ""
    assert [action for action in sorted(ACTIONS) if f"\n{action} " not in described] == []
