"""The process, the Admin API beyond the recording, the faults and the log of writes."""

from __future__ import annotations

import http.client
import json
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from e2e.devgateway.process import DevGateway
from tests.unit.e2e.devgateway.requests import get, node


def test_first_line_says_for_development_only(running: DevGateway) -> None:
    assert "FOR DEVELOPMENT ONLY" in running.notice


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_records_survive_stop_and_kill(end: str, tmp_path: Path, ports: dict[str, int]) -> None:
    with DevGateway(data_dir=tmp_path) as gateway:
        gateway.put("/routes/a", {"uri": "/a", "upstream": node(ports)})
        want = gateway.records("routes")
        getattr(gateway, end)()
        gateway.start()
        assert gateway.records("routes") == want
        assert get(gateway, "/a")[0] == 200


def test_two_gateways_on_one_etcd_serve_the_same_records(gateway: DevGateway, ports: dict[str, int]) -> None:
    with DevGateway(etcd=gateway.etcd_url) as other:
        gateway.put("/routes/a", {"uri": "/a", "upstream": node(ports)})
        deadline = time.monotonic() + 10
        while get(other, "/a")[0] != 200 and time.monotonic() < deadline:
            threading.Event().wait(0.01)  # the other one receives it over its watch
        assert get(other, "/a")[2]["upstream"] == "u1"


def test_connection_is_closed_after_a_thousand_requests(gateway: DevGateway) -> None:
    host, _, port = gateway.admin_address.partition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=10)
    answers = []
    for _ in range(1000):
        connection.request("GET", "/apisix/admin/routes", headers={"X-API-KEY": gateway.admin_key})
        response = connection.getresponse()
        response.read()
        answers.append(response.getheader("Connection"))
    connection.close()
    assert answers == ["keep-alive"] * 999 + ["close"]


def test_body_limit_is_that_of_the_gateway(gateway: DevGateway, ports: dict[str, int]) -> None:
    def body(size: int) -> dict[str, Any]:
        functions = ["return function() end --" + "x" * size]
        plugins = {"serverless-pre-function": {"functions": functions}}
        return {"uri": "/big", "upstream": node(ports), "plugins": plugins}

    assert gateway.call("PUT", "/routes/big", body(1_400_000))[0] == 201
    size = len(json.dumps(body(1_600_000)))
    want = f"invalid request body: request size {size} is greater than the maximum size 1572864 allowed"
    assert gateway.call("PUT", "/routes/big", body(1_600_000)) == (400, {"error_msg": want})


def test_concurrent_patches_conflict_and_lose_nothing_that_was_answered(gateway: DevGateway) -> None:
    gateway.put("/upstreams/cc", {"nodes": {"127.0.0.1:1": 1}})

    def write(number: int) -> tuple[int, Any]:
        return gateway.call("PATCH", "/upstreams/cc", {"labels": {f"k{number}": "v"}})

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(write, range(40)))
    refused = [answer for status, answer in answers if status == 503]
    assert all(answer == {"error_msg": "value changed before overwritten"} for answer in refused)
    want = {f"k{number}" for number, (status, _) in enumerate(answers) if status == 200}
    assert set(gateway.records("upstreams")["cc"]["labels"]) == want


def test_concurrent_puts_are_all_served(gateway: DevGateway, ports: dict[str, int]) -> None:
    def write(number: int) -> int:
        return gateway.call("PUT", f"/routes/{number}", {"uri": f"/{number}", "upstream": node(ports)})[0]

    with ThreadPoolExecutor(16) as pool:
        assert set(pool.map(write, range(200))) == {201}
    assert {get(gateway, f"/{number}")[0] for number in range(200)} == {200}


def test_bad_sub_path_is_an_error_and_the_gateway_serves_on(gateway: DevGateway) -> None:
    gateway.put("/upstreams/a", {"nodes": [{"host": "a", "port": 1, "weight": 1}]})
    assert gateway.call("PATCH", "/upstreams/a/nodes/x/y", 1)[0] == 500
    assert gateway.call("GET", "/upstreams/a")[0] == 200


def test_concurrent_large_records_are_all_written(gateway: DevGateway) -> None:
    def write(number: int) -> int:
        labels = {f"k{index}": "x" * 200 for index in range(4000)}
        return gateway.call("PUT", f"/upstreams/{number}", {"nodes": {}, "labels": labels})[0]

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(write, range(12))) == {201}


@pytest.mark.parametrize(
    ("path", "body", "want"),
    [
        (
            "/consumers/c",
            {"username": "c", "plugins": {"jwt-auth": {"key": "k"}}},
            "invalid plugins configuration: failed to check the configuration of plugin jwt-auth err: "
            'property "secret" is required when using HS based algorithms',
        ),
        (
            "/routes/r",
            {
                "uri": "/r",
                "plugins": {"fault-injection": {"abort": {"http_status": 500, "vars": [[["uri", "?", "a"]]]}}},
            },
            "failed to check the configuration of plugin fault-injection err: invalid operator '?'",
        ),
        (
            "/stream_routes/s",
            {"plugins": {"mqtt-proxy": {}}},
            'failed to check the configuration of stream plugin [mqtt-proxy]: property "protocol_level" is required',
        ),
        (
            "/upstreams/u",
            {"nodes": {}, "timeout": []},
            'invalid configuration: property "timeout" validation failed: property "connect" is required',
        ),
        (
            "/upstreams/u",
            {"nodes": [{"host": "a", "port": 1, "weight": 1}, []]},
            'invalid configuration: property "nodes" validation failed: object matches none of the required',
        ),
    ],
)
def test_refused_with_the_gateways_error(gateway: DevGateway, path: str, body: object, want: str) -> None:
    """Responses of an APISIX 3.18 to requests that are not in the recording."""
    assert gateway.call("PUT", path, body) == (400, {"error_msg": want})


