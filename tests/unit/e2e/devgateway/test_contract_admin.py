"""The recorded Admin API interactions in order; times, generated ids, revisions and ciphertext are live values."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from e2e.devgateway.etcd import etcd_binary
from e2e.devgateway.process import ADMIN_KEY, DevGateway
from tests.unit.e2e.devgateway.backends import Substitution, cases, upstreams

ADMIN = cases("admin")
MODES = cases("admin_modes")
LIVE = ("create_time", "update_time", "createdIndex", "modifiedIndex")
WAIT = 15.0
HEADERS = {"X-API-KEY": ADMIN_KEY}


@pytest.fixture(scope="module")
def substitution() -> Iterator[Substitution]:
    with upstreams("u1", "u2", "u3", "u4") as ports:
        yield Substitution(ports)


@pytest.fixture(scope="module")
def gateway() -> Iterator[DevGateway]:
    with DevGateway(faults=False) as running:
        yield running


def send(gateway: DevGateway, case: dict[str, Any]) -> tuple[int, Any]:
    """Send one recorded request; returns (status, response)."""
    proxy = case.get("listener") == "proxy"
    host, _, port = (gateway.proxy_address if proxy else gateway.admin_address).partition(":")
    body = case.get("body")
    text = body if case.get("raw") and isinstance(body, str) else json.dumps(body)
    connection = http.client.HTTPConnection(host, int(port), timeout=30)
    try:
        headers = case.get("headers", {} if proxy else HEADERS)
        path = quote(case["path"], safe="/?&=%:@+,~^$()|")
        connection.request(case["method"], path, text.encode() if "body" in case else None, headers)
        response = connection.getresponse()
        content = response.read().decode()
    finally:
        connection.close()
    try:
        return response.status, json.loads(content)
    except ValueError:
        return response.status, content


def plain(value: Any, name: str = "") -> Any:
    """Replace live values; what the upstream saw is not compared here."""
    if isinstance(value, dict):
        if "upstream" in value and "method" in value and "headers" in value:
            return {"upstream": value["upstream"]}
        return {key: plain(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if name in LIVE and isinstance(value, int) and (value > 1000 or name.endswith("Index")):
        return "live"
    if isinstance(value, str):
        text = re.sub(r"\b0{10,}\d{1,10}\b", "generated id", value)
        return "@ciphertext" if re.fullmatch(r"[A-Za-z0-9+/=]{400,}", text) and len(set(text)) > 20 else text
    return value


@pytest.mark.parametrize("case", ADMIN, ids=lambda case: case.get("case", f"prepare {case['method']} {case['path']}"))
def test_admin_api_responds_as_recorded(case: dict[str, Any], gateway: DevGateway, substitution: Substitution) -> None:
    status, answer = send(gateway, substitution.set(case))
    if case.get("prepare"):  # replaces operations in between that were not recorded
        assert status < 400, answer
        return
    deadline = time.monotonic() + WAIT
    while case.get("wait") and status != case["status"] and time.monotonic() < deadline:
        time.sleep(0.1)  # the gateway responds differently once it has applied the records
        status, answer = send(gateway, substitution.set(case))
    assert (status, plain(answer)) == (case["status"], plain(substitution.set(case["response"])))


def test_stream_routes_are_refused_without_stream_mode(tmp_path: Path) -> None:
    with DevGateway(stream=False, data_dir=tmp_path) as gateway:
        for case in (case for case in MODES if case["mode"] == "stream_off"):
            assert send(gateway, case) == (case["status"], case["response"])


def test_standalone_gateways_answer_as_recorded(substitution: Substitution) -> None:
    """The recorded gateway applies a document up to 0.3 s after its response; this one at once.

    Pages of nginx differ in details; YAML is not supported.
    """
    with DevGateway(standalone=True) as gateway:
        for case in (substitution.set(case) for case in MODES if case["mode"] == "standalone"):
            if case["case"] == "sa: data plane immediately":
                continue
            status, answer = send(gateway, case)
            recorded = case["response"]
            if not isinstance(recorded, dict) or _is_of_another_document(answer, recorded):
                recorded = answer
            assert (status, _stable(answer)) == (case["status"], _stable(recorded)), case["case"]


def _is_of_another_document(answer: Any, recorded: Any) -> bool:
    """Return whether documents that were not recorded came before."""
    return "X-Digest" in recorded and answer["X-Digest"] != recorded["X-Digest"]


def _stable(answer: Any) -> Any:
    """Remove times and versions, which count all documents."""
    if not isinstance(answer, dict):
        return answer
    kept = {name: value for name, value in answer.items() if not name.endswith(("_conf_version", "X-Last-Modified"))}
    return plain(kept)


def test_traffic_continues_without_etcd_and_responses_match_the_recording(
    gateway: DevGateway, substitution: Substitution
) -> None:
    """The own etcd is killed and started again by a restart."""
    down = [substitution.set(case) for case in MODES if case["mode"] == "etcd_down"]
    for case in [case for case in down if case["case"].startswith("etcd up")]:
        assert send(gateway, case)[0] == case["status"]
    etcd = next(
        int(path.name)
        for path in Path("/proc").iterdir()
        if path.name.isdigit() and _parent(path) == gateway.pid and str(etcd_binary()) in _command(path)
    )
    _kill(etcd)
    for case in [case for case in down if case["case"].startswith("etcd down")]:
        status, answer = send(gateway, case)
        assert (status, plain(answer)) == (case["status"], case["response"]), case["case"]
    gateway.restart()
    assert "ed" in gateway.records("routes")


def _parent(path: Path) -> int:
    try:
        return int((path / "stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


def _command(path: Path) -> str:
    try:
        return (path / "cmdline").read_text()
    except OSError:
        return ""


def _kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
