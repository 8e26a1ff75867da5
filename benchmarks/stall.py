"""Measures how long the worst inputs block the controller: objects of tenants, and responses of gateways.

    python -m benchmarks.stall [--tree DIR] [input ...]

Each input starts one controller, with a fake API server and a fake Admin API in another process. /healthz is requested
all the time, and the controller is stopped after a fixed time.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import http.client
import json
import os
import re
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.kinds.table import CUSTOM_GROUP, RESOURCES
from e2e.devgateway.ports import free_port
from tests.fakes.adminapi import FakeAdminApi, Instead
from tests.fakes.hostile import ANSWERS, answering, refusing
from tests.fakes.kube.apiserver import KINDS, FakeApiServer, Kind

SECONDS = 30.0
"""Duration of the measurement of one input."""

END = 40.0
"""Seconds after which a controller that does not stop is killed; Kubernetes kills after 30."""

SERVED = [
    *KINDS,
    *(
        Kind(each.kind, each.api_version, each.plural, each.namespaced)
        for each in RESOURCES.values()
        if each.group == CUSTOM_GROUP
    ),
]


@dataclass(frozen=True, slots=True)
class Input:
    """One input: objects in addition to a small route, and how the gateway responds."""

    objects: Callable[[], list[JsonObject]] = list
    instead: Instead | None = None


def _route(name: str, rules: list[JsonObject], second: int = 0) -> JsonObject:
    stamp = f"2026-01-01T00:{second // 60:02d}:{second % 60:02d}Z"
    meta = {"name": name, "namespace": "default", "creationTimestamp": stamp}
    return {"apiVersion": "apisix.apache.org/v2", "kind": "ApisixRoute", "metadata": meta, "spec": {"http": rules}}


def _rule(name: str, match: JsonObject, plugins: list[JsonObject] | None = None) -> JsonObject:
    backends = [{"serviceName": "web", "servicePort": 80}]
    return {"name": name, "match": match, "backends": backends, **({"plugins": plugins} if plugins else {})}


def _texts() -> list[JsonObject]:
    config = {"allow_origins": 5, "x": [f"text number {number}" for number in range(60_000)]}
    plugins = [{"name": "cors", "enable": True, "config": config}]
    return [_route("texts", [_rule("r", {"paths": ["/texts"]}, plugins)])]


def _rules() -> list[JsonObject]:
    return [_route("rules", [_rule(f"r{n}", {"hosts": ["rules.test"], "paths": [f"/{n}"]}) for n in range(6000)])]


def _pairs() -> list[JsonObject]:
    match = {"hosts": [f"h{n}.pairs.test" for n in range(20_000)], "paths": [f"/{n}" for n in range(20_000)]}
    return [_route("pairs", [_rule("r", match)])]


def _rivals() -> list[JsonObject]:
    match = {"hosts": ["rivals.test"], "paths": ["/*"]}
    return [_route(f"rival-{n}", [_rule("r", match)], n) for n in range(300)]


def _names() -> list[JsonObject]:
    config = {"n" * 400_000: {f"a{number}": "text" for number in range(30_000)}}
    return [_route("names", [_rule("r", {"paths": ["/names"]}, [{"name": "csrf", "enable": True, "config": config}])])]


def _copies(size: int) -> list[JsonObject]:
    """Return 2,000 consumers that share a Secret of a given size in bytes."""
    meta = {"name": "large", "namespace": "default"}
    data = {"key": base64.b64encode(b"k" * size).decode()}
    auth = {"authParameter": {"keyAuth": {"secretRef": {"name": "large"}}}}
    return [
        {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data},
        *(
            {
                "apiVersion": "apisix.apache.org/v2",
                "kind": "ApisixConsumer",
                "metadata": {"name": f"copy-{number}", "namespace": "default"},
                "spec": auth,
            }
            for number in range(2000)
        ),
    ]


INPUTS: Mapping[str, Input] = {
    "60,000 texts, refused": Input(_texts, refusing()),
    "long name, refused": Input(_names, refusing()),
    "6,000 rules": Input(_rules),
    "6,000 rules, refused": Input(_rules, refusing()),
    "20,000 x 20,000 pairs": Input(_pairs),
    "300 rivals": Input(_rivals),
    "2,000 x 500 kB Secret": Input(partial(_copies, 500_000)),
    "2,000 x 60 kB Secret": Input(partial(_copies, 60_000)),
    **{name: Input(list, answering(name)) for name in ANSWERS},
}


class Prober(threading.Thread):
    """Requests /healthz repeatedly and records the longest response time."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.longest = 0.0
        self._port = port
        self._ended = threading.Event()

    def run(self) -> None:
        """Send requests until `stop`."""
        while not self._ended.is_set():
            began = time.monotonic()
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=END)
                connection.request("GET", "/healthz")
                connection.getresponse().read()
                connection.close()
            except OSError:
                pass
            self.longest = max(self.longest, time.monotonic() - began)
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop sending requests; the response time of the open request is counted."""
        self._ended.set()
        self.join(END)


async def measure(name: str, tree: Path | None, folder: Path) -> dict[str, float]:
    """Start a controller with an input and return the figures."""
    port = free_port()
    async with FakeApiServer(SERVED) as server, FakeAdminApi() as gateway:
        for item in _world():
            server.put(item)
        config = _config(server, gateway, folder, port)
        command = (sys.executable, "-P", "-m", "apisix_ingress", "run", "--config", str(config))
        environment = {**os.environ, **({"PYTHONPATH": str(tree)} if tree else {})}
        with (folder / "log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=log, stderr=log)
        try:
            await _until_leading(folder / "log", process)
            await asyncio.sleep(2.0)
            return await _watch(process, server, gateway, INPUTS[name], port) | _terms(folder / "log")
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


async def _watch(
    process: asyncio.subprocess.Process, server: FakeApiServer, gateway: FakeAdminApi, each: Input, port: int
) -> dict[str, float]:
    prober = Prober(port)
    prober.start()
    gateway.instead = each.instead
    for item in (*each.objects(), _route("small", [_rule("r", {"paths": ["/small"]})])):
        server.put(item)
    await asyncio.sleep(SECONDS)
    resident = _resident(process.pid)
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    await asyncio.to_thread(prober.stop)
    try:
        await asyncio.wait_for(process.wait(), END)
    except TimeoutError:
        return {"healthz_s": prober.longest, "stop_s": float("inf"), "peak_mib": resident}
    return {"healthz_s": prober.longest, "stop_s": time.monotonic() - began, "peak_mib": resident}


def _terms(log: Path) -> dict[str, float]:
    lines = log.read_text(errors="replace").splitlines()
    lost = sum('"lease.lost"' in line for line in lines)
    return {"leases_lost": lost, "log_lines": len(lines)}


async def _until_leading(log: Path, process: asyncio.subprocess.Process) -> None:
    while "cluster.takeover" not in (text := await asyncio.to_thread(log.read_text)):
        if process.returncode is not None:
            raise SystemExit(text)
        await asyncio.sleep(0.05)


def _resident(pid: int) -> float:
    found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def _world() -> list[JsonObject]:
    meta: dict[str, Any] = {"name": "web", "namespace": "default"}
    port = {"name": "http", "port": 80, "targetPort": 8080}
    labels = {"kubernetes.io/service-name": "web"}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}},
        {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"clusterIP": "10.96.0.1", "ports": [port]}},
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {**meta, "name": "web-1", "labels": labels},
            "addressType": "IPv4",
            "ports": [{"name": "http", "port": 8080}],
            "endpoints": [{"addresses": ["10.244.1.1"], "conditions": {"ready": True}}],
        },
    ]


def _config(server: FakeApiServer, gateway: FakeAdminApi, folder: Path, port: int) -> Path:
    path = folder / "config.yaml"
    election = {"namespace": "default"}
    document = {
        "log": {"format": "json"},
        "http": {"listen": f"127.0.0.1:{port}"},
        "kubernetes": {"kubeconfig": str(server.kubeconfig(folder / "kubeconfig")), "election": election},
        "clusters": [{"admin_url": gateway.url, "admin_key": gateway.key, "sync": {"audit_interval": "5s"}}],
    }
    path.write_text(json.dumps(document))
    return path


def main() -> int:
    """Measure the given inputs, or all; print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stall", description=__doc__)
    parser.add_argument("inputs", nargs="*", help=f"of: {', '.join(INPUTS)}")
    parser.add_argument("--tree", type=Path, help="folder with another version of the controller")
    arguments = parser.parse_args()
    print("| input | longest /healthz | stop | leases lost | peak memory | log lines |\n|---|---|---|---|---|---|")
    for name in arguments.inputs or INPUTS:
        with tempfile.TemporaryDirectory(prefix="apisix-ingress-stall-") as folder:
            got = asyncio.run(measure(name, arguments.tree, Path(folder)))
        stop = f"{got['stop_s']:.1f} s" if got["stop_s"] < END else f"over {END:.0f} s"
        figures = f"{got['healthz_s']:.2f} s | {stop} | {got['leases_lost']:.0f} | {got['peak_mib']:.0f} MiB"
        print(f"| {name} | {figures} | {got['log_lines']:.0f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