def test_times_given_inside_the_upstream_are_refused(gateway: DevGateway, ports: dict[str, int]) -> None:
    body = {"uri": "/a", "create_time": 1, "upstream": {**node(ports), "update_time": 1}}
    want = {"error_msg": "the property is forbidden:  create_time"}
    assert gateway.call("PUT", "/routes/a", body) == (400, want)
    del body["create_time"]
    want = {"error_msg": "the property is forbidden:  upstream.update_time"}
    assert gateway.call("PUT", "/routes/a", body) == (400, want)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ('{"a" 1}', "Expected colon but found T_INTEGER at character 6"),
        ('{"a" 1.5}', "Expected colon but found T_NUMBER at character 6"),
        ('{"a" 1e5}', "Expected colon but found T_NUMBER at character 6"),
        ('{"a":1 "b"}', "Expected comma or object end but found T_STRING at character 8"),
        ("[1 2]", "Expected comma or array end but found T_INTEGER at character 4"),
        ('{"a":}', "Expected value but found T_OBJ_END at character 6"),
        ("{} x", "Expected the end but found invalid token at character 4"),
    ],
)
def test_malformed_json_is_named_as_the_gateway_names_it(text: str, want: str, gateway: DevGateway) -> None:
    host, _, port = gateway.admin_address.partition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=10)
    connection.request("PUT", "/apisix/admin/routes/a", text, {"X-API-KEY": gateway.admin_key})
    got = json.loads(connection.getresponse().read())
    connection.close()
    assert got == {"error_msg": f"invalid request body: {want}", "req_body": text}


def test_status_fault_counts_down(gateway: DevGateway) -> None:
    gateway.add_fault("status", method="PUT", path="/apisix/admin/upstreams/.*", status=500, body="{}", times=2)
    body: dict[str, Any] = {"nodes": {}}
    assert [gateway.call("PUT", "/upstreams/a", body)[0] for _ in range(3)] == [500, 500, 201]


@pytest.mark.parametrize(("action", "written"), [("reset", False), ("drop_reply", True)])
def test_broken_connection_leaves_the_write_undone_or_done(action: str, written: bool, gateway: DevGateway) -> None:
    gateway.add_fault(action, method="PUT", times=1)
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        gateway.call("PUT", "/upstreams/a", {"nodes": {}})
    assert ("a" in gateway.records("upstreams")) is written


def test_a_hanging_request_gets_no_response(gateway: DevGateway) -> None:
    gateway.add_fault("hang", method="PUT", times=1)
    host, _, port = gateway.admin_address.partition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=0.3)
    connection.request("PUT", "/apisix/admin/upstreams/a", "{}", {"X-API-KEY": gateway.admin_key})
    with pytest.raises(TimeoutError):
        connection.getresponse()
    connection.close()
    assert gateway.records("upstreams") == {}


def test_delayed_request_is_done(gateway: DevGateway) -> None:
    gateway.add_fault("delay", delay="20ms", times=1)
    assert gateway.call("PUT", "/upstreams/a", {"nodes": {}})[0] == 201


def test_cleared_faults_play_no_more(gateway: DevGateway) -> None:
    gateway.add_fault("status", method="PUT")
    gateway.clear_faults()
    assert gateway.call("PUT", "/upstreams/a", {"nodes": {}})[0] == 201


def test_a_paused_gateway_responds_when_it_is_resumed(gateway: DevGateway) -> None:
    gateway.pause()
    try:
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(gateway.call, "PUT", "/upstreams/a", {"nodes": {}})
            with pytest.raises(TimeoutError):
                answer.result(0.2)
            gateway.resume()
            assert answer.result(10)[0] == 201
    finally:
        gateway.resume()


def test_urls_are_those_the_listeners_answer_on(gateway: DevGateway) -> None:
    for url, want in ((f"{gateway.admin_url}/routes", 401), (gateway.proxy_url, 404)):
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(url, timeout=10)
        with caught.value as refused:
            assert refused.status == want


def test_bad_fault_is_refused(gateway: DevGateway) -> None:
    with pytest.raises(AssertionError, match="action must be one of"):
        gateway.add_fault("explode")


def test_the_write_log_lists_writers_and_writes_in_order(gateway: DevGateway) -> None:
    gateway.call("PUT", "/upstreams/a", {"nodes": {}})
    gateway.call("GET", "/upstreams/a")
    gateway.call("DELETE", "/upstreams/a")
    log = gateway.write_log()
    want = [(1, "PUT", "/apisix/admin/upstreams/a", 201), (2, "DELETE", "/apisix/admin/upstreams/a", 200)]
    assert [(line["seq"], line["method"], line["path"], line["status"]) for line in log] == want
    assert gateway.write_log(after=1) == log[1:]
    assert log[0]["received"] < log[0]["monotonic"] < log[1]["received"] < log[1]["monotonic"]
