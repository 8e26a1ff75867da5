"""A stand-in for kubelets: it runs the suite's echo server for every Pod, each in a network namespace of its own.

Pods get addresses of a bridge, become ready, and their logs are served to the API server. Images are ignored: every
container is the same echo server, except that of CoreDNS, which is a script (`nameserver.py`).
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ipaddress
import os
import ssl
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
from aiohttp import web
from trustme import CA

from e2e.cluster.client import KubeApiError, KubeClient

POD_NETWORK = ipaddress.IPv4Network("10.245.0.0/16")
BRIDGE = "conformance"
POLL_SECONDS = 0.2
NODE = "conformance-node"
KUBELET_PORT = 10250


@dataclass
class _Running:
    """The process of one Pod."""

    address: str
    process: subprocess.Popen[bytes]
    folder: Path
    log: Path


@dataclass
class Kubelet:
    """Runs Pods until `stop`.

    Attributes:
        api: The API server.
        echo: The echo server of the suite.
        root: A folder for files of Pods and logs.
    """

    api: KubeClient
    echo: Path
    root: Path
    _pods: dict[str, _Running] = field(default_factory=dict)
    _deployed: set[str] = field(default_factory=set)
    _count: int = 1
    _stop: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Create the bridge and the node, and manage Pods in a thread."""
        _ip("link", "add", BRIDGE, "type", "bridge")
        _ip("addr", "add", f"{next(POD_NETWORK.hosts())}/{POD_NETWORK.prefixlen}", "dev", BRIDGE)
        _ip("link", "set", BRIDGE, "up")
        self._add_node()
        threading.Thread(target=self._run, name="kubelet", daemon=True).start()
        threading.Thread(target=self._serve_logs, name="kubelet-logs", daemon=True).start()

    def stop(self) -> None:
        """Stop every Pod."""
        self._stop.set()
        for name in list(self._pods):
            self._end(name)

    def _add_node(self) -> None:
        self.api.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
        status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": KUBELET_PORT}},
            "conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": ""}],
        }
        self.api.patch("Node", NODE, {"status": status}, subresource="status")

    def _run(self) -> None:
        while not self._stop.wait(POLL_SECONDS):
            try:
                self._look()
            except (KubeApiError, httpx.HTTPError, subprocess.CalledProcessError) as error:
                print(f"kubelet: {error}", file=sys.stderr)

    def _look(self) -> None:
        for deployment in self.api.request("GET", "/apis/apps/v1/deployments")["items"]:
            self._scale(deployment)
        pods = self.api.request("GET", "/api/v1/pods")["items"]
        there = {pod["metadata"]["uid"]: pod for pod in pods}
        for uid in [each for each in self._pods if each not in there]:
            self._end(uid)
        for uid, pod in there.items():
            if pod["metadata"].get("deletionTimestamp"):
                self._end(uid)
                self._forget(pod)
            elif uid not in self._pods:
                self._begin(uid, pod)

    def _scale(self, deployment: dict[str, Any]) -> None:
        """Create the Pods of a Deployment; the suite never changes a Deployment."""
        meta, spec = deployment["metadata"], deployment["spec"]
        if meta["uid"] in self._deployed:
            return
        self._deployed.add(meta["uid"])
        owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": meta["name"], "uid": meta["uid"]}
        for number in range(spec.get("replicas", 1)):
            name = f"{meta['name']}-{meta['uid'][:8]}-{number:05}"  # the suite strips the last two parts of the name
            labels = spec["template"]["metadata"].get("labels", {})
            pod = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "labels": labels, "ownerReferences": [owner]},
                "spec": spec["template"]["spec"],
            }
            self.api.create(pod, namespace=meta["namespace"])

    def _begin(self, uid: str, pod: dict[str, Any]) -> None:
        meta = pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        if not pod["spec"].get("nodeName"):
            target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": meta["name"]}, "target": target}
            self.api.request("POST", f"{path}/binding", body=binding)
        self._count += 1
        address = str(POD_NETWORK[self._count])
        folder = Path(tempfile.mkdtemp(dir=self.root, prefix="pod-"))
        environment = self._environment(pod, folder, address)
        log = folder / "log"
        self._pods[uid] = _Running(address, _start(self.echo, environment, log, address, self._count), folder, log)
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        names = [each["name"] for each in pod["spec"]["containers"]]
        conditions = [{"type": each, "status": "True"} for each in ("Ready", "ContainersReady", "PodScheduled")]
        state = {"running": {"startedAt": now}}
        containers = [
            {
                "name": name,
                "ready": True,
                "started": True,
                "state": state,
                "restartCount": 0,
                "image": "",
                "imageID": "",
            }
            for name in names
        ]
        status = {
            "phase": "Running",
            "conditions": conditions,
            "podIP": address,
            "podIPs": [{"ip": address}],
            "hostIP": "127.0.0.1",
            "startTime": now,
            "containerStatuses": containers,
        }
        self.api.patch("Pod", meta["name"], {"status": status}, namespace=meta["namespace"], subresource="status")

    def _environment(self, pod: dict[str, Any], folder: Path, address: str) -> dict[str, str]:
        spec, meta = pod["spec"]["containers"][0], pod["metadata"]
        mounts = self._mounts(pod, folder)
        fields = {"metadata.name": meta["name"], "metadata.namespace": meta["namespace"], "status.podIP": address}
        found = {"PATH": os.environ["PATH"]}
        for each in spec.get("env") or ():
            value = each.get("value")
            if value is None:
                value = fields.get(each.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath", ""), "")
            for mount, real in mounts.items():
                value = value.replace(mount, real)
            found[each["name"]] = value
        if "coredns" in spec.get("image", ""):
            found["NAMESERVER"] = "1"
        return found

    def _mounts(self, pod: dict[str, Any], folder: Path) -> dict[str, str]:
        """Write the files of Secrets and ConfigMaps that a Pod mounts; return path in the container → path here."""
        namespace = pod["metadata"]["namespace"]
        volumes = {each["name"]: each for each in pod["spec"].get("volumes") or ()}
        found = {}
        for mount in pod["spec"]["containers"][0].get("volumeMounts") or ():
            volume = volumes.get(mount["name"], {})
            target = folder / mount["name"]
            target.mkdir()
            for kind, key, name in (("secrets", "secret", "secretName"), ("configmaps", "configMap", "name")):
                if key in volume:
                    path = f"/api/v1/namespaces/{namespace}/{kind}/{volume[key][name]}"
                    data = self.api.request("GET", path).get("data") or {}
                    items = volume[key].get("items") or [{"key": each, "path": each} for each in data]
                    for item in items:
                        text = data[item["key"]]
                        content = base64.b64decode(text) if key == "secret" else text.encode()
                        (target / item["path"]).write_bytes(content)
            found[mount["mountPath"]] = str(target)
        return found

    def _end(self, uid: str) -> None:
        running = self._pods.get(uid)
        if running is not None and running.process.poll() is None:
            running.process.kill()
            running.process.wait()

    def _forget(self, pod: dict[str, Any]) -> None:
        """Confirm that a Pod has ended."""
        meta = pod["metadata"]
        with contextlib.suppress(KubeApiError):
            self.api.delete("Pod", meta["name"], namespace=meta["namespace"], grace=0)

    def _serve_logs(self) -> None:
        asyncio.run(self._logs())

    async def _logs(self) -> None:
        application = web.Application()
        application.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._log)
        runner = web.AppRunner(application)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", KUBELET_PORT, ssl_context=_server_context()).start()
        await asyncio.to_thread(self._stop.wait)

    async def _log(self, request: web.Request) -> web.Response:
        namespace, name = request.match_info["namespace"], request.match_info["pod"]
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        pod = await asyncio.to_thread(self.api.request, "GET", path)
        running = self._pods.get(pod["metadata"]["uid"])
        return web.Response(body=running.log.read_bytes() if running else b"")


def _server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    CA().issue_cert("127.0.0.1").configure_cert(context)
    return context


def _start(echo: Path, environment: dict[str, str], log: Path, address: str, number: int) -> subprocess.Popen[bytes]:
    """Start a Pod's process in a namespace of its own; it waits until it has its address."""
    nameserver = f"{sys.executable} {Path(__file__).with_name('nameserver.py')}"
    program = nameserver if "NAMESERVER" in environment else str(echo)
    script = f"read _; exec {program}"
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["unshare", "-n", "sh", "-c", script],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    pid = str(process.pid)
    _wait_for_namespace(process.pid)
    veth = f"pod{number}"
    _ip("link", "add", veth, "type", "veth", "peer", "name", "eth0", "netns", pid)
    _ip("link", "set", veth, "master", BRIDGE, "up")
    inside = (
        ("link", "set", "lo", "up"),
        ("addr", "add", f"{address}/{POD_NETWORK.prefixlen}", "dev", "eth0"),
        ("link", "set", "eth0", "up"),
        ("route", "add", "default", "via", str(next(POD_NETWORK.hosts()))),
    )
    for arguments in inside:
        subprocess.run(["nsenter", "-t", pid, "-n", "ip", *arguments], check=True)
    assert process.stdin is not None
    process.stdin.write(b"go\n")
    process.stdin.close()
    return process


def _wait_for_namespace(pid: int) -> None:
    own = Path("/proc/self/ns/net").readlink()
    while Path(f"/proc/{pid}/ns/net").readlink() == own:
        threading.Event().wait(0.005)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)
